package assembly

import (
	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// Input contains all data for the invoice of a period.
type Input struct {
	// Kind is billing.KindPeriod, also for an upcoming invoice, or billing.KindOpening.
	Kind string
	// Terms are the terms of the invoice's period.
	Terms Terms
	// Next contains the terms of the period that begins at the end of this one, under any plan. Next is nil
	// if no period follows. An opening invoice ignores Next.
	Next *Terms
	// At is the instant of creation or finalization, µs. Credits must be valid at that instant to pay an
	// extra invoice.
	At int64
	// Usage is the sum of usage and adjustments in the period, by meter. A missing meter has no usage.
	// math.MaxInt64 means that many units or more, and holds the invoice; math.MinInt64 also holds it. A sum
	// below 0 is rated as 0.
	Usage map[string]int64
	// Levels contains the integral, peak and last level of the period, by level meter.
	Levels map[string]rating.Held
	// Meters contains the meters by key, for their names and units. For a missing meter, the invoice shows
	// the key.
	Meters map[string]plans.Meter

	// Held contains the lines of earlier invoices that charged the period's base price in advance.
	Held

	// GoneOn contains periods whose own invoices became void. The void invoices gave back an unused base
	// price, and this invoice gives it back instead.
	GoneOn []GoneOn

	// Corrections and Charges are on no invoice yet. If the amount of a correction is too large, the invoice
	// is held and does not include the correction, see Invoice.Waiting.
	Corrections []Correction
	Charges     []billing.Charge
	// Fixed contains the lines of the stored draft, and is nil for a new invoice. The corrections, the
	// charges and the base in advance are copied from Fixed, and Next is ignored. On a period's invoice, the
	// base in advance is the base from the period's end on. All other lines are computed again.
	//
	// To reassemble a draft, pass all its lines in Fixed, no Charges, and only the Corrections for which the
	// draft waits. GoneOn still applies, because the rest to give back may have become smaller.
	Fixed []billing.Line

	// Account contains the taxes, the buyer, the days to pay and the customer's id.
	Account *billing.Account
	Seller  billing.Seller
	// Credits contains the customer's present credits. Only some of them pay the invoice, see Result.
	Credits []billing.Credit
}

// Held contains the lines that charged a period's base price in advance, on invoices that are not void.
type Held struct {
	// Advance contains the lines of the base that covers the period, in the order of their time. Without
	// lines, nothing is given back. If the base continues beyond its known end, the rest is charged as base.
	// Only a base for several intervals can have more than one line.
	Advance []Advance
	// Replaced contains base lines of terms that a cut at the period's start replaced. These lines are given
	// back completely. If TermsReplaced is true, the period's own invoice charges the base in advance.
	Replaced      []Advance
	TermsReplaced bool
	// Over contains the lines of the base price that a cut at the period's start ended, see billing.Base.
	Over []Advance
}

// Add adds a base line of an earlier invoice. amount is the full amount of that line.
func (h *Held) Add(t *Terms, line Advance, amount int64) {
	b := t.Period.BaseOf()
	switch {
	case line.PlanVersion == b.Version && amount == t.base(line.From, line.To):
		h.Advance = append(h.Advance, line)
	case b.N == t.Period.N && !b.Late: // else the invoice of period N has given it back
		h.Replaced, h.TermsReplaced = append(h.Replaced, line), true
	}
}

// AddOver adds a line of the base price that a cut at the period's start ended. over contains the terms of
// that base price.
func (h *Held) AddOver(over *Terms, line Advance, amount int64) {
	if line.PlanVersion == over.Period.Base.Version && amount == over.base(line.From, line.To) {
		h.Over = append(h.Over, line)
	}
}

// Advance is a line of an invoice that charges a base price in advance. The invoice is not void.
type Advance struct {
	From, To    int64 // the line's time
	PlanVersion int
	LeftMinor   int64 // the line's amount less its credit notes, at least 0
	Invoice     string
	Line        int
	Part        *billing.Part // copied from the line
	WholeMinor  *int64        // copied from the line
}

// GoneOn is a closed period whose own invoice is void.
type GoneOn struct {
	Of        Terms  // terms of the period
	OfInvoice string // the id of the void invoice
	Held             // base in advance of the period
}

// Correction is usage of a meter in a closed period that arrived after the period's invoice was finalized. A
// correction exists if Counted and Now differ.
type Correction struct {
	Meter     string
	Of        Terms  // terms of the closed period
	OfInvoice string // the id of the closed period's invoice
	OfNumber  string // the number of that invoice, for the description
	Counted   int64  // quantity of the line and all invoiced adjustments since, with or without a line
	Now       int64  // present sum of usage and adjustments, see Input.Usage

	BilledMinor int64 // amount billed so far by the line and its corrections
	NotedMinor  int64 // the part of BilledMinor that credit notes credited
}

// Result is an assembled invoice with the effects of its finalization.
type Result struct {
	// Invoice is a draft. The code that stores it must set ID, CustomerKey, Of, MadeAt and FinalizeAt. If the
	// invoice cannot be finalized, Held contains the reason, and no credit pays the invoice. An amount or a
	// total that is too large is 0.
	Invoice billing.Invoice
	// Empty reports that there is nothing to bill, so the period closes without an invoice.
	Empty bool
	// Applied contains the credits that finalization applies, in their order. Their sum is
	// −Invoice.CreditsMinor.
	Applied []Entry
	// Corrected contains the corrections that the invoice includes, also corrections without a line because
	// their amount is 0.
	Corrected []Correction
	// CarriedMinor is above 0 if the total is below 0. Finalization then grants a credit of kind carried with
	// that amount.
	CarriedMinor int64
}

// Entry is a credit entry to book. AmountMinor is the change of the credit's left_minor, and is below 0 for
// an applied or expired amount.
type Entry struct {
	Credit      string // the credit's id
	Kind        string // billing.EntryApplied or billing.EntryExpired
	AmountMinor int64
}
