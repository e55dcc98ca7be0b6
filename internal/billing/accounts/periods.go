package accounts

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/timeline"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
)

// nextPeriods opens the following periods, and sets due_at. It comes after the drafts of the closed
// periods, whose finalizing is due, too. Where no period follows, the row keeps its place in the
// chain, and nothing else.
const nextPeriods = `
	UPDATE open_periods u SET chain = o.chain, n = o.n, start_at = o.start_at, end_at = o.end_at, full_start = o.full_start,
		full_end = o.full_end, known_end = o.known_end, trial = o.trial, plan_id = o.plan_id, version = o.version,
		prices = o.prices, to_begin = false, opening_due = o.opening_due, ` + unblocked + `, due_at = ` + dueOf + `
	FROM jsonb_populate_recordset(NULL::open_periods, $1) o WHERE u.customer_id = o.customer_id RETURNING u.customer_id, u.due_at`

// OpenRow is a row of open_periods, as far as closing writes it.
type OpenRow struct {
	Customer   int64                  `json:"customer_id"`
	Chain      int                    `json:"chain"`
	N          int                    `json:"n"`
	Start      *int64                 `json:"start_at"`
	End        *int64                 `json:"end_at"`
	FullStart  *int64                 `json:"full_start"`
	FullEnd    *int64                 `json:"full_end"`
	KnownEnd   *int64                 `json:"known_end"`
	Trial      bool                   `json:"trial"`
	PlanID     *int32                 `json:"plan_id"`
	Version    *int                   `json:"version"`
	Prices     map[string]plans.Price `json:"prices"`
	OpeningDue bool                   `json:"opening_due"`
}

// OpenRowOf is the row of the period that follows closed; a nil next is none.
func OpenRowOf(customer int64, closed, next *billing.Period) OpenRow {
	if next == nil {
		return OpenRow{Customer: customer, Chain: closed.Chain, N: closed.N + 1, Prices: map[string]plans.Price{}}
	}
	r := OpenRow{
		customer, next.Chain, next.N, &next.Start, &next.End, &next.FullStart, &next.FullEnd, &next.KnownEnd, next.Trial,
		&next.PlanID, &next.Version, next.Prices, false,
	}
	// A new chain begins as the first one does. Otherwise the invoice of the period that ended
	// holds the base in advance. Where no base is due in advance, no opening is made.
	r.OpeningDue = next.Chain != closed.Chain && !next.Trial
	if r.Prices == nil {
		r.Prices = map[string]plans.Price{}
	}
	return r
}

// QueueNext opens the following periods. It calls dueAt for each customer with the instant of the next
// step, by the customer's clock.
func (h *Hooks) QueueNext(ctx context.Context, b *pgx.Batch, open []OpenRow, dueAt func(customer, at int64)) error {
	if len(open) == 0 {
		return nil
	}
	now, unread := h.Now(ctx)
	rows, bad := json.Marshal(open)
	if err := errors.Join(unread, bad); err != nil {
		return err
	}
	var customer, at int64
	postgres.QueueEach(b, []any{&customer, &at}, func() error {
		dueAt(customer, at)
		return nil
	}, nextPeriods, string(rows), h.closeDelay, now)
	return nil
}

// BeginPeriods fixes what prices periods that were written before they began: they begin now. Versions
// of plans may have come meanwhile.
func BeginPeriods(ctx context.Context, tx pgx.Tx, customers map[int64]*Customer) error {
	lines, err := Timelines(ctx, tx, customers)
	if err != nil {
		return err
	}
	for id, c := range customers {
		p, ok := lines[id].Again(c.Open, true)
		opening := false
		if err := tx.QueryRow(ctx, noOpening, id, c.chain).Scan(&opening); err != nil {
			return err
		}
		if err := writeOpen(ctx, tx, c, &p, ok, true, opening && p.N == 0); err != nil {
			return err
		}
	}
	return nil
}

// PeriodKey names a billing period: the N-th of a customer's chain.
type PeriodKey struct {
	Customer int64
	Chain, N int
}

const readClosed = `
	SELECT p.customer_id, p.chain, p.n, p.start_at, p.end_at, p.full_start, p.full_end, p.known_end, p.trial, p.plan_id, p.version, p.prices
	FROM unnest($1::bigint[], $2::integer[], $3::integer[]) AS w (customer, chain, n)
	JOIN periods p ON p.customer_id = w.customer AND p.chain = w.chain AND p.n = w.n`

