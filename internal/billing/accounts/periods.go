package accounts

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/timeline"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
)

// nextPeriods opens the next periods and sets due_at. It runs after the drafts of the closed periods are
// written, because their finalization is also a step. If no period follows, the row keeps only its position
// in the chain.
const nextPeriods = `
	UPDATE open_periods u SET chain = o.chain, n = o.n, start_at = o.start_at, end_at = o.end_at, full_start = o.full_start,
		full_end = o.full_end, known_end = o.known_end, trial = o.trial, plan_id = o.plan_id, version = o.version,
		prices = o.prices, base = o.base, to_begin = false, opening_due = o.opening_due, owed_at = NULL, ` + unblocked + `, due_at = ` + dueOf + `
	FROM jsonb_populate_recordset(NULL::open_periods, $1) o WHERE u.customer_id = o.customer_id RETURNING u.customer_id, u.due_at`

// OpenRow is a row of the table open_periods, limited to the columns that are written when a period is
// closed.
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
	Base       *billing.Base          `json:"base"`
}

// OpenRowOf returns the row of next, the period that follows closed. A nil next means that no period follows.
func OpenRowOf(customer int64, closed, next *billing.Period) OpenRow {
	if next == nil {
		return OpenRow{Customer: customer, Chain: closed.Chain, N: closed.N + 1, Prices: map[string]plans.Price{}}
	}
	r := OpenRow{
		customer, next.Chain, next.N, &next.Start, &next.End, &next.FullStart, &next.FullEnd, &next.KnownEnd, next.Trial,
		&next.PlanID, &next.Version, next.Prices, false, next.Base,
	}
	// A new chain begins with an opening invoice. Otherwise the invoice of the period that ended contains the
	// base in advance. If no base is due in advance, no opening invoice is created.
	r.OpeningDue = next.Chain != closed.Chain && !next.Trial
	if r.Prices == nil {
		r.Prices = map[string]plans.Price{}
	}
	return r
}

// QueueNext opens the next periods. It calls dueAt for each customer with the instant of the next step, by
// the customer's clock.
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

// BeginPeriods fixes the prices of periods that were written in advance and begin now, because new plan
// versions may have been published in the meantime.
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

// PeriodKey identifies a billing period: the N-th period of a customer's chain.
type PeriodKey struct {
	Customer int64
	Chain, N int
}

const readClosed = `
	SELECT p.customer_id, p.chain, p.n, p.start_at, p.end_at, p.full_start, p.full_end, p.known_end, p.trial, p.plan_id, p.version, p.prices, p.base
	FROM unnest($1::bigint[], $2::integer[], $3::integer[]) AS w (customer, chain, n)
	JOIN periods p ON p.customer_id = w.customer AND p.chain = w.chain AND p.n = w.n`

// ClosedPeriods reads closed periods. The result omits keys of periods that are not closed.
func ClosedPeriods(ctx context.Context, q postgres.Querier, keys []PeriodKey) (map[PeriodKey]billing.Period, error) {
	customers := make([]int64, len(keys))
	chains, numbers := make([]int, len(keys)), make([]int, len(keys))
	for i, k := range keys {
		customers[i], chains[i], numbers[i] = k.Customer, k.Chain, k.N
	}
	return readPeriods(ctx, q, readClosed, customers, chains, numbers)
}

const readOpen = `
	SELECT customer_id, chain, n, start_at, end_at, full_start, full_end, known_end, trial, plan_id, version, prices, base FROM open_periods
	WHERE customer_id = ANY ($1) AND start_at IS NOT NULL`

// OpenPeriods reads the open periods of customers.
func OpenPeriods(ctx context.Context, q postgres.Querier, customers []int64) (map[PeriodKey]billing.Period, error) {
	return readPeriods(ctx, q, readOpen, customers)
}

