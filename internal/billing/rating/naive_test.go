package rating_test

import (
	"math/big"
	"sort"

	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// This is the second way, from the contract's sentences: fractions of math/big, one unit after
// the other. It shares no code with the package.

func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("not a number: " + s)
	}
	return r
}

func integer(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func sum(terms ...*big.Rat) *big.Rat {
	all := new(big.Rat)
	for _, t := range terms {
		all.Add(all, t)
	}
	return all
}

func floor(r *big.Rat) int64 {
	return new(big.Int).Div(r.Num(), r.Denom()).Int64() // Euclidean: down, the denominator is positive
}

// nearest is the nearest whole number, half away from zero.
func nearest(r *big.Rat) int64 {
	if r.Sign() < 0 {
		return -nearest(new(big.Rat).Neg(r))
	}
	return floor(sum(r, big.NewRat(1, 2)))
}

// naiveTier is what a tier gets.
type naiveTier struct {
	units  int64
	amount *big.Rat
}

type naiveLine struct {
	overage int64
	exact   *big.Rat
	tiers   map[int]*naiveTier
	minor   int64
	applied string
}

// part is what of amount·(t−S)/(E−S) lies between a and b.
func part(amount int64, s rating.Span, round func(*big.Rat) int64) int64 {
	if s == (rating.Span{}) {
		return amount
	}
	at := func(t int64) int64 {
		return round(new(big.Rat).Mul(integer(amount), big.NewRat(t-s.Start, s.End-s.Start)))
	}
	return at(s.To) - at(s.From)
}

func naiveRate(p *plans.Price, quantity int64, s rating.Span, exponent int) naiveLine {
	line := naiveLine{exact: new(big.Rat), tiers: map[int]*naiveTier{}}
	included := part(p.Included, s, floor)
	for unit := int64(1); unit <= quantity; unit++ {
		if unit > included {
			line.overage++
		}
	}
	for unit := int64(1); unit <= line.overage; unit++ {
		switch p.Model {
		case "per_unit":
			line.exact.Add(line.exact, rat(*p.UnitPrice))
		case "package":
			if unit%*p.PackageSize == 1 || *p.PackageSize == 1 {
				line.exact.Add(line.exact, rat(*p.PackagePrice))
			}
		case "graduated":
			line.fallsIn(p, tierOf(p, unit))
		case "volume":
			line.fallsIn(p, tierOf(p, line.overage))
		default:
			panic("say here what a unit costs by " + p.Model)
		}
	}
	scale := integer(1)
	for range exponent {
		scale.Mul(scale, integer(10))
	}
	rounded := nearest(new(big.Rat).Mul(line.exact, scale))
	line.minor = rounded
	if p.MinimumMinor != nil {
		line.minor = max(line.minor, part(*p.MinimumMinor, s, nearest))
	}
	if p.MaximumMinor != nil { // it counts, too, where the cut leaves it below the minimum
		line.minor = min(line.minor, part(*p.MaximumMinor, s, nearest))
	}
	if line.minor > rounded {
		line.applied = "minimum"
	} else if line.minor < rounded {
		line.applied = "maximum"
	}
	return line
}

// tierOf is the tier that a unit falls in, the first being unit 1.
func tierOf(p *plans.Price, unit int64) int {
	for i, t := range p.Tiers {
		if t.UpTo == nil || unit <= *t.UpTo {
			return i
		}
	}
	panic("the last tier has an end")
}

// fallsIn lets one unit fall in a tier, whose flat price comes with the first.
func (l *naiveLine) fallsIn(p *plans.Price, i int) {
	t := l.tiers[i]
	if t == nil {
		t = &naiveTier{amount: new(big.Rat)}
		if flat := p.Tiers[i].FlatPrice; flat != nil {
			t.amount.Add(t.amount, rat(*flat))
			l.exact.Add(l.exact, rat(*flat))
		}
		l.tiers[i] = t
	}
	t.units++
	t.amount.Add(t.amount, rat(p.Tiers[i].UnitPrice))
	l.exact.Add(l.exact, rat(p.Tiers[i].UnitPrice))
}

// naiveTaxes are the taxes on a subtotal, by fractions: base and tax of each rate.
func naiveTaxes(list []rating.Tax, subtotal int64) (base int64, taxes []int64) {
	if subtotal < 0 {
		base, taxes = naiveTaxes(list, -subtotal)
		for i := range taxes {
			taxes[i] = -taxes[i]
		}
		return -base, taxes
	}
	rates, all := []*big.Rat{}, new(big.Rat)
	for _, tax := range list {
		rate := new(big.Rat).Quo(rat(tax.Percent), integer(100))
		rates = append(rates, rate)
		all.Add(all, rate)
	}
	taxes = make([]int64, len(list))
	if len(list) == 0 || !list[0].Inclusive {
		for i, rate := range rates {
			taxes[i] = nearest(new(big.Rat).Mul(integer(subtotal), rate))
		}
		return subtotal, taxes
	}
	base = nearest(new(big.Rat).Quo(integer(subtotal), sum(integer(1), all)))
	if all.Sign() == 0 {
		return base, taxes
	}
	left, order := subtotal-base, make([]int, len(list))
	remainders := make([]*big.Rat, len(list))
	for i, rate := range rates {
		share := new(big.Rat).Quo(new(big.Rat).Mul(integer(subtotal-base), rate), all)
		taxes[i], order[i] = floor(share), i
		remainders[i] = share.Sub(share, integer(taxes[i]))
		left -= taxes[i]
	}
	sort.SliceStable(order, func(a, b int) bool { return remainders[order[a]].Cmp(remainders[order[b]]) > 0 })
	for _, i := range order[:left] {
		taxes[i]++
	}
	return base, taxes
}
