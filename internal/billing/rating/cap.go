package rating

import (
	"math"
	"math/big"

	"github.com/cockroachdb/apd/v3"
)

// Cap is the last quantity n such that each quantity m ≤ n costs at most amount minor units in the
// period s, or what no units cost where that is more. ok is false where no quantity costs more.
//
// A price may fall, as at a cheaper tier of the model volume. So a larger quantity than n may be within
// the amount again.
func (p *Price) Cap(amount int64, s Span) (n int64, ok bool) {
	most := max(amount, s.Money(p.minimum))
	if p.maximum != nil {
		highest := s.Money(*p.maximum)
		if most = max(amount, min(s.Money(p.minimum), highest)); highest <= most {
			return 0, false
		}
	}
	// An amount is above most where it rounds to more, so from half a minor unit on.
	unit := new(big.Rat).SetFrac64(1, 2)
	unit.Quo(unit.Add(unit, ratio(most)), new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(p.exponent)), nil)))
	over := p.model.firstOver(p, unit)
	if over == nil {
		return 0, false
	}
	over.Add(over, big.NewInt(s.Units(p.included)-1))
	if !over.IsInt64() {
		return 0, false
	}
	return over.Int64(), true
}

func (p *Price) overInPackages(amount *big.Rat) *big.Int {
	begun := unitsFor(amount, &p.unit)
	if begun == nil {
		return nil
	}
	begun.Mul(begun.Sub(begun, big.NewInt(1)), big.NewInt(p.size))
	return begun.Add(begun, big.NewInt(1))
}

func (p *Price) overInGraduated(amount *big.Rat) *big.Int { return p.overInTiers(amount, true) }
func (p *Price) overInVolume(amount *big.Rat) *big.Int    { return p.overInTiers(amount, false) }

// overInTiers is firstOver of a price with tiers. sums: what the tiers below cost is added, and a tier's
// own units are charged alone. Else all units are at the price of the tier that the last one is in.
func (p *Price) overInTiers(amount *big.Rat, sums bool) *big.Int {
	left, below := new(big.Rat).Set(amount), new(big.Int)
	for i := range p.tiers {
		t := &p.tiers[i]
		rest := new(big.Rat).Sub(left, decimal(&t.flat))
		units, from := unitsFor(rest, &t.unit), new(big.Int)
		if sums {
			from = below
		}
		if units != nil {
			// The first unit of the tier pays the flat price.
			first := units.Add(units, from)
			if least := new(big.Int).Add(below, big.NewInt(1)); first.Cmp(least) < 0 {
				first = least
			}
			if t.end == math.MaxInt64 || first.Cmp(big.NewInt(t.end)) <= 0 {
				return first
			}
		}
		end := big.NewInt(t.end)
		if sums {
			in := new(big.Rat).SetInt(new(big.Int).Sub(end, below))
			left = rest.Sub(rest, in.Mul(in, decimal(&t.unit)))
		}
		below = end
	}
	return nil
}

// unitsFor is the least number of units, 1 or more, that cost at least so much; nil: none do.
func unitsFor(amount *big.Rat, price *apd.Decimal) *big.Int {
	if amount.Sign() <= 0 {
		return big.NewInt(1)
	}
	if price.Sign() <= 0 {
		return nil
	}
	units := new(big.Rat).Quo(amount, decimal(price))
	whole, rest := new(big.Int).QuoRem(units.Num(), units.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole
}

func decimal(d *apd.Decimal) *big.Rat {
	r, ok := new(big.Rat).SetString(d.Text('f'))
	if !ok {
		panic("rating: a price that is no number") // Compile has read it
	}
	return r
}

func ratio(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }
