package assembly

import (
	"quotad/internal/billing"
	"quotad/internal/billing/rating"
)

func ratesOf(taxes []billing.TaxRate) []rating.Tax {
	rates := make([]rating.Tax, len(taxes))
	for i, t := range taxes {
		rates[i] = rating.Tax(t)
	}
	return rates
}

// inclusive reports whether prices hold the tax. Rates are all of one kind.
func inclusive(taxes []billing.TaxRate) bool { return len(taxes) > 0 && taxes[0].Inclusive }

// sums are the totals of lines.
func sums(lines []billing.Line, taxes *rating.Taxes) (rating.Taxed, error) {
	amounts := make([]int64, len(lines))
	for i := range lines {
		amounts[i] = lines[i].AmountMinor
	}
	subtotal, err := rating.Sum(amounts...)
	if err != nil {
		return rating.Taxed{}, err
	}
	return taxes.On(subtotal)
}

// totals are the sums as an invoice has them.
func totals(taxed rating.Taxed, inclusive bool) (billing.Totals, []billing.Tax) {
	taxes := make([]billing.Tax, len(taxed.Taxes))
	for i, t := range taxed.Taxes {
		taxes[i] = billing.Tax{Name: t.Name, Percent: t.Percent, Inclusive: inclusive, BaseMinor: t.BaseMinor, TaxMinor: t.TaxMinor}
	}
	return billing.Totals{SubtotalMinor: taxed.SubtotalMinor, TaxMinor: taxed.TaxMinor, TotalMinor: taxed.TotalMinor}, taxes
}
