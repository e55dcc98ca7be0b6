package oracle

import "math/big"

// TaxRate is a tax as PUT …/billing takes it.
type TaxRate struct {
	Name      string `json:"name"`
	Percent   string `json:"percent"`
	Inclusive bool   `json:"inclusive"`
}

// Tax is a tax as an invoice shows it.
type Tax struct {
	Name      string `json:"name"`
	Percent   string `json:"percent"`
	BaseMinor int64  `json:"base_minor"`
	TaxMinor  int64  `json:"tax_minor"`
}

// taxesOn are the taxes on a subtotal. A negative one is computed on its absolute value and
// negated.
func taxesOn(subtotal int64, rates []TaxRate) []Tax {
	if subtotal < 0 {
		taxes := taxesOn(-subtotal, rates)
		for i := range taxes {
			taxes[i].BaseMinor, taxes[i].TaxMinor = -taxes[i].BaseMinor, -taxes[i].TaxMinor
		}
		return taxes
	}
	if len(rates) > 0 && rates[0].Inclusive {
		return inclusiveTaxes(subtotal, rates)
	}
	taxes := []Tax{}
	for _, r := range rates {
		tax := new(big.Rat).Mul(whole(subtotal), fraction(r))
		taxes = append(taxes, Tax{r.Name, r.Percent, subtotal, round(tax)})
	}
	return taxes
}

func fraction(r TaxRate) *big.Rat { return new(big.Rat).Quo(decimal(r.Percent), whole(100)) }

// inclusiveTaxes divides what is not net among the rates by largest remainder, ties to the
// earlier.
func inclusiveTaxes(gross int64, rates []TaxRate) []Tax {
	all := whole(0)
	for _, r := range rates {
		all.Add(all, fraction(r))
	}
	net := round(new(big.Rat).Quo(whole(gross), new(big.Rat).Add(whole(1), all)))
	rest := gross - net
	taxes, remainders := []Tax{}, []*big.Rat{}
	given := int64(0)
	for _, r := range rates {
		part := whole(0)
		if all.Sign() > 0 {
			part = new(big.Rat).Quo(new(big.Rat).Mul(whole(rest), fraction(r)), all)
		}
		taxes = append(taxes, Tax{r.Name, r.Percent, net, down(part)})
		remainders = append(remainders, new(big.Rat).Sub(part, whole(down(part))))
		given += down(part)
	}
	for ; given < rest; given++ {
		best := 0
		for i := range remainders {
			if remainders[i].Cmp(remainders[best]) > 0 {
				best = i
			}
		}
		taxes[best].TaxMinor++
		remainders[best] = whole(-1)
	}
	return taxes
}

func sumOf(taxes []Tax) (sum int64) {
	for _, t := range taxes {
		sum += t.TaxMinor
	}
	return sum
}
