package assembly

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// Assemble makes the invoice of a period, an upcoming invoice, or an opening invoice. The lines
// of a period come in this order, numbered from 1: base in arrears, usage in the order of
// Terms.Meters, minimum, unused, base in advance of Next, corrections, charges. An opening has
// the base in advance of its own period, unused, corrections and charges. Each price has a usage line;
// other lines of 0 are left out.
//
// An invoice that cannot be finalized has a reason in Held, see Result. An error is that of
// terms or taxes which nobody may have; the customer cannot be billed then.
func Assemble(in Input) (Result, error) {
	a := assembling{in: &in, lines: []billing.Line{}}
	if in.Kind == billing.KindOpening {
		a.advanceBase(&in.Terms)
		a.goneOn()
	} else if err := a.period(); err != nil {
		return Result{}, err
	}
	if err := a.others(); err != nil {
		return Result{}, err
	}
	result := Result{Invoice: a.invoice(), Empty: len(a.lines) == 0 && a.held == "", Corrected: a.corrected}
	if err := a.total(&result); err != nil {
		return Result{}, err
	}
	return result, nil
}

// assembling is an invoice on its way.
type assembling struct {
	in        *Input
	lines     []billing.Line
	corrected []Correction
	waiting   []billing.Corrected
	held      string
}

// period adds the lines of the period itself, and the base of the next one.
func (a *assembling) period() error {
	t := &a.in.Terms
	p := &t.Period
	charged := a.charged()
	if charged < p.End {
		a.add(t.line(billing.LineBase, "Base price, "+t.Plan.name(), charged, p.End), t.base(charged, p.End))
	}
	rated := t.base(p.Start, p.End)
	for _, meter := range t.Meters() {
		line, _, err := t.UsageLine(a.meter(meter), a.in.Usage[meter])
		if err = a.hold(err, "The usage of meter "+meter); err != nil {
			return err
		}
		a.lines = append(a.lines, line)
		rated += line.AmountMinor // at most 10¹⁵ each, so many prices would be too large anyway
	}
	a.add(t.line(billing.LineMinimum, "Difference to the minimum price, "+t.Plan.name(), p.Start, p.End), rating.Lift(rated, t.minimum()))
	a.unused(t, a.in.Advance, a.in.Replaced, "")
	a.goneOn()
	a.advanceBase(a.in.Next)
	return nil
}

// charged is where earlier invoices have charged the period's base up to, in advance. One that
// became void counts: what it held was written off.
func (a *assembling) charged() int64 {
	t := &a.in.Terms
	switch {
	case a.in.Advance != nil:
		return a.in.Advance.To
	case t.inAdvance() && !a.in.TermsReplaced:
		return t.Period.KnownEnd
	}
	return t.Period.Start
}

// unused gives back the base in advance that a period has not used, as far as an invoice holds it.
// void is the invoice that did so before, "" for none.
func (a *assembling) unused(t *Terms, held *Advance, replaced []Advance, void string) {
	if held != nil && t.Period.End < held.To {
		line := t.line(billing.LineUnused, "Unused base price, "+t.Plan.name(), t.Period.End, held.To)
		line.OfInvoice = void
		a.add(line, -min(t.base(t.Period.End, held.To), held.LeftMinor))
	}
	for _, held := range replaced {
		line := t.line(billing.LineUnused, "Unused base price, changed at once", held.From, held.To)
		line.PlanVersion, line.OfInvoice = held.PlanVersion, void
		a.add(line, -held.LeftMinor)
	}
}

// goneOn gives back what invoices gave back that became void.
func (a *assembling) goneOn() {
	for i := range a.in.GoneOn {
		g := &a.in.GoneOn[i]
		a.unused(&g.Of, g.Advance, g.Replaced, g.OfInvoice)
	}
}

// advanceBase adds the base in advance of a period, to the end that was known when it opened.
// That of a stored draft stands, though the period may have got other terms or another end
// since: what that changes is for the period's own invoice.
func (a *assembling) advanceBase(t *Terms) {
	if a.in.Fixed != nil {
		own := &a.in.Terms.Period
		opening := a.in.Kind == billing.KindOpening && !own.Trial // it may have become one
		for _, line := range a.in.Fixed {
			if line.Kind == billing.LineBase && (opening || line.From >= own.End) {
				a.add(line, line.AmountMinor)
			}
		}
		return
	}
	if t != nil && t.inAdvance() {
		from, to := t.Period.Start, t.Period.KnownEnd
		a.add(t.line(billing.LineBase, "Base price in advance, "+t.Plan.name(), from, to), t.AdvanceBase(to))
	}
}

