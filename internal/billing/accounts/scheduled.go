package accounts

import (
	"context"
	"slices"

	"quotad/internal/billing"
	"quotad/internal/billing/timeline"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

const currencyOf = `SELECT document->>'currency' FROM plan_versions WHERE plan_id = $1 AND version = $2`

// scheduledEnd implements store.Billing.End.
func (h *Hooks) scheduledEnd(ctx context.Context, w *store.Writing, customer int64, s *store.Scheduled) (at int64, err error) {
	c, line, err := h.standing(ctx, w, customer)
	if err != nil {
		return 0, err
	}
	if c == nil || c.Open == nil {
		return 0, plans.ErrNoOpenPeriod
	}
	running, ok, err := c.running(line, *c.Open, c.Now)
	if err == nil && !ok {
		err = plans.ErrNoOpenPeriod
	}
	if err != nil {
		return 0, err
	}
	if s.Until == "" {
		if s.Until = plans.UntilPeriodEnd; running.Base != nil {
			s.Until = plans.UntilBaseEnd
		}
	}
	at = running.End
	if s.Until == plans.UntilBaseEnd {
		at = endOfBase(line, running)
	}
	if ends := c.Account.EndsAt; ends != nil && *ends <= at {
		return 0, plans.ErrEndsFirst
	}
	var currency string
	if err := w.QueryRow(ctx, currencyOf, s.PlanID, s.Version()).Scan(&currency); err != nil {
		return 0, err
	}
	if currency != c.Account.Currency {
		return 0, billing.ErrCurrency
	}
	return at, nil
}

// running returns the period whose end a scheduled change at the instant at waits for: the period that runs,
// which is the open period or a later one. A cut made at this instant lies just after the usage booked at the
// instant, so the clock may still show the instant. In that case the period after the cut is returned.
// Errors: timeline.ErrFar.
func (c *Customer) running(line *timeline.Timeline, open billing.Period, at int64) (p billing.Period, ok bool, err error) {
	p, ok, err = line.At(open, at)
	cut := p.End < p.FullEnd && !slices.Contains(c.Account.Cuts(nil), p.End)
	if err != nil || !ok || !cut || p.End-at >= plans.LeastNotice {
		return p, ok, err
	}
	p, ok = line.Next(&p)
	return p, ok, nil
}

// endOfBase returns the end of the last period that p's base price covers, as known at present.
func endOfBase(line *timeline.Timeline, p billing.Period) int64 {
	for base := p.Base; base != nil; {
		next, ok := line.Next(&p)
		if !ok || next.Chain != p.Chain || next.Base == nil || next.PlanID != p.PlanID || next.Base.FullEnd != base.FullEnd {
			break
		}
		p = next
	}
	return p.End
}