// readPeriods reads periods. statement must return the columns of readClosed.
func readPeriods(ctx context.Context, q postgres.Querier, statement string, args ...any) (map[PeriodKey]billing.Period, error) {
	all := make(map[PeriodKey]billing.Period)
	var customer int64
	var p billing.Period
	var prices []byte
	err := postgres.ForEach(ctx, q, []any{
		&customer, &p.Chain, &p.N, &p.Start, &p.End, &p.FullStart, &p.FullEnd, &p.KnownEnd, &p.Trial, &p.PlanID, &p.Version, &prices, &p.Base,
	}, func() (err error) {
		p.Prices, err = ReadPrices(prices)
		all[PeriodKey{customer, p.Chain, p.N}] = p
		p.Base = nil // each row has a base of its own
		return err
	}, statement, args...)
	return all, err
}

// noOpening reports whether a chain's first period has no opening invoice yet.
const noOpening = `
	SELECT NOT EXISTS (SELECT FROM invoices WHERE customer_id = $1 AND chain = $2 AND n = 0 AND kind = 'opening')`

const setCuts = `UPDATE customers SET cuts = $2 WHERE id = $1 AND cuts <> $2`

// writeCuts writes the customer's own period boundaries for hits, and sets them in the customer's timeline. A
// start that is a regular boundary of the periods needs no cut.
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
		trial = $9, plan_id = $10, version = $11, prices = $12, to_begin = CASE WHEN $15 THEN $14 ELSE to_begin END, base = $16,
		owed_at = CASE WHEN $4::bigint IS NOT NULL THEN NULL WHEN start_at IS NULL THEN owed_at ELSE $17::bigint END, opening_due = $13 AND EXISTS (
			SELECT FROM plan_versions v WHERE v.plan_id = $10 AND v.version = $11 AND v.document->>'base_in' = 'advance')
	WHERE customer_id = $1`

// writeOpen writes the open period. If ok is false, billing is over, and items that wait for an invoice get
// an extra one.
//
// If restart is true, the terms count from the period's start. Otherwise the stored to_begin stays, whatever
// the clock shows, because a test clock may have been set back. If openingDue is true, the opening invoice is
// still due, provided that the base is due in advance. A trial has no opening invoice.
func writeOpen(ctx context.Context, w pgx.Tx, c *Customer, p *billing.Period, ok, restart, openingDue bool) error {
	if !ok {
		_, err := w.Exec(ctx, updateOpen, c.ID, c.chain, c.n, nil, nil, nil, nil, nil, false, nil, nil, []byte("{}"), false, false, true, nil, c.Now)
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
		p.Trial, p.PlanID, p.Version, stored, openingDue, p.Start > c.Now, restart, p.Base, c.Now)
	c.Open, c.openingDue = p, openingDue
	return err
}

// readBoundaries reads the data for the period boundaries. If a scheduled change has another interval, the
// present interval is in former_periods.
const readBoundaries = `
	SELECT c.id, c.key, c.timezone, c.billing_anchor, c.former_periods, c.cuts, v.document->>'interval', (v.document->>'interval_count')::integer, t.history
	FROM customers c LEFT JOIN customer_terms s ON s.customer_id = c.id AND s.waits
	JOIN plans p ON p.id = coalesce(s.plan_id, c.plan_id) JOIN plan_versions v ON v.plan_id = p.id AND v.version = p.latest_version
	LEFT JOIN test_clocks t ON t.id = c.test_clock_id
	WHERE c.id = ANY ($1)`

// readTermsRows reads the customers' terms, including a pending change, which counts from its instant.
const readTermsRows = `
	SELECT customer_id, change, how, from_at, limits_at, plan_id, joined_version, coalesce(pinned_version, 0) FROM customer_terms
	WHERE customer_id = ANY ($1) ORDER BY customer_id, change, how IN ('period_end', 'base_end')`

const readOwnPrices = `
	SELECT customer_id, change, from_at, at, meter, price FROM customer_prices
	WHERE customer_id = ANY ($1) ORDER BY customer_id, change`

const readPlanVersions = `
	SELECT plan_id, version, apply_to = 'all', change, (extract(epoch FROM created_at) * 1000000)::bigint, base_every FROM plan_versions
	WHERE plan_id IN (SELECT plan_id FROM customer_terms WHERE customer_id = ANY ($1))`

// Timelines reads the data that determines the periods of customers.
func Timelines(ctx context.Context, q postgres.Querier, customers map[int64]*Customer) (map[int64]*timeline.Timeline, error) {
	ids := slices.Sorted(maps.Keys(customers))
	all := make(map[int64]*timeline.Timeline, len(ids))
	for id, c := range customers {
		all[id] = &timeline.Timeline{StartsAt: c.Account.StartsAt, TrialEnd: c.Account.TrialEndsAt, End: c.Account.EndsAt, Archived: c.Archived}
		if from, to := c.Account.BreakFrom, c.Account.BreakTo; from != nil && to != nil {
			all[id].Break = &timeline.Break{From: *from, To: *to}
		}
		if from, end := c.Account.KnownFrom, c.Account.KnownEnd; from != nil && end != nil {
			all[id].Known = &timeline.Known{Start: *from, End: *end}
		}
	}
	b := new(pgx.Batch)
	queuePeriods(b, ids, all)
	queueTerms(b, ids, all)
	queueOwnPrices(b, ids, all)
	queueVersions(b, ids, all)
	return all, postgres.Send(ctx, q, b)
}

// queueTerms queues the read of all terms of the customers, past and present.
func queueTerms(b *pgx.Batch, ids []int64, all map[int64]*timeline.Timeline) {
	var id int64
	var terms timeline.Terms
	postgres.QueueEach(b, []any{&id, &terms.Change, &terms.How, &terms.From, &terms.At, &terms.PlanID, &terms.Joined, &terms.Pinned}, func() error {
		all[id].Terms = append(all[id].Terms, terms)
		return nil
	}, readTermsRows, ids)
}

// queueOwnPrices queues the read of customers' own prices.
func queueOwnPrices(b *pgx.Batch, ids []int64, all map[int64]*timeline.Timeline) {
	var id int64
	var own timeline.OwnPrice
	var price []byte
	postgres.QueueEach(b, []any{&id, &own.Change, &own.From, &own.At, &own.Meter, &price}, func() error {
		if own.Price = nil; price != nil {
			own.Price = new(plans.Price)
			if err := json.Unmarshal(price, own.Price); err != nil {
				return err
			}
		}
		all[id].Prices = append(all[id].Prices, own)
		return nil
	}, readOwnPrices, ids)
}

// queuePeriods queues the read of the boundaries and the test clocks.
func queuePeriods(b *pgx.Batch, ids []int64, all map[int64]*timeline.Timeline) {
	var id int64
	var key, zone, anchor string
	var former []byte
	var cuts, clock []int64
	var interval calendar.Interval
	postgres.QueueEach(b, []any{&id, &key, &zone, &anchor, &former, &cuts, &interval.Unit, &interval.Count, &clock}, func() error {
		var before []plans.FormerPeriods
		if len(former) > emptyDocument {
			if err := json.Unmarshal(former, &before); err != nil {
				return err
			}
		}
		periods, err := plans.StoredPeriods(key, zone, anchor, before, slices.Clone(cuts))
		periods.Interval = interval
		all[id].Periods, all[id].Clock = periods, slices.Clone(clock)
		return err
	}, readBoundaries, ids)
}

// queueVersions queues the read of plan versions. Each timeline gets every version of every plan that any of
// the customers was or is on.
func queueVersions(b *pgx.Batch, ids []int64, all map[int64]*timeline.Timeline) {
	b.Queue(readPlanVersions, ids).Query(func(rows pgx.Rows) error {
		versions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[timeline.Version])
		for _, t := range all {
			t.Versions = versions
		}
		return err
	})
}

// advanceLines selects the invoice lines that contain a base in advance. Such a line is on the opening
// invoice, or on the invoice of the period before the base began.
//
// A base for several periods may also be on the invoices of these periods. This happens when its end moved
// later, or when a change at its start charged it again. first is the base's first period, and own is the
// requested period.
//
// OFFSET 0 keeps the order of the joins. One invoice has few lines, but all customers together have many
// lines that begin at one instant.
const advanceLines = `
	SELECT w.n, l.from_at, l.to_at, l.plan_version, l.amount_minor, l.amount_minor + coalesce((
		SELECT sum(c.amount_minor) FROM invoice_lines c JOIN invoices ci ON ci.id = c.invoice_id AND ci.kind = 'credit_note'
		WHERE c.of_invoice = i.id AND c.of_line = l.n), 0), i.id::text, l.n, l.part, l.whole_minor
	FROM unnest($1::bigint[], $2::integer[], $3::integer[], $4::integer[], $5::bigint[], $6::boolean[])
		WITH ORDINALITY AS w (customer, chain, first, own, start_at, late, n)
	JOIN LATERAL (
		SELECT id FROM invoices WHERE customer_id = w.customer AND chain = w.chain AND invoices.n = w.first AND kind = 'opening' AND status <> 'void'
		UNION ALL
		SELECT id FROM invoices WHERE customer_id = w.customer AND chain = w.chain
			AND invoices.n >= w.first - CASE WHEN w.late THEN 0 ELSE 1 END AND invoices.n < w.own AND kind = 'period' AND status <> 'void'
		OFFSET 0
	) i ON true
	JOIN LATERAL (
		SELECT * FROM invoice_lines WHERE invoice_id = i.id AND kind = 'base' AND from_at >= w.start_at OFFSET 0
	) l ON true
	ORDER BY w.n, l.from_at, i.id, l.n`

// paidAhead reports whether a valid invoice contains the base price of the open period, charged in advance.
// Without an open period, the result is false.
func paidAhead(ctx context.Context, q postgres.Querier, c *Customer) (paid bool, err error) {
	if c.Open == nil {
		return false, nil
	}
	of := []billing.Base{c.Open.BaseOf()}
	if over := of[0].Over; over != nil {
		of = append(of, *over)
	}
	for i := range of {
		var held bool
		args := append(heldArgs(c.ID, c.Open.Chain, c.Open.N, &of[i]), c.Open.Start)
		if err := q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM (`+advanceLines+`) l WHERE l.to_at > $7)`, args...).Scan(&held); err != nil {
			return false, err
		}
		paid = paid || held
	}
	return paid, nil
}

