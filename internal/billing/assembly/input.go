package assembly

import (
	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// Input is all that an invoice of a period is made of.
type Input struct {
	// Kind is billing.KindPeriod, also of the upcoming invoice, or billing.KindOpening.
	Kind string
	// Terms are of the period that the invoice is of.
	Terms Terms
	// Next is the period that begins where this one ends, of whatever plan. nil: none does. An
	// opening ignores it.
	Next *Terms
	// At is when the invoice is made or finalized, µs. Credits that have not expired then pay an extra invoice.
	At int64
	// Usage is Σ usage + Σ adjustments of the period by meter. A missing meter has none.
	// math.MaxInt64 means that many units or more, and holds the invoice; so does
	// math.MinInt64. A sum below 0 is rated as 0.
	Usage map[string]int64
	// Levels is what was held in the period, by level meter.
	Levels map[string]rating.Held
	// Meters are what the meters are called, by key. One that is missing is called by its key.
	Meters map[string]plans.Meter

	// Held is what earlier invoices hold of the period's base in advance.
	Held

	// GoneOn are periods whose own invoice became void. What it gave back of their bases in advance
	// is given back by this invoice.
	GoneOn []GoneOn

	// Corrections and Charges are what no invoice has taken yet. A correction that is too large
	// holds the invoice, and none takes it: see Invoice.Waiting.
	Corrections []Correction
	Charges     []billing.Charge
	// Fixed are the lines of the stored draft, not nil where there is one. Its corrections, its
	// charges and the base in advance (of a period's invoice: base from the period's end on) are
	// taken from it as they are, and Next is ignored. Its other lines are made again. So a draft
	// is assembled again with all its lines in Fixed, without Charges, and with no Corrections but
	// those that it waits for. GoneOn counts as ever: what is left may be less by now.
	Fixed []billing.Line

	// Account has the taxes, the buyer, the days to pay and the customer's id.
	Account *billing.Account
	Seller  billing.Seller
	// Credits are those of the customer as they stand. Only some of them count, see Result.
	Credits []billing.Credit
}

// Held is what invoices that are not void hold of the base in advance of a period.
type Held struct {
	// Advance are the lines of the base that the period lies in, in the order of their time. Where there
	// are none, nothing is given back. Where the base goes on longer than was known, the rest of it is
	// charged as base. There may be more lines than one only of a base for more intervals.
	Advance []Advance
	// Replaced are base lines of terms that a cut at the period's start replaced. They are given back
	// whole. TermsReplaced says so: the base in advance is then charged by the period's own invoice.
	Replaced      []Advance
	TermsReplaced bool
	// Over are the lines of the base that a cut at the period's start ended, see billing.Base.
	Over []Advance
}

// Add takes a line that an invoice holds. amount is what it came to.
func (h *Held) Add(t *Terms, line Advance, amount int64) {
	b := t.Period.BaseOf()
	switch {
	case line.PlanVersion == b.Version && amount == t.base(line.From, line.To):
		h.Advance = append(h.Advance, line)
	case b.N == t.Period.N && !b.Late: // else the invoice of period N has given it back
		h.Replaced, h.TermsReplaced = append(h.Replaced, line), true
	}
}

// AddOver takes a line of the base that a cut at the period's start ended. over are its terms.
func (h *Held) AddOver(over *Terms, line Advance, amount int64) {
	if line.PlanVersion == over.Period.Base.Version && amount == over.base(line.From, line.To) {
		h.Over = append(h.Over, line)
	}
}

// Advance is a base line in advance of an invoice that is not void.
type Advance struct {
	From, To    int64 // of the line
	PlanVersion int
	LeftMinor   int64 // its amount, less what credit notes took of it; 0 or more
	Invoice     string
	Line        int
	Part        *billing.Part // as the line has it
	WholeMinor  *int64        // as the line has it
}

// GoneOn is a closed period whose own invoice is void.
type GoneOn struct {
	Of        Terms  // of the period
	OfInvoice string // the void invoice's id
	Held             // of that period
}

// Correction is the usage of a meter in a closed period that came after its invoice was
// finalized. It is made where Counted and Now differ.
type Correction struct {
	Meter     string
	Of        Terms  // of the closed period
	OfInvoice string // the id of that period's invoice
	OfNumber  string // and its number, for the description
	Counted   int64  // the quantity of its line and of all that was taken since, also without a line
	Now       int64  // Σ usage + Σ adjustments, see Input.Usage

	BilledMinor int64 // what its line and all corrections so far came to
	NotedMinor  int64 // what credit notes took of these
}

// Result is an assembled invoice, and what finalizing it does.
type Result struct {
	// Invoice is a draft. Whoever stores it gives it ID, CustomerKey, Of, MadeAt and FinalizeAt.
	// Held says why it cannot be finalized; an amount that is too large is 0 then, and so are the
	// totals where their sum is. No credit pays it.
	Invoice billing.Invoice
	// Empty says that there is nothing to bill: the period closes without an invoice.
	Empty bool
	// Applied are the credits that finalizing applies, in their order. Their sum is
	// −Invoice.CreditsMinor.
	Applied []Entry
	// Corrected are the corrections that the invoice takes: those that have a line, and those
	// whose line would be of 0.
	Corrected []Correction
	// CarriedMinor is above 0 where the total is below 0: finalizing grants a credit of kind
	// carried of that amount.
	CarriedMinor int64
}

// Entry is a credit entry to book. AmountMinor is what it adds to the credit's left_minor: it
// is below 0 for what is applied or expired.
type Entry struct {
	Credit      string // its id
	Kind        string // billing.EntryApplied or EntryExpired
	AmountMinor int64
}
