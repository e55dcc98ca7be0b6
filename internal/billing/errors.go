package billing

import (
	"errors"
	"fmt"
)

// Sentinels that the API converts to problems. Errors in fields are model.FieldErrors.
var (
	ErrUnknownInvoice = errors.New("no such invoice")
	ErrUnknownLine    = errors.New("the invoice has no such line")
	// ErrNoPeriod reports that the customer's billing has not begun or is over.
	ErrNoPeriod = errors.New("no billing period of the customer is open, so no invoice is coming up")
	// ErrFarPreview reports that a change takes effect too many billing periods from now to be previewed.
	ErrFarPreview = errors.New("more than 24 billing periods lie between now and the change: preview it when it is nearer")
	// ErrState reports that the invoice's status does not allow the requested operation, see StateError.
	ErrState = errors.New("the invoice's status does not allow that")
	// ErrHeld reports that an invoice cannot be finalized, see Invoice.Held.
	ErrHeld = errors.New("the invoice is held and cannot be finalized")
	// ErrReferred reports that an invoice cannot become void because another invoice corrects it, credits it
	// or gives back a part of it.
	ErrReferred = errors.New("a correction or a credit note refers to the invoice, or a later invoice gave back a part of its base price as unused, so it cannot be void: use a credit note")
	// ErrTooMuch reports a credit note of more than the invoice's uncredited amount.
	ErrTooMuch = errors.New("more is to be credited than is left of the invoice")
	// ErrMoreThanOpen reports a payment of more than the open amount.
	ErrMoreThanOpen = errors.New("more is to be paid than is open of the invoice, and nothing was noted")
	// ErrNoCredits reports that the customer has no credits that can pay the open amount.
	ErrNoCredits = errors.New("the customer has no credit left in the invoice's currency that has not expired, and nothing was done")
	// ErrUnknownCredit reports that the customer has no credit with the given id.
	ErrUnknownCredit = errors.New("the customer has no such credit")
	// ErrMoreThanLeft reports a withdrawal of more than the credit's remaining amount.
	ErrMoreThanLeft = errors.New("so much cannot be withdrawn of the credit, and nothing was done")
	// ErrUnknownPayment reports that the invoice has no payment with the given n.
	ErrUnknownPayment = errors.New("the invoice has no such payment")
	// ErrReversed reports the second reversal of a payment.
	ErrReversed = errors.New("the payment was reversed already")
	// ErrNoted reports that a credit note has returned some of the credits that a payment of kind credits
	// used.
	ErrNoted = errors.New("a credit note has returned some of the credits of this payment, so it cannot be reversed")
	// ErrMoneyStands reports that an invoice cannot become void because it has a payment that is not
	// reversed.
	ErrMoneyStands = errors.New("a payment of the invoice stands, so it cannot be void: reverse the payment, or use a credit note")
	// ErrTooManyPayments reports that the invoice has MaxPayments payments already.
	ErrTooManyPayments = fmt.Errorf("the invoice has %d payments, reversed ones too, which is the most: take what is open off by a credit note", MaxPayments)
	// ErrAnonymous reports an anonymous customer, which is not billed until an admin names it.
	ErrAnonymous = errors.New("the customer is anonymous, and is not billed: name it with PUT /v1/customers/{key} first")
	// ErrBeforePeriod reports a change of billing terms at an instant before the open period.
	ErrBeforePeriod = errors.New("the instant is before the open billing period, and what came before is billed already")
	// ErrPaidAhead reports that billing cannot end at the start of a period whose base price in advance has
	// been billed.
	ErrPaidAhead = errors.New("the open billing period's base price is on an invoice already: let billing end a microsecond after the period's start, or later")
	// ErrClosing reports that billing ended, began again, and is to end a second time before its last period
	// was billed.
	ErrClosing = errors.New("the customer's last billing period is still being closed: try again when its invoice is there")
	// ErrCurrency reports a currency other than the customer's, which is fixed when the first period opens.
	ErrCurrency = errors.New("the plan's currency is not the customer's, which is fixed since its first billing period began: choose a plan in that currency")
	// ErrUnknownSeller reports a GET of a seller that does not exist.
	ErrUnknownSeller = errors.New("no such seller")
	// ErrUnknownPrice reports that the customer has no price of its own for the meter.
	ErrUnknownPrice = errors.New("the customer has no price of its own of this meter")
	// ErrUnknownCap reports that the customer has no cap on the meter.
	ErrUnknownCap = errors.New("the customer has no cap of this meter")
	// ErrTooManyTerms reports more than MaxTerms changes of a customer's terms in one period.
	ErrTooManyTerms = fmt.Errorf("the customer's terms were changed %d times in this billing period, which is the most", MaxTerms)
	// ErrTooManyCharges reports that MaxCharges charges are already waiting for an invoice.
	ErrTooManyCharges = fmt.Errorf("the customer has %d charges that no invoice has taken yet, which is the most", MaxCharges)
	// ErrNoLine reports that units of the meter cost nothing at the given time.
	ErrNoLine = errors.New("no invoice would have a line of it: the billing period of that time has no price of the meter, its invoice was taken back, or nothing is billed then")
	// ErrReconciling reports that the node is already reconciling; a node runs one reconciliation at a time.
	ErrReconciling = errors.New("this node reconciles already: ask again when it has ended, or ask another node")
	// ErrReconcileTime reports that the deadline passed before all rows were checked.
	ErrReconcileTime = errors.New("there are too many rows to check within the time of a request: run `quotad reconcile`, which may take longer")
	// ErrOtherPayload reports that the customer has already used the id for another request.
	ErrOtherPayload = errors.New("the id was used for another request of this customer: ids are unique for ever. Nothing was done")
)

const (
	// MaxTerms is the maximum number of changes of a customer's terms within one period.
	MaxTerms = 100
	// MaxCharges is the maximum number of charges that may wait for an invoice.
	MaxCharges = 1000
	// MaxMinor is the largest absolute amount, in minor units.
	MaxMinor = int64(1e15 - 1)
)

// NamelessSeller returns the message for invoices that are held because their seller has no name. It includes
// the remedy.
func NamelessSeller(key string) string {
	return "Its seller, " + key + ", has no name. Write one with PUT /v1/sellers/" + key + "."
}

// StateError is an ErrState with the invoice's status and the operations that the status allows.
type StateError struct {
	Status string // the current status
	Want   string // the operations and the invoices that they allow, as text
}

func (e *StateError) Error() string { return "the invoice is " + e.Status + ": " + e.Want }

// Unwrap returns ErrState.
func (e *StateError) Unwrap() error { return ErrState }
