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