// ClosedPeriods reads closed periods. Those that are not closed are left out.
func ClosedPeriods(ctx context.Context, q postgres.Querier, keys []PeriodKey) (map[PeriodKey]billing.Period, error) {
	customers := make([]int64, len(keys))
	chains, numbers := make([]int, len(keys)), make([]int, len(keys))
	for i, k := range keys {
		customers[i], chains[i], numbers[i] = k.Customer, k.Chain, k.N
	}
	return readPeriods(ctx, q, readClosed, customers, chains, numbers)
}

const readOpen = `
	SELECT customer_id, chain, n, start_at, end_at, full_start, full_end, known_end, trial, plan_id, version, prices FROM open_periods
	WHERE customer_id = ANY ($1) AND start_at IS NOT NULL`

// OpenPeriods reads the open periods of customers.
func OpenPeriods(ctx context.Context, q postgres.Querier, customers []int64) (map[PeriodKey]billing.Period, error) {
	return readPeriods(ctx, q, readOpen, customers)
}

// readPeriods reads periods. statement has the columns of readClosed.
func readPeriods(ctx context.Context, q postgres.Querier, statement string, args ...any) (map[PeriodKey]billing.Period, error) {
	all := make(map[PeriodKey]billing.Period)
	var customer int64
	var p billing.Period
	var prices []byte
	err := postgres.ForEach(ctx, q, []any{
		&customer, &p.Chain, &p.N, &p.Start, &p.End, &p.FullStart, &p.FullEnd, &p.KnownEnd, &p.Trial, &p.PlanID, &p.Version, &prices,
	}, func() (err error) {
		p.Prices, err = ReadPrices(prices)
		all[PeriodKey{customer, p.Chain, p.N}] = p
		return err
	}, statement, args...)
	return all, err
}

// noOpening: a chain's first period has no opening invoice yet.
const noOpening = `
	SELECT NOT EXISTS (SELECT FROM invoices WHERE customer_id = $1 AND chain = $2 AND n = 0 AND kind = 'opening')`

const setCuts = `UPDATE customers SET cuts = $2 WHERE id = $1 AND cuts <> $2`

// writeCuts writes the boundaries that are the customer's own, for hits, and gives them to its
// timeline. A start that is a boundary of the periods anyway needs no cut.
func writeCuts(ctx context.Context, w *store.Writing, c *Customer, line *timeline.Timeline) error {
	line.Periods.Cuts = nil
	cuts := []int64{}
	if start, _ := line.Periods.Period(c.Account.StartsAt); start != c.Account.StartsAt {
		cuts = append(cuts, c.Account.StartsAt)
	}
	cuts = c.Account.Cuts(cuts)
	if len(cuts) > 0 {
		line.Periods.Cuts = cuts
	}
	_, err := w.Exec(ctx, setCuts, c.ID, cuts)
	return err
}

const updateOpen = `
	UPDATE open_periods SET chain = $2, n = $3, start_at = $4, end_at = $5, full_start = $6, full_end = $7, known_end = $8,
		trial = $9, plan_id = $10, version = $11, prices = $12, to_begin = CASE WHEN $15 THEN $14 ELSE to_begin END, opening_due = $13 AND EXISTS (
			SELECT FROM plan_versions v WHERE v.plan_id = $10 AND v.version = $11 AND v.document->>'base_in' = 'advance')
	WHERE customer_id = $1`

// writeOpen writes the open period; without one billing is over. restart: its terms count from its start.
// Else it has begun or not as before, whatever the clock shows: a test clock may have been set back.
// openingDue: its opening is still to be made, if its base is due in advance. A trial has none.
func writeOpen(ctx context.Context, w pgx.Tx, c *Customer, p *billing.Period, ok, restart, openingDue bool) error {
	if !ok {
		_, err := w.Exec(ctx, updateOpen, c.ID, c.chain, c.n, nil, nil, nil, nil, nil, false, nil, nil, []byte("{}"), false, false, true)
		c.Open = nil
		return err
	}
	openingDue = openingDue && !p.Trial
	prices := p.Prices
	if prices == nil {
		prices = map[string]plans.Price{}
	}
	stored, err := json.Marshal(prices)
	if err != nil {
		return err
	}
	_, err = w.Exec(ctx, updateOpen, c.ID, p.Chain, p.N, p.Start, p.End, p.FullStart, p.FullEnd, p.KnownEnd,
		p.Trial, p.PlanID, p.Version, stored, openingDue, p.Start > c.Now, restart)
	c.Open, c.openingDue = p, openingDue
	return err
}
