package oracle

import "math/big"

// Price is a price as the contract has it in JSON.
type Price struct {
	Meter        string  `json:"meter,omitempty"`
	Model        string  `json:"model"`
	UnitPrice    *string `json:"unit_price,omitempty"`
	PackageSize  *int64  `json:"package_size,omitempty"`
	PackagePrice *string `json:"package_price,omitempty"`
	Tiers        []Tier  `json:"tiers,omitempty"`
	Included     int64   `json:"included,omitempty"`
	MinimumMinor *int64  `json:"minimum_minor,omitempty"`
	MaximumMinor *int64  `json:"maximum_minor,omitempty"`
	LevelBy      string  `json:"level_by,omitempty"`
}

// Tier is one step of a graduated or volume price; UpTo nil is the last one.
type Tier struct {
	UpTo      *int64  `json:"up_to"`
	UnitPrice string  `json:"unit_price"`
	FlatPrice *string `json:"flat_price,omitempty"`
}

// TierShare is what one tier adds to a line, in major units, and its prices.
type TierShare struct {
	UpTo      *int64
	Quantity  *big.Rat
	Amount    *big.Rat
	UnitPrice string
	FlatPrice string // "" if it has none
}

// Rated is what a quantity costs in a share of a period.
type Rated struct {
	Included, Minor int64
	Tiers           []TierShare
	Applied         string // "minimum" or "maximum", if that one moved the rounded amount
}

// Rate is what a quantity costs in a share of a period.
func (p *Price) Rate(quantity int64, share Share, exponent int) (r Rated) {
	r.Included = share.Units(p.Included)
	major, tiers := p.exact(whole(max(0, quantity-r.Included)))
	rounded := round(new(big.Rat).Mul(major, tenTo(exponent)))
	r.Tiers, r.Minor = tiers, rounded
	if p.MinimumMinor != nil {
		r.Minor = max(r.Minor, share.Money(*p.MinimumMinor))
	}
	if p.MaximumMinor != nil {
		r.Minor = min(r.Minor, share.Money(*p.MaximumMinor))
	}
	if r.Minor > rounded {
		r.Applied = "minimum"
	} else if r.Minor < rounded {
		r.Applied = "maximum"
	}
	return r
}

func tenTo(exponent int) *big.Rat {
	r := whole(1)
	for range exponent {
		r.Mul(r, whole(10))
	}
	return r
}

// exact is the amount in major units of n units that are not free. A part of a unit costs its part,
// begins a package, and is in the tier that holds it.
func (p *Price) exact(n *big.Rat) (*big.Rat, []TierShare) {
	switch p.Model {
	case "per_unit":
		return new(big.Rat).Mul(n, decimal(*p.UnitPrice)), nil
	case "package":
		packages := new(big.Rat).Quo(n, whole(*p.PackageSize))
		begun := -down(packages.Neg(packages))
		return new(big.Rat).Mul(whole(begun), decimal(*p.PackagePrice)), nil
	case "graduated", "volume":
	default:
		panic("no sentence says what units cost by " + p.Model)
	}
	sum, tiers, below := new(big.Rat), []TierShare{}, new(big.Rat)
	for _, t := range p.Tiers {
		units := new(big.Rat)
		switch inside := t.UpTo == nil || n.Cmp(whole(*t.UpTo)) <= 0; {
		case p.Model == "graduated" && inside:
			units.Sub(n, below)
		case p.Model == "graduated":
			units.Sub(whole(*t.UpTo), below)
		case inside && n.Cmp(below) > 0: // volume
			units.Set(n)
		}
		if units.Sign() > 0 {
			amount := new(big.Rat).Mul(units, decimal(t.UnitPrice))
			flat := ""
			if t.FlatPrice != nil {
				flat = *t.FlatPrice
				amount.Add(amount, decimal(flat))
			}
			sum.Add(sum, amount)
			tiers = append(tiers, TierShare{t.UpTo, units, amount, t.UnitPrice, flat})
		}
		if t.UpTo != nil {
			below = whole(*t.UpTo)
		}
	}
	return sum, tiers
}
