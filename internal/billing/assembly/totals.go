package assembly

import (
	"cmp"
	"strconv"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/calendar"
)

func ratesOf(taxes []billing.TaxRate) []rating.Tax {
	rates := make([]rating.Tax, len(taxes))
	for i, t := range taxes {
		rates[i] = rating.Tax{Name: t.Name, Percent: t.Percent, Inclusive: t.Inclusive}
	}
	return rates
}

// inclusive reports whether prices include the tax. All rates are of the same kind.
func inclusive(taxes []billing.TaxRate) bool { return len(taxes) > 0 && taxes[0].Inclusive }

// sums returns the totals of lines.
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

// totals returns the sums and taxes in the form of an invoice.
func totals(taxed rating.Taxed, inclusive bool) (billing.Totals, []billing.Tax) {
	taxes := make([]billing.Tax, len(taxed.Taxes))
	for i, t := range taxed.Taxes {
		taxes[i] = billing.Tax{Name: t.Name, Percent: t.Percent, Inclusive: inclusive, BaseMinor: t.BaseMinor, TaxMinor: t.TaxMinor}
	}
	return billing.Totals{SubtotalMinor: taxed.SubtotalMinor, TaxMinor: taxed.TaxMinor, TotalMinor: taxed.TotalMinor}, taxes
}

// Finalize returns the finalized form of a draft that is not held, or of a new credit note. at is the instant
// of finalization, µs, and number the seller's next number.
//
// The invoice is due DueDays calendar days later, at the same time of day in the customer's timezone. It is
// paid at once if the amount due is 0. A credit note stays paid and has neither a payment instant nor a due
// date. The error is calendar.ErrUnknownZone.
func Finalize(draft billing.Invoice, number, at int64) (billing.Invoice, error) {
	draft.Number = Number(draft.Seller.Prefix, number)
	draft.FinalizedAt = &at
	if draft.Kind == billing.KindCreditNote {
		return draft, nil
	}
	zone, err := calendar.Location(cmp.Or(draft.Zone, "UTC"))
	if err != nil {
		return draft, err
	}
	due := calendar.DaysLater(at, draft.DueDays, zone)
	draft.DueAt = &due
	draft.Status = billing.StatusFinalized
	if draft.AmountDueMinor == 0 {
		draft.Status, draft.PaidAt = billing.StatusPaid, &at
	}
	return draft, nil
}

// Number formats the number of an invoice.
func Number(prefix string, number int64) string { return prefix + strconv.FormatInt(number, 10) }