// others adds corrections and charges, the stored ones as they are.
func (a *assembling) others() error {
	for _, kind := range []string{billing.LineCorrection, billing.LineCharge} {
		for _, line := range a.in.Fixed {
			if line.Kind == kind {
				a.add(line, line.AmountMinor)
			}
		}
		switch kind {
		case billing.LineCorrection:
			if err := a.corrections(); err != nil {
				return err
			}
		case billing.LineCharge:
			for _, c := range a.in.Charges {
				a.add(a.in.Terms.line(kind, c.Description, c.At, c.At), c.AmountMinor)
			}
		}
	}
	return nil
}

func (a *assembling) corrections() error {
	for _, c := range a.in.Corrections {
		line, ok, err := CorrectionLine(c, a.meter(c.Meter))
		if ok && err == nil {
			a.add(line, line.AmountMinor)
			a.corrected = append(a.corrected, c)
		}
		if errors.Is(err, rating.ErrTooLarge) {
			a.waiting = append(a.waiting, billing.Corrected{Meter: c.Meter, Invoice: c.OfInvoice})
		}
		if err = a.hold(err, "The correction of meter "+c.Meter); err != nil {
			return err
		}
	}
	return nil
}

// add adds a line of an amount, but not of 0.
func (a *assembling) add(line billing.Line, amount int64) {
	if amount != 0 {
		line.AmountMinor = amount
		a.lines = append(a.lines, line)
	}
}

// hold makes of an amount that is too large a reason to hold the invoice. Another error stays.
func (a *assembling) hold(err error, what string) error {
	if !errors.Is(err, rating.ErrTooLarge) {
		return err
	}
	if a.held == "" {
		a.held = what + " is more than an invoice may bear: 2⁶³−1 units, or 10¹⁵ minor units, or more."
	}
	return nil
}

func (a *assembling) meter(key string) plans.Meter {
	meter := a.in.Meters[key]
	meter.Key = key
	return meter
}

// invoice is the draft, without its sums.
func (a *assembling) invoice() billing.Invoice {
	in, p := a.in, &a.in.Terms.Period
	for i := range a.lines {
		a.lines[i].N = i + 1
	}
	end := p.End
	if in.Kind == billing.KindOpening {
		end = p.KnownEnd // as when the period opened, however it was cut since
	}
	return billing.Invoice{
		Kind: in.Kind, Status: billing.StatusDraft,
		Customer: in.Account.Customer, Currency: in.Terms.Plan.Document.Currency,
		Chain: p.Chain, N: p.N, PeriodStart: p.Start, PeriodEnd: end,
		PlanID: p.PlanID, PriceVersion: in.Terms.Plan.Version,
		Lines: slices.Clip(a.lines), Taxes: []billing.Tax{}, Waiting: a.waiting,
		Seller: in.Seller, Buyer: in.Account.Buyer, DueDays: in.Account.DueDays,
	}
}

// total adds the invoice's sums, taxes and credits.
func (a *assembling) total(r *Result) error {
	inv := &r.Invoice
	taxes, err := rating.NewTaxes(ratesOf(a.in.Account.Taxes))
	if err != nil {
		return fmt.Errorf("the customer's taxes: %w", err)
	}
	taxed, err := sums(inv.Lines, taxes)
	if err = a.hold(err, "The total"); err != nil {
		return err
	}
	inv.Totals, inv.Taxes = totals(taxed, inclusive(a.in.Account.Taxes))
	inv.Held = a.held
	r.Applied = apply(a.in.Credits, inv)
	for _, e := range r.Applied {
		inv.CreditsMinor -= e.AmountMinor
	}
	inv.AmountDueMinor = max(0, inv.TotalMinor) - inv.CreditsMinor
	if inv.Held == "" {
		r.CarriedMinor = max(0, -inv.TotalMinor)
	}
	return nil
}

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

const day = int64(24 * 60 * 60 * 1e6) // µs

// Finalize is a draft that is not held, or a new credit note, as it is finalized at an instant
// with the seller's next number. It is paid at once where nothing is due. A credit note stays
// paid, without an instant of it, and has no day to pay. Its digest is to be of the newest form.
func Finalize(draft billing.Invoice, number, at int64) billing.Invoice {
	draft.Number = Number(draft.Seller.Prefix, number)
	draft.FinalizedAt, draft.DigestForm = &at, newestForm
	if draft.Kind == billing.KindCreditNote {
		return draft
	}
	due := at + int64(draft.DueDays)*day
	draft.DueAt = &due
	draft.Status = billing.StatusFinalized
	if draft.AmountDueMinor == 0 {
		draft.Status, draft.PaidAt, draft.PaidMinor = billing.StatusPaid, &at, new(int64)
	}
	return draft
}

// Number is the number of an invoice as it is shown.
func Number(prefix string, number int64) string { return prefix + strconv.FormatInt(number, 10) }
