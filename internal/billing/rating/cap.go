package rating

import (
	"math"
	"math/big"

	"github.com/cockroachdb/apd/v3"
)

// Cap returns the largest quantity n such that every quantity up to n costs at most amount minor units in the
// period s. If even no units cost more than amount, that cost replaces amount. ok is false if no quantity
// costs more.
//
// A price may fall, for example at a cheaper tier of the volume model. So a quantity above n may cost at most
// amount, too.
func (p *Price) Cap(amount int64, s Span) (n int64, ok bool) {
	most := max(amount, s.Money(p.minimum))
	if p.maximum != nil {
		highest := s.Money(*p.maximum)
		if most = max(amount, min(s.Money(p.minimum), highest)); highest <= most {
			return 0, false
		}
	}
	// An amount exceeds most if it rounds to more than most, which begins half a minor unit above most.
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

// overInTiers implements firstOver for a price with tiers. If sums is true, each tier charges only its own
// units, and the cost of the lower tiers is added. Otherwise the tier of the last unit prices all units.
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
			// The first unit of a tier incurs the flat price.
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

// unitsFor returns the smallest number of units, at least 1, that costs at least amount. The result is nil if
// no number of units does.
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
		panic("rating: a price that is no number") // Compile has parsed the price
	}
	return r
}

func ratio(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }
