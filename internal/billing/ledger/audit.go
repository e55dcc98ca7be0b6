package ledger

import (
	"time"

	"quotad/internal/billing"
	"quotad/internal/plans"
)

// What the audit trail keeps of each thing, as the API shows it.

type invoiceAudit struct {
	Customer       string      `json:"customer"`
	Kind           string      `json:"kind"`
	Status         string      `json:"status"`
	Number         string      `json:"number,omitempty"`
	Currency       string      `json:"currency"`
	TotalMinor     int64       `json:"total_minor"`
	AmountDueMinor int64       `json:"amount_due_minor"`
	Reference      string      `json:"reference,omitempty"`
	VoidReason     string      `json:"void_reason,omitempty"`
	CreditNote     *creditNote `json:"credit_note,omitempty"`
}

// creditNote is the note that a change made.
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
		TotalMinor: i.TotalMinor, AmountDueMinor: i.AmountDueMinor, Reference: i.Reference, VoidReason: i.VoidReason,
	}
}

type accountAudit struct {
	StartsAt    time.Time         `json:"starts_at"`
	TrialEndsAt *time.Time        `json:"trial_ends_at"`
	EndsAt      *time.Time        `json:"ends_at"`
	Seller      string            `json:"seller"`
	Buyer       billing.Buyer     `json:"buyer"`
	Taxes       []billing.TaxRate `json:"taxes"`
	DueDays     int               `json:"due_days"`
}

func auditAccount(a *billing.Account) any {
	return accountAudit{
		instant(a.StartsAt), instantOrNil(a.TrialEndsAt), instantOrNil(a.EndsAt), a.Seller, a.Buyer, a.Taxes, a.DueDays,
	}
}

type priceAudit struct {
	plans.Price
	From time.Time `json:"from"`
}

func auditPrice(p *OwnPrice) any { return priceAudit{p.Price, instant(max(p.From, 0))} }

type chargeAudit struct {
	Description string    `json:"description"`
	AmountMinor int64     `json:"amount_minor"`
	Currency    string    `json:"currency"`
	At          time.Time `json:"at"`
}

func auditCharge(c *billing.Charge) any {
	return chargeAudit{c.Description, c.AmountMinor, c.Currency, instant(c.At)}
}

type creditAudit struct {
	Kind        string     `json:"kind"`
	AmountMinor int64      `json:"amount_minor"`
	Currency    string     `json:"currency"`
	Priority    int        `json:"priority"`
	ExpiresAt   *time.Time `json:"expires_at"`
}

func auditCredit(c *billing.Credit) any {
	return creditAudit{c.Kind, c.AmountMinor, c.Currency, c.Priority, instantOrNil(c.ExpiresAt)}
}

func instant(us int64) time.Time { return time.UnixMicro(us).UTC() }

func instantOrNil(us *int64) *time.Time {
	if us == nil {
		return nil
	}
	at := instant(*us)
	return &at
}

// madeOr is the action of a write that may make what it writes.
func madeOr(created bool) string {
	if created {
		return plans.AuditCreate
	}
	return plans.AuditChange
}
