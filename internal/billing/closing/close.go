package closing

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/invoices"
	"quotad/internal/plans"
	"quotad/internal/postgres"
)

// closePeriods closes the open periods of customers, whose lock the transaction has: it fences
// their counters, writes the period and its draft, and opens the next one. Customers that
// cannot be closed are left as they are, and their jobs have an error.
func (w *Worker) closePeriods(ctx context.Context, tx pgx.Tx, due []*job) error {
	lines, err := accounts.Timelines(ctx, tx, customersOf(due))
	if err != nil {
		return err
	}
	if err := w.fence(ctx, tx, due); err != nil {
		return err
	}
	var tasks []*invoices.Task
	for _, j := range due {
		if j.err != nil {
			continue
		}
		j.task = invoices.PeriodTask(j.c, lines[j.c.ID], j.c.Open, j.at)
		tasks = append(tasks, j.task)
	}
	if err := w.invoices.Assemble(ctx, tx, tasks); err != nil {
		return err
	}
	return w.writeClosed(ctx, tx, due)
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

// writeClosed writes closed periods, their drafts, and the periods that follow.
func (w *Worker) writeClosed(ctx context.Context, tx pgx.Tx, due []*job) error {
	var periods []periodRow
	var open []accounts.OpenRow
	var closed, drafts []*invoices.Task
	jobs := make(map[int64]*job, len(due))
	for _, j := range due {
		if j.err != nil {
			continue
		}
		t := j.task
		if j.err = t.Err; j.err != nil {
			continue
		}
		jobs[j.c.ID] = j
		closed, periods = append(closed, t), append(periods, periodRowOf(j.c.ID, &t.Period, j.at))
		open = append(open, accounts.OpenRowOf(j.c.ID, &t.Period, t.Next))
		if !t.Empty() {
			drafts = append(drafts, t)
		}
	}
	dueAt := func(id, at int64) { jobs[id].over = at > jobs[id].c.Now }
	b := new(pgx.Batch)
	if err := errors.Join(postgres.QueueRows(b, insertPeriods, periods), w.invoices.QueueDrafts(b, drafts), w.accounts.QueueNext(ctx, b, open, dueAt)); err != nil {
		return err
	}
	invoices.QueueDropDead(b, closed)
	return postgres.Send(ctx, tx, b)
}

const openingMade = `UPDATE open_periods SET opening_due = false WHERE customer_id = ANY ($1)`

// makeOpenings makes the opening invoices of customers whose lock the transaction has. There is
// none where nothing is to be paid in advance.
func (w *Worker) makeOpenings(ctx context.Context, tx pgx.Tx, due []*job) error {
	tasks := make([]*invoices.Task, len(due))
	for i, j := range due {
		j.task = invoices.OpeningTask(j.c, j.at)
		tasks[i] = j.task
	}
	if err := w.invoices.Assemble(ctx, tx, tasks); err != nil {
		return err
	}
	var drafts []*invoices.Task
	var made []int64
	for _, j := range due {
		t := j.task
		if j.err = t.Err; j.err != nil {
			continue
		}
		made = append(made, j.c.ID)
		if !t.Empty() {
			drafts = append(drafts, t)
		}
	}
	b := new(pgx.Batch)
	b.Queue(openingMade, made)
	if err := w.invoices.QueueDrafts(b, drafts); err != nil {
		return err
	}
	return postgres.Send(ctx, tx, b)
}
