package billing

// The kinds of payments.
const (
	PaymentMoney   = "payment" // came from outside
	PaymentCredits = "credits" // credits that were applied after the invoice was finalized
)

// MaxPayments is how many payments an invoice has at most, reversed ones too.
const MaxPayments = 1000

// Payment is what was paid of a finalized invoice at once. Credits that finalizing applies are none:
// the amount due is less for them.
type Payment struct {
	N           int    `json:"n"` // from 1
	Kind        string `json:"kind"`
	AmountMinor int64  `json:"amount_minor"` // above 0
	Reference   string `json:"reference"`    // for people
	At          int64  `json:"at"`           // µs by the customer's clock
	ReversedAt  *int64 `json:"reversed_at"`  // nil: it stands
	Reason      string `json:"reason"`       // why it was reversed
}

// NoteMoney is where the money of a credit note goes, in minor units. Together it is the note's total.
type NoteMoney struct {
	OpenMinor     int64 `json:"open_minor"`     // less is owed of the invoice
	CarriedMinor  int64 `json:"carried_minor"`  // becomes a credit of kind carried
	OutsideMinor  int64 `json:"outside_minor"`  // the seller pays it out
	ReturnedMinor int64 `json:"returned_minor"` // goes back to the credits that paid the invoice
}

// PaidMinor is what payments that stand paid.
func (i *Invoice) PaidMinor() (sum int64) {
	for n := range i.Payments {
		if i.Payments[n].ReversedAt == nil {
			sum += i.Payments[n].AmountMinor
		}
	}
	return sum
}

// MoneyMinor is what payments of kind payment paid that stand.
func (i *Invoice) MoneyMinor() (sum int64) {
	for n := range i.Payments {
		if p := &i.Payments[n]; p.ReversedAt == nil && p.Kind == PaymentMoney {
			sum += p.AmountMinor
		}
	}
	return sum
}

// RestMinor is what is due, less what credit notes took of what was open, less what was paid. It is 0
// of an invoice that is paid or credited.
func (i *Invoice) RestMinor() int64 { return i.AmountDueMinor - i.NotedMinor - i.PaidMinor() }

// OpenMinor is what is still to be paid. Only an invoice that is finalized has something open.
func (i *Invoice) OpenMinor() int64 {
	if i.Status != StatusFinalized {
		return 0
	}
	return max(0, i.RestMinor())
}

// StatusNow is the status of a final invoice that follows from what was paid and credited. Credit notes
// and void invoices keep theirs.
func (i *Invoice) StatusNow() string {
	switch {
	case i.Kind == KindCreditNote, i.Status == StatusVoid, i.Status == StatusDraft:
		return i.Status
	case i.RestMinor() > 0:
		return StatusFinalized
	case i.CreditedMinor > 0 && i.CreditedMinor >= i.TotalMinor:
		return StatusCredited
	}
	return StatusPaid
}

// settle says when the invoice was paid, and by which reference, where nothing is open.
func (i *Invoice) settle() {
	i.PaidAt, i.Reference = nil, ""
	for n := range i.Payments {
		if p := &i.Payments[n]; p.ReversedAt == nil && p.Kind == PaymentMoney && p.Reference != "" {
			i.Reference = p.Reference
		}
	}
	if i.Kind == KindCreditNote || i.Status != StatusPaid && i.Status != StatusCredited {
		return
	}
	for n := range i.Payments {
		if p := &i.Payments[n]; p.ReversedAt == nil {
			i.PaidAt = &p.At
		}
	}
	if i.PaidAt == nil && i.Status == StatusPaid && i.AmountDueMinor == 0 {
		i.PaidAt = i.FinalizedAt
	}
}

// SetPayments tells the invoice what was paid of it, in the order of n.
func (i *Invoice) SetPayments(payments []Payment) {
	i.Payments = payments
	i.settle()
}
