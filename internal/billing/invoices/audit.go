package invoices

import (
	"time"

	"quotad/internal/billing"
)

// Contents of audit entries, in the form that the API shows.

type invoiceAudit struct {
	Customer       string      `json:"customer"`
	Kind           string      `json:"kind"`
	Status         string      `json:"status"`
	Number         string      `json:"number,omitempty"`
	Currency       string      `json:"currency"`
	TotalMinor     int64       `json:"total_minor"`
	AmountDueMinor int64       `json:"amount_due_minor"`
	OpenMinor      int64       `json:"open_minor"`
	Reference      string      `json:"reference,omitempty"`
	VoidReason     string      `json:"void_reason,omitempty"`
	CreditNote     *creditNote `json:"credit_note,omitempty"`

	Payment *paymentAudit `json:"payment,omitempty"`
}

// paymentAudit is a payment that an operation created or reversed.
type paymentAudit struct {
	N              int    `json:"n"`
	Kind           string `json:"kind"`
	AmountMinor    int64  `json:"amount_minor"`
	Reference      string `json:"reference,omitempty"`
	ReversalReason string `json:"reversal_reason,omitempty"`
}

// creditNote is a credit note that an operation created.
type creditNote struct {
	ID         string `json:"id"`
	Number     string `json:"number"`
	TotalMinor int64  `json:"total_minor"`
	Reason     string `json:"reason"`
	To         string `json:"to"`
}

func auditInvoice(i *billing.Invoice) invoiceAudit {
	return invoiceAudit{
		Customer: i.CustomerKey, Kind: i.Kind, Status: i.Status, Number: i.Number, Currency: i.Currency,
		TotalMinor: i.TotalMinor, AmountDueMinor: i.AmountDueMinor, OpenMinor: i.OpenMinor(), Reference: i.Reference, VoidReason: i.VoidReason,
	}
}

type chargeAudit struct {
	Description string    `json:"description"`
	AmountMinor int64     `json:"amount_minor"`
	Currency    string    `json:"currency"`
	At          time.Time `json:"at"`
}

func auditCharge(c *billing.Charge) any {
	return chargeAudit{c.Description, c.AmountMinor, c.Currency, time.UnixMicro(c.At).UTC()}
}

type creditAudit struct {
	Kind        string     `json:"kind"`
	AmountMinor int64      `json:"amount_minor"`
	Currency    string     `json:"currency"`
	Priority    int        `json:"priority"`
	ExpiresAt   *time.Time `json:"expires_at"`
}

// creditLeft is the remaining amount of a credit, with the reason for a withdrawal.
type creditLeft struct {
	LeftMinor int64  `json:"left_minor"`
	Reason    string `json:"reason,omitempty"`
}

func auditCredit(c *billing.Credit) any {
	a := creditAudit{c.Kind, c.AmountMinor, c.Currency, c.Priority, nil}
	if c.ExpiresAt != nil {
		at := time.UnixMicro(*c.ExpiresAt).UTC()
		a.ExpiresAt = &at
	}
	return a
}
