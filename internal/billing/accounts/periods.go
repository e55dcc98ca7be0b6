package accounts

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/plans"
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
