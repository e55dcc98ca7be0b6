package rating

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/cockroachdb/apd/v3"

	"quotad/internal/billing"
	"quotad/internal/plans"
)

// Level is the billed level of a level meter in a period, in millionths of a unit, at least 0.
type Level struct{ micro *big.Int }

// Held describes a customer's level of a level meter in a period [a,b): the integral of the level, in units ·
// µs, the highest level, and the last level.
type Held struct {
	Integral   *big.Int
	Peak, Last int64
}

// levels contains the function that computes the level of a period, for each value of plans.Price.LevelBy. A
// price without a value is billed by the average. Compile rejects a value that has no entry here.
var levels = map[string]func(h Held, length int64) Level{
	"":              averageOf,
	plans.ByAverage: averageOf,
	plans.ByPeak:    func(h Held, _ int64) Level { return Level{micro(h.Peak)} },
	plans.ByLast:    func(h Held, _ int64) Level { return Level{micro(h.Last)} },
}

func averageOf(h Held, length int64) Level { return Average(h.Integral, length) }

// Level returns the level that a price bills for a period of length µs, which must be above 0. An average is
// rounded to 6 digits, half up.
func (p *Price) Level(h Held, length int64) Level { return levels[p.levelBy](h, length) }

// Average returns the average level for an integral over a length, µs, rounded half up.
func Average(integral *big.Int, length int64) Level {
	n := new(big.Int).Mul(integral, millionths)
	n.Lsh(n, 1).Add(n, big.NewInt(length))
	return Level{n.Quo(n, new(big.Int).Lsh(big.NewInt(length), 1))}
}

// ReadLevel parses the output of String.
func ReadLevel(s string) (Level, error) {
	before, after, _ := strings.Cut(s, ".")
	n, ok := new(big.Int).SetString(before+after, 10)
	if !ok || len(after) != 6 || n.Sign() < 0 {
		return Level{}, fmt.Errorf("a level of %q", plans.Shorten(s))
	}
	return Level{n}, nil
}

// String formats the level with 6 digits after the point: "3.500000".
func (l Level) String() string {
	before, after := new(big.Int).QuoRem(l.micro, millionths, new(big.Int))
	return fmt.Sprintf("%s.%06d", before, after.Int64())
}

// Text formats the level for people: "1,234.5".
func (l Level) Text() string { return Short(l.String()) }

// Beyond returns the part of a level beyond the included units. exact is the level in the format of String.
func Beyond(exact string, included int64) Level {
	level, err := ReadLevel(exact)
	if err != nil {
		return Level{new(big.Int)}
	}
	if level.micro.Sub(level.micro, micro(included)).Sign() < 0 {
		level.micro.SetInt64(0)
	}
	return level
}

// Begun returns the number of packages of a size that the level begins.
func (l Level) Begun(size int64) int64 {
	begun, rest := new(big.Int).QuoRem(l.micro, micro(size), new(big.Int))
	if rest.Sign() > 0 {
		begun.Add(begun, big.NewInt(1))
	}
	return begun.Int64()
}

// Quantity returns the level rounded to units, half up.
func (l Level) Quantity() int64 { return whole(l.micro) }

// RateLevel computes the line of a level in the period s. It first rates the level by the whole price,
// unrounded, with all included units and within the whole minimum and maximum. Then it prorates the result to
// the period and rounds once. Tiers refer to the whole price.
//
// Like Rate, RateLevel returns ErrTooLarge if the amount is too large.
func (p *Price) RateLevel(l Level, s Span) (Line, error) {
	line := Line{Included: p.included, Tiers: []TierAmount{}, level: true}
	overage := new(big.Int).Sub(l.micro, micro(p.included))
	if overage.Sign() < 0 {
		overage.SetInt64(0)
	}
	line.Overage = whole(overage)
	var exact apd.Decimal
	if err := p.model.charge(p, &line, overage, &exact); err != nil {
		return Line{}, err
	}
	line.Exact = text(&exact)
	// Both bounds are whole minor units, so the amount is compared as a fraction of minor units.
	amount, scale := minorUnits(&exact, p.exponent)
	bound := func(minor int64) *big.Int { return new(big.Int).Mul(big.NewInt(minor), scale) }
	if least := bound(p.minimum); amount.Cmp(least) < 0 {
		amount, line.Applied = least, billing.AppliedMinimum
	}
	if p.maximum != nil {
		if most := bound(*p.maximum); amount.Cmp(most) > 0 {
			amount, line.Applied = most, billing.AppliedMaximum
		}
	}
	line.WholeMinor = p.applied(line.Applied)
	if !s.whole() {
		amount.Mul(amount, big.NewInt(s.until(s.To)-s.until(s.From)))
		scale = new(big.Int).Mul(scale, big.NewInt(s.length()))
	}
	rounded := amount.Lsh(amount, 1).Add(amount, scale)
	rounded.Quo(rounded, new(big.Int).Lsh(scale, 1))
	if !rounded.IsInt64() || tooLarge(rounded.Int64()) {
		return line, ErrTooLarge
	}
	line.AmountMinor = rounded.Int64()
	return line, nil
}

// minorUnits converts an amount in major units to a fraction of minor units: amount/scale.
func minorUnits(exact *apd.Decimal, exponent int) (amount, scale *big.Int) {
	amount, scale = exact.Coeff.MathBigInt(), big.NewInt(1)
	if shift := int64(exact.Exponent) + int64(exponent); shift >= 0 {
		amount.Mul(amount, power(shift))
	} else {
		scale = power(-shift)
	}
	return amount, scale
}

func power(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }
