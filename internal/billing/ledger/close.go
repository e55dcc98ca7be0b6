package ledger

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/timeline"
	"quotad/internal/plans"
)

// closePeriods closes the open periods of customers, whose lock the transaction has: it fences
// their counters, writes the period and its draft, and opens the next one. Customers that
// cannot be closed are left as they are, and their jobs have an error.
func (l *Ledger) closePeriods(ctx context.Context, tx pgx.Tx, due []*job) error {
	customers := make(map[int64]*customer, len(due))
	for _, j := range due {
		customers[j.c.id] = j.c
	}
	lines, err := timelines(ctx, tx, customers)
	if err != nil {
		return err
	}
	if err := l.fence(ctx, tx, due); err != nil {
		return err
	}
	var tasks []*task
	for _, j := range due {
		if j.err != nil {
			continue
		}
		j.task = &task{c: j.c, kind: billing.KindPeriod, period: *j.c.open, next: follows(lines[j.c.id], j.c.open), fresh: true}
		tasks = append(tasks, j.task)
	}
	if err := l.readInputs(ctx, tx, tasks); err != nil {
		return err
	}
	return l.writeClosed(ctx, tx, due)
}

// follows is the period after p, nil where none follows.
func follows(t *timeline.Timeline, p *billing.Period) *billing.Period {
	if next, ok := t.Next(p); ok {
		return &next
	}
	return nil
}

// periodRow is a row of periods.
type periodRow struct {
	Customer  int64                  `json:"customer_id"`
	Chain     int                    `json:"chain"`
	N         int                    `json:"n"`
	Start     int64                  `json:"start_at"`
	End       int64                  `json:"end_at"`
	FullStart int64                  `json:"full_start"`
	FullEnd   int64                  `json:"full_end"`
	KnownEnd  int64                  `json:"known_end"`
	Trial     bool                   `json:"trial"`
	PlanID    int32                  `json:"plan_id"`
	Version   int                    `json:"version"`
	Prices    map[string]plans.Price `json:"prices"`
	ClosedAt  int64                  `json:"closed_at"`
}

func periodRowOf(customer int64, p *billing.Period, closed int64) periodRow {
	r := periodRow{customer, p.Chain, p.N, p.Start, p.End, p.FullStart, p.FullEnd, p.KnownEnd, p.Trial, p.PlanID, p.Version, p.Prices, closed}
	if r.Prices == nil {
		r.Prices = map[string]plans.Price{}
	}
	return r
}

const insertPeriods = `
	INSERT INTO periods (customer_id, chain, n, start_at, end_at, prior_end, full_start, full_end, known_end, trial, plan_id, version, prices, closed_at)
	SELECT customer_id, chain, n, start_at, end_at, (SELECT max(end_at) FROM periods p WHERE p.customer_id = r.customer_id),
		full_start, full_end, known_end, trial, plan_id, version, prices, closed_at
	FROM jsonb_populate_recordset(NULL::periods, $1) r`

// nextPeriods opens the following periods, and sets due_at. It comes after the drafts of the closed
// periods, whose finalizing is due, too. Where no period follows, the row keeps its place in the
// chain, and nothing else.
const nextPeriods = `
	UPDATE open_periods u SET chain = o.chain, n = o.n, start_at = o.start_at, end_at = o.end_at, full_start = o.full_start,
		full_end = o.full_end, known_end = o.known_end, trial = o.trial, plan_id = o.plan_id, version = o.version,
		prices = o.prices, to_begin = false, opening_due = o.opening_due, ` + unblocked + `, due_at = ` + dueOf + `
	FROM jsonb_populate_recordset(NULL::open_periods, $1) o WHERE u.customer_id = o.customer_id RETURNING u.customer_id, u.due_at`

// openRow is a row of open_periods, as far as closing writes it.
type openRow struct {
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

// openRowOf is the row of the period that follows closed; a nil next is none.
func openRowOf(customer int64, closed, next *billing.Period) openRow {
	if next == nil {
		return openRow{Customer: customer, Chain: closed.Chain, N: closed.N + 1, Prices: map[string]plans.Price{}}
	}
	r := openRow{
		customer, next.Chain, next.N, &next.Start, &next.End, &next.FullStart, &next.FullEnd, &next.KnownEnd, next.Trial,
		&next.PlanID, &next.Version, next.Prices, false,
	}
	// A new chain begins as the first one does. Otherwise the invoice of the period that ended
	// holds the base in advance. Where no base is due in advance, makeOpenings makes nothing.
	r.OpeningDue = next.Chain != closed.Chain && !next.Trial
	if r.Prices == nil {
		r.Prices = map[string]plans.Price{}
	}
	return r
}

// writeClosed makes the invoices of closed periods, and writes what closing makes.
func (l *Ledger) writeClosed(ctx context.Context, tx pgx.Tx, due []*job) error {
	var periods []periodRow
	var open []openRow
	var drafts []*task
	for _, j := range due {
		if j.err != nil {
			continue
		}
		t := j.task
		t.compute()
		if j.err = t.err; j.err != nil {
			continue
		}
		periods = append(periods, periodRowOf(j.c.id, &t.period, j.at))
		open = append(open, openRowOf(j.c.id, &t.period, t.next))
		if !t.result.Empty {
			t.result.Invoice.MadeAt, t.result.Invoice.FinalizeAt = j.at, j.at+l.correctionOf(j.c)
			drafts = append(drafts, t)
		}
	}
	b := new(pgx.Batch)
	if err := errors.Join(queueRows(b, insertPeriods, periods), queueDrafts(b, drafts), l.queueNext(ctx, b, open, due)); err != nil {
		return err
	}
	queueDropDead(b, periods)
	return run(ctx, tx, b)
}

// queueNext opens the following periods. Jobs are over of which nothing else is due.
func (l *Ledger) queueNext(ctx context.Context, b *pgx.Batch, open []openRow, due []*job) error {
	if len(open) == 0 {
		return nil
	}
	now, unread := l.options.Now(ctx)
	rows, bad := json.Marshal(open)
	if err := errors.Join(unread, bad); err != nil {
		return err
	}
	jobs := make(map[int64]*job, len(due))
	for _, j := range due {
		jobs[j.c.id] = j
	}
	var id, at int64
	queueEach(b, []any{&id, &at}, func() error {
		jobs[id].over = at > jobs[id].c.now
		return nil
	}, nextPeriods, string(rows), l.closeDelay, now)
	return nil
}

// correctionOf is how long a customer's drafts stay drafts: whoever is erased waits for nothing.
func (l *Ledger) correctionOf(c *customer) int64 {
	if c.erased {
		return 0
	}
	return l.correctionTime
}

const claimCharges = `
	UPDATE charges c SET invoice_id = w.invoice FROM unnest($1::bigint[], $2::uuid[]) AS w (customer, invoice)
	JOIN LATERAL (SELECT id FROM charges WHERE customer_id = w.customer AND invoice_id IS NULL OFFSET 0) u ON true
	WHERE c.customer_id = w.customer AND c.id = u.id`

// queueDrafts adds new drafts to a batch, each with an id, and lets them take the charges that
// are on them.
func queueDrafts(b *pgx.Batch, drafts []*task) error {
	var invoices []invoiceRow
	var lines []lineRow
	var counted []countedRow
	var customers []int64
	var ids []string
	for _, t := range drafts {
		i := &t.result.Invoice
		i.ID = newID(t.c.now)
		invoices, lines = append(invoices, rowOf(i, 0)), append(lines, lineRows(i)...)
		counted = append(counted, t.correctionRows()...)
		if len(t.in.Charges) > 0 {
			customers, ids = append(customers, t.c.id), append(ids, i.ID)
		}
	}
	if err := errors.Join(queueRows(b, insertInvoices, invoices), queueRows(b, insertLines, lines), queueRows(b, insertCounted, counted)); err != nil {
		return err
	}
	if len(customers) > 0 {
		b.Queue(claimCharges, customers, ids)
	}
	return nil
}

const openingMade = `UPDATE open_periods SET opening_due = false WHERE customer_id = ANY ($1)`

// makeOpenings makes the opening invoices of customers whose lock the transaction has. There is
// none where nothing is to be paid in advance.
func (l *Ledger) makeOpenings(ctx context.Context, tx pgx.Tx, due []*job) error {
	tasks := make([]*task, len(due))
	for i, j := range due {
		j.task = &task{c: j.c, kind: billing.KindOpening, period: *j.c.open, fresh: true}
		tasks[i] = j.task
	}
	if err := l.assemble(ctx, tx, tasks); err != nil {
		return err
	}
	var drafts []*task
	var made []int64
	for _, j := range due {
		t := j.task
		if j.err = t.err; j.err != nil {
			continue
		}
		made = append(made, j.c.id)
		// An invoice of the period itself takes charges and corrections, where no base is due.
		if !t.result.Empty && opens(&t.in.Terms) {
			t.result.Invoice.MadeAt, t.result.Invoice.FinalizeAt = j.at, j.at+l.correctionOf(j.c)
			drafts = append(drafts, t)
		}
	}
	b := new(pgx.Batch)
	b.Queue(openingMade, made)
	if err := queueDrafts(b, drafts); err != nil {
		return err
	}
	return run(ctx, tx, b)
}

// opens reports whether a period has an opening invoice: one whose base is due in advance.
func opens(t *assembly.Terms) bool { return t.AdvanceBase(t.Period.KnownEnd) != 0 }
