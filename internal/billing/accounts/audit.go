package accounts

import (
	"time"

	"quotad/internal/billing"
	"quotad/internal/plans"
)

type accountAudit struct {
	StartsAt    time.Time         `json:"starts_at"`
	TrialEndsAt *time.Time        `json:"trial_ends_at"`
	EndsAt      *time.Time        `json:"ends_at"`
	AfterEnd    string            `json:"after_end"`
	Seller      string            `json:"seller"`
	Buyer       billing.Buyer     `json:"buyer"`
	Taxes       []billing.TaxRate `json:"taxes"`
	DueDays     int               `json:"due_days"`

	OrderReference string   `json:"order_reference,omitempty"`
	Notes          []string `json:"notes,omitempty"`
}

func auditAccount(a *billing.Account) any {
	return accountAudit{
		instant(a.StartsAt), instantOrNil(a.TrialEndsAt), instantOrNil(a.EndsAt), a.AfterEnd, a.Seller, a.Buyer, a.Taxes, a.DueDays,
		a.OrderReference, a.Notes,
	}
}

type sellerAudit struct {
	billing.Seller
	CreditNotePrefix string `json:"credit_note_prefix,omitempty"`
	NextNumber       int64  `json:"next_number"`
}

func auditSeller(s *Seller) any { return sellerAudit{s.Seller, s.CreditNotePrefix, s.NextNumber} }

type priceAudit struct {
	plans.Price
	From time.Time `json:"from"`
}

func auditPrice(p *OwnPrice) any { return priceAudit{p.Price, instant(max(p.From, 0))} }

func instant(us int64) time.Time { return time.UnixMicro(us).UTC() }

func instantOrNil(us *int64) *time.Time {
	if us == nil {
		return nil
	}
	at := instant(*us)
	return &at
}
