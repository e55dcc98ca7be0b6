package assembly

import (
	"errors"
	"fmt"
	"slices"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// Assemble computes the invoice of a period, an upcoming invoice, an opening invoice or an extra invoice.
//
// The lines of a period are in this order, numbered from 1: base in arrears, usage in the order of
// Terms.Meters, minimum, unused, base in advance of Next, corrections, charges. An opening invoice has the
// base in advance of its own period, unused, corrections and charges. An extra invoice has the unused base of
// void invoices, corrections and charges. Each price has a usage line; other lines of 0 are omitted.
//
// If an invoice cannot be finalized, Held contains the reason, see Result. An error reports invalid terms or
// taxes, with which the customer cannot be billed.
func Assemble(in Input) (Result, error) {
	a := assembling{in: &in, lines: []billing.Line{}}
	switch {
	case in.Kind == billing.KindOpening:
		a.advanceBase(&in.Terms)
		a.goneOn()
	case in.Terms.Period.Extra():
		a.goneOn()
	default:
		if err := a.period(); err != nil {
			return Result{}, err
		}
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

// assembling is an invoice under construction.
type assembling struct {
	in        *Input
	lines     []billing.Line
	corrected []Correction
	waiting   []billing.Corrected
	held      string
}

// period adds the lines of the period itself and the base price that the next period charges in advance.
func (a *assembling) period() error {
	t := &a.in.Terms
	p := &t.Period
	if charged, end := a.charged(), p.BaseOf().End; charged < end {
		a.add(t.baseLine(billing.LineBase, "Base price", charged, end), t.base(charged, end))
	}
	rated := t.base(p.Start, p.End)
	for _, meter := range t.Meters() {
		line, _, err := a.usageLine(meter)
		if err = a.hold(err, "The usage of meter "+meter); err != nil {
			return err
		}
		a.lines = append(a.lines, line)
		rated += line.AmountMinor // at most 10¹⁵ each, so a sum that overflows is too large anyway
	}
	a.add(t.minimumLine(), rating.Lift(rated, t.minimum()))
	a.unused(t, &a.in.Held, "")
	a.goneOn()
	a.advanceBase(a.in.Next)
	return nil
}

func (a *assembling) usageLine(meter string) (billing.Line, bool, error) {
	t := &a.in.Terms
	if t.LevelBy(meter) != "" {
		return t.HeldLine(a.meter(meter), a.in.Levels[meter])
	}
	return t.UsageLine(a.meter(meter), a.in.Usage[meter])
}

// charged returns the instant up to which earlier invoices have charged the base price in advance. A void
// invoice counts, because its amounts were written off.
func (a *assembling) charged() int64 {
	t := &a.in.Terms
	b := t.Period.BaseOf()
	begins := b.N == t.Period.N // the base begins with this period, not earlier
	switch held := a.in.Advance; {
	case begins && len(held) > 0:
		return held[len(held)-1].To
	case begins && (!t.inAdvance() || a.in.TermsReplaced || b.Late):
		return t.Period.Start
	case len(held) > 0:
		return max(b.To, held[len(held)-1].To)
	}
	return b.To
}

// unused gives back the unused part of base prices that invoices charged in advance. void is the id of the
// void invoice that gave it back before, or "".
func (a *assembling) unused(t *Terms, held *Held, void string) {
	if !t.Period.BaseGoesOn() {
		a.unusedFrom(t, held.Advance, void)
	}
	if over, ok := t.Over(); ok {
		a.unusedFrom(&over, held.Over, void)
	}
	for _, held := range held.Replaced {
		line := t.line(billing.LineUnused, "Unused base price, changed at once", held.From, held.To)
		line.Part, line.WholeMinor = held.Part, held.WholeMinor
		a.giveBack(line, held, held.LeftMinor, void)
	}
}

// unusedFrom gives back the amounts that base lines charged in advance for the time after the period's end.
func (a *assembling) unusedFrom(t *Terms, held []Advance, void string) {
	for _, held := range held {
		if from := max(held.From, t.Period.End); from < held.To {
			a.giveBack(t.baseLine(billing.LineUnused, "Unused base price", from, held.To), held, min(t.base(from, held.To), held.LeftMinor), void)
		}
	}
}

func (a *assembling) giveBack(line billing.Line, held Advance, amount int64, void string) {
	line.PlanVersion, line.OfInvoice = held.PlanVersion, void
	line.BaseInvoice, line.BaseLine = held.Invoice, held.Line
	a.add(line, -amount)
}

// goneOn gives back unused base prices that void invoices gave back before.
func (a *assembling) goneOn() {
	for i := range a.in.GoneOn {
		g := &a.in.GoneOn[i]
		a.unused(&g.Of, &g.Held, g.OfInvoice)
	}
}

// advanceBase adds the base in advance of a period, up to the end that was known when the period opened. A
// stored draft keeps its base in advance, even if the period has other terms or another end since. The
// period's own invoice contains the difference.
func (a *assembling) advanceBase(t *Terms) {
	if a.in.Fixed != nil {
		own := &a.in.Terms.Period
		opening := a.in.Kind == billing.KindOpening && !own.Trial // the period may have become a trial
		for _, line := range a.in.Fixed {
			if line.Kind == billing.LineBase && (opening || line.From >= own.End && !own.BaseGoesOn()) {
				a.add(line, line.AmountMinor)
			}
		}
		return
	}
	if t == nil || !t.inAdvance() {
		return
	}
	if b := t.Period.BaseOf(); b.N == t.Period.N {
		a.add(t.baseLine(billing.LineBase, "Base price in advance", b.Start, b.To), t.AdvanceBase(b.To))
	}
}

// others adds corrections and charges. Lines of the stored draft are copied unchanged.
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

// add adds a line with an amount, unless the amount is 0.
func (a *assembling) add(line billing.Line, amount int64) {
	if amount != 0 {
		line.AmountMinor = amount
		a.lines = append(a.lines, line)
	}
}

// hold handles an amount that is too large: it sets the reason for which the invoice is held. It returns
// other errors unchanged.
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

// invoice returns the draft without its sums.
func (a *assembling) invoice() billing.Invoice {
	in, p := a.in, &a.in.Terms.Period
	for i := range a.lines {
		a.lines[i].N = i + 1
	}
	end := p.End
	if in.Kind == billing.KindOpening {
		end = p.KnownEnd // the end known at the opening, despite later cuts
	}
	return billing.Invoice{
		Kind: in.Kind, Status: billing.StatusDraft,
		Customer: in.Account.Customer, Currency: in.Terms.Plan.Document.Currency,
		Chain: p.Chain, N: p.N, PeriodStart: p.Start, PeriodEnd: end,
		PlanID: p.PlanID, PriceVersion: in.Terms.Plan.Version,
		Lines: slices.Clip(a.lines), Taxes: []billing.Tax{}, Waiting: a.waiting,
		Seller: in.Seller, Buyer: in.Account.Buyer, OrderReference: in.Account.OrderReference, Notes: in.Account.Notes, DueDays: in.Account.DueDays,
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
	for i := range inv.Taxes {
		inv.Taxes[i].Note = a.in.Account.Taxes[i].Note
	}
	inv.Held = a.held
	if inv.Held == "" {
		at := CreditsAt(inv)
		if inv.Extra() {
			at = a.in.At
		}
		r.Applied = Apply(a.in.Credits, inv.Currency, max(0, inv.TotalMinor), at)
	}
	for _, e := range r.Applied {
		inv.CreditsMinor -= e.AmountMinor
	}
	inv.AmountDueMinor = max(0, inv.TotalMinor) - inv.CreditsMinor
	if inv.Held == "" {
		r.CarriedMinor = max(0, -inv.TotalMinor)
	}
	return nil
}
