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

// Finalize is a draft that is not held, or a new credit note, as it is finalized at an instant, µs,
// with the seller's next number. It is due DueDays calendar days later, at the same time of day by the
// clock of the customer's zone, and paid at once where nothing is due. A credit note stays
// paid, without an instant of it, and has no day to pay. The error is calendar.ErrUnknownZone.
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

// Number is the number of an invoice as it is shown.
func Number(prefix string, number int64) string { return prefix + strconv.FormatInt(number, 10) }
