package billing

// Kinds of payments.
const (
	PaymentMoney   = "payment" // money from outside
	PaymentCredits = "credits" // credits applied after the invoice was finalized
)

// MaxPayments is the maximum number of payments of an invoice, including reversed payments.
const MaxPayments = 1000

// Payment is one payment of a finalized invoice. Credits that are applied at finalization are not payments,
// because they reduce the amount due.
type Payment struct {
	N           int    `json:"n"` // from 1
	Kind        string `json:"kind"`
	AmountMinor int64  `json:"amount_minor"` // above 0
	Reference   string `json:"reference"`    // for people
	At          int64  `json:"at"`           // µs by the customer's clock
	ReversedAt  *int64 `json:"reversed_at"`  // nil if the payment is not reversed
	Reason      string `json:"reason"`       // the reason for the reversal
}

// NoteMoney is the distribution of a credit note's money, in minor units. The sum of its fields is the note's
// total.
type NoteMoney struct {
	OpenMinor     int64 `json:"open_minor"`     // reduces the open amount of the invoice
	CarriedMinor  int64 `json:"carried_minor"`  // becomes a credit of kind carried
	OutsideMinor  int64 `json:"outside_minor"`  // paid out by the seller
	ReturnedMinor int64 `json:"returned_minor"` // returned to the credits that paid the invoice
}

// PaidMinor returns the sum of the payments that are not reversed.
func (i *Invoice) PaidMinor() (sum int64) {
	for n := range i.Payments {
		if i.Payments[n].ReversedAt == nil {
			sum += i.Payments[n].AmountMinor
		}
	}
	return sum
}

// MoneyMinor returns the sum of the payments of kind payment that are not reversed.
func (i *Invoice) MoneyMinor() (sum int64) {
	for n := range i.Payments {
		if p := &i.Payments[n]; p.ReversedAt == nil && p.Kind == PaymentMoney {
			sum += p.AmountMinor
		}
	}
	return sum
}

// RestMinor returns the amount due, less the open amount that credit notes credited, less the payments. The
// result is 0 for an invoice that is paid or credited.
func (i *Invoice) RestMinor() int64 { return i.AmountDueMinor - i.NotedMinor - i.PaidMinor() }

// OpenMinor returns the amount that is still to be paid. Only a finalized invoice has an open amount.
func (i *Invoice) OpenMinor() int64 {
	if i.Status != StatusFinalized {
		return 0
	}
	return max(0, i.RestMinor())
}

// StatusNow returns the status of a final invoice that follows from its payments and credit notes. Credit
// notes and void invoices keep their status.
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

// settle sets Reference to that of the last unreversed payment, and sets PaidAt if the invoice is paid or
// credited.
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

// SetPayments sets the invoice's payments, in the order of N, and derives PaidAt and Reference from them.
func (i *Invoice) SetPayments(payments []Payment) {
	i.Payments = payments
	i.settle()
}
