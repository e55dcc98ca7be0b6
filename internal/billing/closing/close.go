package closing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/invoices"
	"quotad/internal/billing/timeline"
	"quotad/internal/events"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/quota/usage"
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
	return w.closeFenced(ctx, tx, due, lines)
}

// closeFenced closes the open periods of customers whose counters are fenced.
func (w *Worker) closeFenced(ctx context.Context, tx pgx.Tx, due []*job, lines map[int64]*timeline.Timeline) error {
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

// writeClosed writes closed periods, their drafts, and the periods that follow.
func (w *Worker) writeClosed(ctx context.Context, tx pgx.Tx, due []*job) error {
	var periods []accounts.PeriodRow
	var open []accounts.OpenRow
	var closed, drafts []*invoices.Task
	var ends []events.Event
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
		closed, periods = append(closed, t), append(periods, accounts.PeriodRowOf(j.c.ID, &t.Period, j.at))
		open = append(open, accounts.OpenRowOf(j.c.ID, &t.Period, t.Next))
		if !t.Empty() {
			drafts = append(drafts, t)
		}
		if t.Next == nil && !j.c.Archived { // an archived customer was told of when it was archived
			ends = append(ends, accounts.EndedEvent(j.c, t.Period.End))
		}
	}
	dueAt := func(id, at int64) { jobs[id].over = at > jobs[id].c.Now }
	b := new(pgx.Batch)
	if err := errors.Join(accounts.QueuePeriods(b, periods), w.invoices.QueueDrafts(b, drafts), w.accounts.QueueNext(ctx, b, open, dueAt),
		events.Queue(b, ends...)); err != nil {
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

// fenceTime bounds how long a transaction waits for its fences: somebody may hold a counter. After
// it the customers are put off. Their fences stand, so they are soon done the next time.
const fenceTime = 250 * time.Millisecond

// fenceTries bounds how often a counter is fenced again that a change overtook.
const fenceTries = 4

// fenceOf is a counter that is to be fenced for a job.
type fenceOf struct {
	j   *job
	key model.CounterKey
}

// toFence are the counters of jobs. Those of archived customers are in gone.
func (w *Worker) toFence(ctx context.Context, q postgres.Querier, due []*job) (all []fenceOf, gone []usage.Archived, err error) {
	for _, j := range due {
		meters, err := w.fenced(ctx, q, j.c.Open)
		if err != nil {
			return nil, nil, err
		}
		for _, meter := range meters {
			if j.c.Archived {
				gone = append(gone, usage.Archived{Customer: j.c.ID, Meter: meter, Change: j.c.Change})
				continue
			}
			all = append(all, fenceOf{j, model.CounterKey{Customer: j.c.ID, Meter: meter}})
		}
	}
	return all, gone, nil
}

// fence makes sure that no more usage comes to the periods that are to be closed.
func (w *Worker) fence(ctx context.Context, tx pgx.Tx, due []*job) error {
	within, cancel := context.WithTimeout(ctx, w.fenceTime)
	defer cancel()
	left, gone, err := w.toFence(ctx, tx, due)
	if err == nil {
		err = usage.FenceArchived(ctx, w.pool, gone)
	}
	if err != nil {
		return err
	}
	for try := 0; len(left) > 0 && try <= fenceTries; try++ {
		if left, err = w.fenceOnce(ctx, within, left); err != nil {
			return err
		}
	}
	for _, p := range left {
		p.j.err = fmt.Errorf("fence meter %d: %w", p.key.Meter, errOvertaken)
	}
	return nil
}

// fenceOnce fences counters in the time of within. A change overtook those in again.
func (w *Worker) fenceOnce(ctx, within context.Context, all []fenceOf) (again []fenceOf, err error) {
	keys := make([]model.CounterKey, len(all))
	for i := range all {
		keys[i] = all[i].key
	}
	targets, err := w.options.Catalog.Targets(ctx, keys)
	if err != nil {
		return nil, err
	}
	var fences []locked.Fence
	var of []fenceOf
	for i, target := range targets {
		p := all[i]
		if target == nil { // it was archived meanwhile
			again = append(again, p)
			continue
		}
		fences, of = append(fences, locked.Fence{Target: target, Boundary: p.j.c.Open.End}), append(of, p)
	}
	for i, err := range w.options.Engine.Fence(within, fences) {
		var stale *model.StaleError
		switch err = tooLate(ctx, within, err); {
		case errors.As(err, &stale):
			again = append(again, of[i])
		case err != nil && !errors.Is(err, session.ErrBusy) && !concernsOne(err):
			return nil, err
		case err != nil && of[i].j.err == nil:
			of[i].j.err = fmt.Errorf("fence meter %d: %w", of[i].key.Meter, err)
		}
	}
	return again, nil
}

// tooLate is the error of a fence that nobody waits for any more: somebody is busy with its counter.
func tooLate(ctx, within context.Context, err error) error {
	if err == nil || within.Err() == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", session.ErrBusy, err)
}

var errOvertaken = errors.New("changes of the customer came faster than its counters could be fenced")

// fenced are the meters whose counters are fenced at the end of a period: those with a price.
func (w *Worker) fenced(ctx context.Context, q postgres.Querier, p *billing.Period) ([]int32, error) {
	versions, err := w.accounts.Versions.Get(ctx, q, accounts.VersionsOf(p))
	if err != nil {
		return nil, err
	}
	terms := versions.Terms(p)
	ids, err := w.accounts.PricedMeters(ctx, q, &terms)
	var meters []int32
	for _, meter := range terms.Meters() {
		meters = append(meters, ids[meter])
	}
	return meters, err
}

// job is the next step of a customer that is due.
type job struct {
	c     *accounts.Customer
	at    int64  // the step's instant
	draft string // that is to be finalized

	task *invoices.Task
	over bool  // it is done, its due_at is written, and nothing else was due when its clock was read
	err  error // why it cannot be done; it concerns this customer only
}

// concernsOne reports whether an error may be due to what one customer's rows hold.
func concernsOne(err error) bool {
	return errors.Is(err, errTooLong) || !errors.Is(err, session.ErrUnavailable) && !errors.Is(err, session.ErrNoSession) && !errors.Is(err, session.ErrBusy) &&
		!errors.Is(err, session.ErrOutcomeUnknown) && !errors.Is(err, session.ErrStopped) && !errors.Is(err, context.Canceled) &&
		!errors.Is(err, context.DeadlineExceeded)
}

// errTooLong: a transaction was given up, and the database may well be there.
var errTooLong = errors.New("it takes too long")

func customersOf(due []*job) map[int64]*accounts.Customer {
	customers := make(map[int64]*accounts.Customer, len(due))
	for _, j := range due {
		customers[j.c.ID] = j.c
	}
	return customers
}

// erasedIn are the customers among jobs that are erased.
func erasedIn(jobs map[string][]*job) (ids []int64) {
	for _, due := range jobs {
		for _, j := range due {
			if j.c.Erased {
				ids = append(ids, j.c.ID)
			}
		}
	}
	return ids
}

// stillDue are the ids but those of failed jobs, and of jobs that are over.
func stillDue(ids []int64, jobs map[string][]*job) (left []int64) {
	off := make(map[int64]bool, len(ids))
	for _, due := range jobs {
		for _, j := range due {
			off[j.c.ID] = j.over || j.err != nil
		}
	}
	for _, id := range ids {
		if !off[id] {
			left = append(left, id)
		}
	}
	return left
}

// The pauses before a customer that could not be done is tried again, µs. Somebody may just have
// held a row of one that is busy. One that has been busy for busyMost is blocked.
const (
	retryBlocked = int64(60e6)
	retryBusy    = int64(1e6)
	busyMost     = int64(60e6)
)

// putOff returns since when the customer has been busy.
const putOff = `
	UPDATE open_periods SET busy_since = coalesce(busy_since, $2), blocked = NULL, retry_at = $3 WHERE customer_id = $1 RETURNING busy_since`

const blockCustomer = `
	UPDATE open_periods o SET blocked = $2, retry_at = $3 FROM customers c WHERE o.customer_id = $1 AND c.id = $1 RETURNING c.key`

// block puts a customer off that cannot be done, in the transaction that found it out.
func (w *Worker) block(ctx context.Context, tx pgx.Tx, j *job, now int64) error {
	why := j.err
	if errors.Is(why, session.ErrBusy) {
		var since int64
		if err := tx.QueryRow(ctx, putOff, j.c.ID, now, now+retryBusy).Scan(&since); err != nil || now-since < busyMost {
			return err
		}
		why = fmt.Errorf("others keep its rows busy since %s: %w", time.UnixMicro(since).UTC().Format(time.RFC3339), why)
	}
	return w.blockWith(ctx, tx, j.c.ID, now, why)
}

// blockAlone puts a customer off whose transaction failed.
func (w *Worker) blockAlone(ctx context.Context, id, now int64, why error) error {
	ctx, cancel := context.WithTimeout(ctx, w.stepTimeout)
	defer cancel()
	return store.Classify(w.blockWith(ctx, w.pool, id, now, why))
}

// blockWith blocks a customer, and tells operators.
func (w *Worker) blockWith(ctx context.Context, q postgres.Querier, id, now int64, why error) error {
	var key string
	if err := q.QueryRow(ctx, blockCustomer, id, why.Error(), now+retryBlocked).Scan(&key); err != nil {
		return err
	}
	w.worked.failed.Add(1)
	w.options.Log.Error("a customer's billing period cannot be closed or its invoice not be finalized; others are not held up, and it is tried again",
		"customer", key, "error", why)
	return nil
}
