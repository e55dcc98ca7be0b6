package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
	"quotad/internal/quota/usage"
)

const insertTerms = `
	INSERT INTO customer_terms (customer_id, change, how, from_at, limits_at, plan_id, joined_version, pinned_version, timezone, billing_anchor)
	SELECT id, $2, $5, $3, $4, plan_id, joined_version, pinned_version, timezone, billing_anchor FROM customers WHERE id = $1`

// recordTerms records the customer's present terms for the billing periods that start at from or later.
func (w *Writing) recordTerms(ctx context.Context, customer int64, how string, from, now int64) error {
	_, err := w.Exec(ctx, insertTerms, customer, w.Number, from, now, how)
	return err
}

// advancePrices moves pending customer-specific prices forward to the cut, because the next period begins
// there now.
const advancePrices = `
	INSERT INTO customer_prices (customer_id, meter, change, from_at, at, price)
	SELECT customer_id, meter, $2, $3, $4, price FROM (
		SELECT DISTINCT ON (meter) * FROM customer_prices WHERE customer_id = $1 ORDER BY meter, change DESC) p
	WHERE from_at > $3`

// RestartTerms moves all terms and prices that are pending for a later billing period forward to the
// instant at which the customer's billing resumes.
func (w *Writing) RestartTerms(ctx context.Context, c *plans.Customer, at int64) error {
	if err := w.recordTerms(ctx, c.ID, plans.TermsResume, at, at); err != nil {
		return err
	}
	if _, err := w.Exec(ctx, advancePrices, c.ID, w.Number, at, at); err != nil {
		return err
	}
	if last := len(c.Former) - 1; last < 0 || c.Former[last].Until <= at {
		return nil
	}
	return w.MoveFormer(ctx, c, at)
}

// MoveFormer sets the end of a customer's newest former periods.
func (w *Writing) MoveFormer(ctx context.Context, c *plans.Customer, until int64) error {
	c.Former[len(c.Former)-1].Until = until
	stored, err := json.Marshal(c.Former)
	if err != nil {
		return err
	}
	_, err = w.Exec(ctx, setFormer, c.ID, stored)
	return err
}

// sameTerms reports whether two states of a customer have the same terms.
func sameTerms(a, b *plans.Customer) bool {
	pin := func(c *plans.Customer) int {
		if c.PlanVersion == nil {
			return 0
		}
		return *c.PlanVersion
	}
	return a.Plan == b.Plan && pin(a) == pin(b) && a.Timezone == b.Timezone && a.BillingAnchor == b.BillingAnchor
}

const metersToMark = `SELECT id, coalesce(key = ANY ($1), false) FROM meters ORDER BY id`

// Mark draws a boundary in a customer's usage. Mark returns the instant from which new charges count:
// now, µs, or just after the last charge if that charge is at now or later. A commit and a refund count
// as charges. Hits in progress are judged again with the changed customer, so none of them counts before
// the boundary. meters are the meters whose usage is billed.
//
// A test clock does not advance by itself. Units that were charged or adjusted at the very instant that
// the clock shows are before the boundary, so they belong to the period that ends there.
func (w *Writing) Mark(ctx context.Context, customer, now int64, meters []string) (after int64, err error) {
	if err := w.store.ByKey(ctx, w); err != nil {
		return 0, err
	}
	mark := usage.Mark{Customer: customer, Change: w.Number, Now: now}
	var id int32
	var billed bool
	rows, _ := w.Query(ctx, metersToMark, meters)
	if _, err := pgx.ForEachRow(rows, []any{&id, &billed}, func() error {
		mark.Meters, mark.Make = append(mark.Meters, id), append(mark.Make, billed)
		return nil
	}); err != nil {
		return 0, fmt.Errorf("read the meters: %w", err)
	}
	last, err := mark.Draw(ctx, w)
	if err != nil {
		return 0, fmt.Errorf("mark the counters: %w", err)
	}
	return max(now, last+1), nil
}
