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

// closePeriods closes the open periods of customers that the transaction has locked. It fences the counters,
// so that no more usage is booked into the period, writes the period and its draft, and opens the next
// period. If a customer's period cannot be closed, the customer stays unchanged and the job contains the
// error.
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

// closeFenced closes the open periods of customers whose counters accept no more usage for these periods.
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

// writeClosed writes closed periods, their drafts, and the next periods.
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
		if t.Next == nil && !j.c.Archived { // the event of an archived customer was written at the archiving
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

// makeOpenings creates the opening invoices of customers that the transaction has locked. If nothing is due
// in advance, no opening invoice is created.
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

// fenceTime is the maximum time for which a transaction waits to fence counters, because a counter may be
// locked. After that time, the customers are postponed. Counters that are fenced stay fenced, so the next
// attempt is fast.
const fenceTime = 250 * time.Millisecond

// fenceTries is the maximum number of retries to fence a counter after a concurrent change of the customer.
const fenceTries = 4

// fenceOf is a counter to be fenced for a job.
type fenceOf struct {
	j   *job
	key model.CounterKey
}

// toFence returns the counters of jobs that must be fenced. gone contains the counters of archived customers.
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

// fence ensures that the periods to be closed get no more usage.
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

// fenceOnce tries to fence counters within the time limit of the context within. It returns the counters that
// need another attempt because the customer changed concurrently.
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
		if target == nil { // the customer was archived meanwhile
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

// tooLate converts an error that occurs after the time limit for fences to session.ErrBusy, because the
// counter is in use.
func tooLate(ctx, within context.Context, err error) error {
	if err == nil || within.Err() == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", session.ErrBusy, err)
}

var errOvertaken = errors.New("changes of the customer came faster than its counters could be fenced")

// fenced returns the meters whose counters are fenced at the end of a period: the meters that have a price.
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

// job is the next due step of a customer.
type job struct {
	c     *accounts.Customer
	at    int64  // the instant of the step
	draft string // the id of the draft to finalize

	task *invoices.Task
	over bool  // the step is done and due_at is written, and nothing else is due by the customer's clock as read
	err  error // the reason for a failure, which concerns this customer only
}

// concernsOne reports whether the data of a single customer may have caused an error.
func concernsOne(err error) bool {
	return errors.Is(err, errTooLong) || !errors.Is(err, session.ErrUnavailable) && !errors.Is(err, session.ErrNoSession) && !errors.Is(err, session.ErrBusy) &&
		!errors.Is(err, session.ErrOutcomeUnknown) && !errors.Is(err, session.ErrStopped) && !errors.Is(err, context.Canceled) &&
		!errors.Is(err, context.DeadlineExceeded)
}

// errTooLong reports a transaction that exceeded its time limit, although the database may be reachable.
var errTooLong = errors.New("it takes too long")

func customersOf(due []*job) map[int64]*accounts.Customer {
	customers := make(map[int64]*accounts.Customer, len(due))
	for _, j := range due {
		customers[j.c.ID] = j.c
	}
	return customers
}

// erasedIn returns the ids of erased customers among jobs.
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

// stillDue returns the ids of customers that may have further steps: neither failed nor done.
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

// Pauses before a failed customer is retried, µs. A busy customer is retried soon, because the lock on its
// row may be short. A customer that stays busy for busyMost is blocked.
const (
	retryBlocked = int64(60e6)
	retryBusy    = int64(1e6)
	busyMost     = int64(60e6)
)

// putOff postpones a customer with locked rows. It returns the instant since which the rows have been locked.
const putOff = `
	UPDATE open_periods SET busy_since = coalesce(busy_since, $2), blocked = NULL, retry_at = $3 WHERE customer_id = $1 RETURNING busy_since`

const blockCustomer = `
	UPDATE open_periods o SET blocked = $2, retry_at = $3 FROM customers c WHERE o.customer_id = $1 AND c.id = $1 RETURNING c.key`

// block postpones a customer whose step failed, within the transaction that detected the failure.
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

// blockAlone blocks a customer whose transaction failed.
func (w *Worker) blockAlone(ctx context.Context, id, now int64, why error) error {
	ctx, cancel := context.WithTimeout(ctx, w.stepTimeout)
	defer cancel()
	return store.Classify(w.blockWith(ctx, w.pool, id, now, why))
}

// blockWith blocks a customer and logs the error for operators.
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