// heldArgs returns the arguments of the query advanceLines for one base price.
func heldArgs(customer int64, chain, own int, b *billing.Base) []any {
	return []any{[]int64{customer}, []int{chain}, []int{b.N}, []int{own}, []int64{b.Start}, []bool{b.Late}}
}

// Holder is a period whose base price, charged in advance, may be on earlier invoices.
type Holder struct {
	Customer int64
	Terms    *assembly.Terms
	Into     *assembly.Held
}

// QueueHeld queues the read of base prices that earlier invoices charged in advance for the periods.
func QueueHeld(b *pgx.Batch, of []Holder) {
	var customers, starts []int64
	var chains, firsts, owns []int
	var late []bool
	var found []func(assembly.Advance, int64)
	queue := func(h Holder, base billing.Base, do func(assembly.Advance, int64)) {
		customers, starts, late = append(customers, h.Customer), append(starts, base.Start), append(late, base.Late)
		chains, firsts, owns = append(chains, h.Terms.Period.Chain), append(firsts, base.N), append(owns, h.Terms.Period.N)
		found = append(found, do)
	}
	for _, h := range of {
		queue(h, h.Terms.Period.BaseOf(), func(a assembly.Advance, amount int64) { h.Into.Add(h.Terms, a, amount) })
		if over, ok := h.Terms.Over(); ok {
			queue(h, over.Period.BaseOf(), func(a assembly.Advance, amount int64) { h.Into.AddOver(&over, a, amount) })
		}
	}
	if len(found) == 0 {
		return
	}
	var n int
	var a assembly.Advance
	var amount int64
	postgres.QueueEach(b, []any{&n, &a.From, &a.To, &a.PlanVersion, &amount, &a.LeftMinor, &a.Invoice, &a.Line, &a.Part, &a.WholeMinor}, func() error {
		found[n-1](a, amount)
		a.Part, a.WholeMinor = nil, nil // each row has values of its own
		return nil
	}, advanceLines, customers, chains, firsts, owns, starts, late)
}
