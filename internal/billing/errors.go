package billing

import (
	"errors"
	"fmt"
)

// Sentinels that the API turns into problems. Faults of fields are model.FieldErrors.
var (
	ErrUnknownInvoice = errors.New("no such invoice")
	ErrUnknownLine    = errors.New("the invoice has no such line")
	// ErrNoPeriod: billing of the customer has not begun, or is over.
	ErrNoPeriod = errors.New("no billing period of the customer is open, so no invoice is coming up")
	// ErrFarPreview: a change counts so late that nobody can say what is billed then.
	ErrFarPreview = errors.New("more than 24 billing periods lie between now and the change: preview it when it is nearer")
	// ErrState: the status of an invoice does not allow what was asked for, see StateError.
	ErrState = errors.New("the invoice's status does not allow that")
	// ErrHeld: an invoice cannot be finalized, see Invoice.Held.
	ErrHeld = errors.New("the invoice is held and cannot be finalized")
	// ErrReferred: an invoice that another one corrects, credits or gives back in part cannot become void.
	ErrReferred = errors.New("a correction or a credit note refers to the invoice, or a later invoice gave back a part of its base price as unused, so it cannot be void: use a credit note")
	// ErrTooMuch: more was to be credited than is left.
	ErrTooMuch = errors.New("more is to be credited than is left of the invoice")
	// ErrMoreThanOpen: more was to be paid than is open.
	ErrMoreThanOpen = errors.New("more is to be paid than is open of the invoice, and nothing was noted")
	// ErrNoCredits: nothing can pay what is open.
	ErrNoCredits = errors.New("the customer has no credit left in the invoice's currency that has not expired, and nothing was done")
	// ErrUnknownCredit: the customer has no credit of that id.
	ErrUnknownCredit = errors.New("the customer has no such credit")
	// ErrMoreThanLeft: more was to be withdrawn than is left.
	ErrMoreThanLeft = errors.New("so much cannot be withdrawn of the credit, and nothing was done")
	// ErrUnknownPayment: the invoice has no payment of that n.
	ErrUnknownPayment = errors.New("the invoice has no such payment")
	// ErrReversed: a payment is reversed once.
	ErrReversed = errors.New("the payment was reversed already")
	// ErrNoted: a credit note gave back some of the credits that a payment of kind credits took.
	ErrNoted = errors.New("a credit note has returned some of the credits of this payment, so it cannot be reversed")
	// ErrMoneyStands: a paid invoice cannot become void.
	ErrMoneyStands = errors.New("a payment of the invoice stands, so it cannot be void: reverse the payment, or use a credit note")
	// ErrTooManyPayments: see MaxPayments.
	ErrTooManyPayments = fmt.Errorf("the invoice has %d payments, reversed ones too, which is the most: take what is open off by a credit note", MaxPayments)
	// ErrAnonymous: customers that nobody has named are not billed.
	ErrAnonymous = errors.New("the customer is anonymous, and is not billed: name it with PUT /v1/customers/{key} first")
	// ErrBeforePeriod: what a period is billed by cannot change before it.
	ErrBeforePeriod = errors.New("the instant is before the open billing period, and what came before is billed already")
	// ErrPaidAhead: billing cannot end at the start of a period whose base in advance is billed.
	ErrPaidAhead = errors.New("the open billing period's base price is on an invoice already: let billing end a microsecond after the period's start, or later")
	// ErrClosing: billing was over, began again, and is to end a second time before the first is billed.
	ErrClosing = errors.New("the customer's last billing period is still being closed: try again when its invoice is there")
	// ErrCurrency: the currency of a customer is fixed when its first period opens.
	ErrCurrency = errors.New("the plan's currency is not the customer's, which is fixed since its first billing period began: choose a plan in that currency")
	// ErrUnknownSeller: GET of a seller that is not there.
	ErrUnknownSeller = errors.New("no such seller")
	// ErrUnknownPrice: the customer has no price of its own of the meter.
	ErrUnknownPrice = errors.New("the customer has no price of its own of this meter")
	// ErrUnknownCap: the customer has no cap of the meter.
	ErrUnknownCap = errors.New("the customer has no cap of this meter")
	// ErrTooManyTerms: see MaxTerms.
	ErrTooManyTerms = fmt.Errorf("the customer's terms were changed %d times in this billing period, which is the most", MaxTerms)
	// ErrTooManyCharges: see MaxCharges.
	ErrTooManyCharges = fmt.Errorf("the customer has %d charges that no invoice has taken yet, which is the most", MaxCharges)
	// ErrNoLine: units of that meter and time cost nothing.
	ErrNoLine = errors.New("no invoice would have a line of it: the billing period of that time has no price of the meter, its invoice was taken back, or nothing is billed then")
	// ErrReconciling: a node reconciles once at a time.
	ErrReconciling = errors.New("this node reconciles already: ask again when it has ended, or ask another node")
	// ErrReconcileTime: the deadline came before the end of all rows.
	ErrReconcileTime = errors.New("there are too many rows to check within the time of a request: run `quotad reconcile`, which may take longer")
	// ErrOtherPayload: an id stands for another request of the customer already.
	ErrOtherPayload = errors.New("the id was used for another request of this customer: ids are unique for ever. Nothing was done")
)

const (
	// MaxTerms is how often a customer's terms may be changed within one period.
	MaxTerms = 100
	// MaxCharges is how many charges may wait for an invoice.
	MaxCharges = 1000
	// MaxMinor is the largest amount, in minor units, above zero or below.
	MaxMinor = int64(1e15 - 1)
)

// NamelessSeller says what keeps the papers of a seller without a name back, and what to do.
func NamelessSeller(key string) string {
	return "Its seller, " + key + ", has no name. Write one with PUT /v1/sellers/" + key + "."
}

// StateError is an ErrState that says what the status is, and what may be done in it.
type StateError struct {
	Status string // the present one
	Want   string // what can be done with which invoices, for people
}

func (e *StateError) Error() string { return "the invoice is " + e.Status + ": " + e.Want }

// Unwrap is ErrState.
func (e *StateError) Unwrap() error { return ErrState }
