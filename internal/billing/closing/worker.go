package closing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/billing/accounts"
	"quotad/internal/billing/invoices"
	"quotad/internal/plans/catalog"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/quota"
)

const (
	// pollEvery is how often a node looks for what is due.
	pollEvery = time.Second
	// One transaction takes batchLeast customers at first and at least, and batchMost at most. A
	// database that is slow to answer is so with any number of them. batchTime is how long it goes
	// on with further steps of them: counters are not pruned while it is open.
	batchLeast, batchMost = 5, 20
	batchTime             = 100 * time.Millisecond
	// A transaction that took less than batchShort may take more customers the next time. After one
	// that took more than batchLong it is to be fewer: plans have a price or a hundred.
	batchShort, batchLong = 125 * time.Millisecond, 250 * time.Millisecond
	// wakeAtOnce is how many customers one transaction makes due whose seller got a name.
	wakeAtOnce = 500
)

// Options configure a Worker. All parts are required.
type Options struct {
	Pool     *pgxpool.Pool
	Accounts *accounts.Accounts
	Invoices *invoices.Invoices
	Catalog  *catalog.Catalog
	Engine   *quota.Engine
	// Stopwatch shows the time since some moment, and never steps.
	Stopwatch func() time.Duration
	Log       *slog.Logger // nil: slog.Default

	// StepTimeout bounds one transaction. A customer whose steps take longer, though it is alone in the
	// transaction, is blocked for a minute. If StepTimeout is 0, it is Accounts.Within.
	StepTimeout time.Duration
	// FenceTime is how long a transaction waits for counters that somebody holds; 0: 250 ms.
	FenceTime time.Duration
}

// Worker does what is due of billing. It is safe for concurrent use.
type Worker struct {
	options     Options
	accounts    *accounts.Accounts
	invoices    *invoices.Invoices
	pool        *pgxpool.Pool
	wake        chan struct{}
	stepTimeout time.Duration // see Options
	fenceTime   time.Duration // see Options; tests lengthen it
	wakeAtOnce  int           // the constant; tests lower it
	size        atomic.Int64  // of the next batch
	worked      worked
	watched     watched
}

// New returns a worker. It starts nothing: see Run.
func New(o Options) *Worker {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	w := &Worker{
		options: o, accounts: o.Accounts, invoices: o.Invoices, pool: o.Pool, wake: make(chan struct{}, 1),
		stepTimeout: cmp.Or(o.StepTimeout, o.Accounts.Within()),
		fenceTime:   cmp.Or(o.FenceTime, fenceTime),
		wakeAtOnce:  wakeAtOnce,
	}
	w.size.Store(batchLeast)
	return w
}

// worked counts what the worker did, for metrics.
type worked struct{ closed, finalized, failed atomic.Int64 }

// Worked says how many periods this node has closed, how many invoices it has finalized, and
// how often a customer could not be done.
func (w *Worker) Worked() (closed, finalized, failed int64) {
	return w.worked.closed.Load(), w.worked.finalized.Load(), w.worked.failed.Load()
}

// Wake makes the worker look at once, as after a test clock was set.
func (w *Worker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run does what is due until ctx ends. Any number of nodes may run it on one database. Whatever
// it is killed in is done by the next one, or again.
func (w *Worker) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failing := false; ; timer.Reset(pollEvery) {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-timer.C:
		}
		err := w.WorkOff(ctx)
		if err == nil {
			err = w.watch(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			w.options.Log.Warn("billing periods cannot be closed now; it is tried again", "error", err)
		case err == nil && failing:
			w.options.Log.Info("billing periods are closed again")
		}
		failing = err != nil
	}
}

// WorkOff does all steps that are due now, and returns when none is left that this node could
// do. The error is why the database could not be worked with.
func (w *Worker) WorkOff(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.accounts.WakeNamed(ctx, w.wakeAtOnce); err != nil {
			return err
		}
		answered, err := w.accounts.AnswerOwed(ctx)
		if err != nil {
			return err
		}
		told, err := w.tellOverdue(ctx)
		if err != nil {
			return err
		}
		began, size := w.options.Stopwatch(), int(w.size.Load())
		taken, err := w.batch(ctx, size)
		switch {
		case err == nil && taken == 0 && (told > 0 || answered): // perhaps of more
		case err == nil && taken == 0:
			return w.accounts.AnswerCalls(ctx)
		case err == nil && taken == size: // there are many
			took := w.options.Stopwatch() - began
			w.size.Store(int64(nextSize(size, took)))
			err = w.pause(ctx, size, took)
		case err != nil && concernsOne(err):
			// One of them makes the statements fail, or takes too long. Each alone tells which.
			err = w.eachAlone(ctx)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// nextSize is how many customers a batch takes after one of a size that took so long.
func nextSize(size int, took time.Duration) int {
	switch {
	case took > batchLong:
		return max(batchLeast, size/2)
	case took < batchShort:
		return min(2*size, batchMost)
	}
	return size
}

// eachAlone works off customers one by one, at least as many as a batch that failed.
func (w *Worker) eachAlone(ctx context.Context) error {
	for range batchMost {
		if taken, err := w.batch(ctx, 1); err != nil || taken == 0 {
			return err
		}
	}
	return nil
}

// takeDue takes the locks of customers that are due, and leaves those that somebody else has.
// Customers of test clocks come first: somebody waits for them.
const takeDue = `
	SELECT customer_id FROM open_periods WHERE clock_id IS NULL AND due_at <= $1 AND retry_at <= $1
	ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED`

const takeDueByClock = `
	SELECT o.customer_id FROM (SELECT DISTINCT clock_id FROM clock_calls) c JOIN test_clocks t ON t.id = c.clock_id, LATERAL (
		SELECT customer_id FROM open_periods WHERE clock_id = t.id AND due_at <= t.now AND retry_at <= $1 ORDER BY due_at LIMIT $2
		FOR UPDATE SKIP LOCKED) o
	LIMIT $2`

// batch does steps of at most n customers in one transaction. taken is how many it found. With
// n = 1 a customer that makes statements fail is blocked.
func (w *Worker) batch(ctx context.Context, n int) (taken int, err error) {
	within, cancel := context.WithTimeout(ctx, w.stepTimeout)
	defer cancel()
	now, err := w.accounts.Now(within)
	if err != nil {
		return 0, err
	}
	var ids []int64
	var count done
	err = pgx.BeginFunc(within, w.pool, func(tx pgx.Tx) error {
		if err := w.accounts.ByKey(within, tx); err != nil {
			return err
		}
		for _, statement := range []string{takeDueByClock, takeDue} {
			if len(ids) < n {
				rows, _ := tx.Query(within, statement, now, n-len(ids))
				more, err := pgx.CollectRows(rows, pgx.RowTo[int64])
				if err != nil {
					return err
				}
				ids = append(ids, more...)
			}
		}
		if len(ids) == 0 {
			return nil
		}
		var err error
		count, err = w.steps(within, tx, ids, now)
		return err
	})
	if err == nil {
		w.worked.closed.Add(count.closed)
		w.worked.finalized.Add(count.finalized)
		return len(ids), nil
	}
	if within.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w, more than %s: %w", errTooLong, w.stepTimeout, err)
	} else {
		err = store.Classify(err)
	}
	if n == 1 && len(ids) == 1 && concernsOne(err) {
		return 1, w.blockAlone(ctx, ids[0], now, err)
	}
	return len(ids), err
}

// done counts steps.
type done struct{ closed, finalized int64 }

// steps does the steps of customers that are due, for each in the order of their instants. It
// ends after the first that finalized or held drafts, since that locks sellers, or when it has taken
// long; the rest is due still.
func (w *Worker) steps(ctx context.Context, tx pgx.Tx, ids []int64, now int64) (count done, err error) {
	var failed []*job
	var erased []int64
	for end := now + batchTime.Microseconds(); len(ids) > 0 && now < end; {
		jobs, left, err := w.dueSteps(ctx, tx, ids, now)
		if err != nil {
			return count, err
		}
		if ids = left; len(ids) == 0 {
			break
		}
		some, bad, err := w.doSteps(ctx, tx, jobs)
		if err != nil {
			return count, err
		}
		count.closed, count.finalized = count.closed+some.closed, count.finalized+some.finalized
		failed = append(failed, bad...)
		erased = append(erased, erasedIn(jobs)...)
		ids = stillDue(ids, jobs)
		if len(jobs[accounts.StepFinalize]) > 0 {
			break
		}
		if now, err = w.accounts.Now(ctx); err != nil {
			return count, err
		}
	}
	if len(ids) > 0 {
		if err := w.accounts.UpdateDue(ctx, tx, ids...); err != nil {
			return count, err
		}
	}
	if err := accounts.ForgetBuyers(ctx, tx, erased...); err != nil {
		return count, err
	}
	for _, j := range failed {
		if err := w.block(ctx, tx, j, now); err != nil {
			return count, err
		}
	}
	return count, nil
}

// dueSteps finds the next step of each customer. Those that have none due have their due_at put
// right, and are not in left.
func (w *Worker) dueSteps(ctx context.Context, tx pgx.Tx, ids []int64, now int64) (jobs map[string][]*job, left []int64, err error) {
	b := new(pgx.Batch)
	customers, next := accounts.QueueCustomers(b, ids, now), w.accounts.QueueSteps(b, ids, now)
	if err := postgres.Send(ctx, tx, b); err != nil {
		return nil, nil, err
	}
	jobs = make(map[string][]*job)
	var idle, dueAt []int64
	for _, id := range ids {
		c, s := customers[id], next[id]
		if s.Kind == "" {
			s.At = math.MaxInt64
		}
		if c == nil || s.Kind == "" || s.At > c.Now {
			idle, dueAt = append(idle, id), append(dueAt, s.At)
			continue
		}
		j := &job{c: c, at: s.At, draft: s.Draft}
		if c.Clock == "" && s.Kind == accounts.StepFinalize {
			j.at = c.Now // in real time a late invoice says when it was finalized
		}
		jobs[s.Kind], left = append(jobs[s.Kind], j), append(left, id)
	}
	if len(idle) > 0 {
		err = accounts.SetDueAt(ctx, tx, idle, dueAt)
	}
	return jobs, left, err
}

// doSteps does one step of each customer.
func (w *Worker) doSteps(ctx context.Context, tx pgx.Tx, jobs map[string][]*job) (count done, failed []*job, err error) {
	for _, kind := range []struct {
		name string
		do   func(context.Context, pgx.Tx, []*job) error
	}{
		{accounts.StepBegin, beginPeriods},
		{accounts.StepClose, w.closePeriods},
		{accounts.StepOpening, w.makeOpenings},
		{accounts.StepOwed, w.makeExtras},
		{accounts.StepExpire, expireCredits},
		{accounts.StepFinalize, w.finalizeDrafts},
	} {
		due := jobs[kind.name]
		if len(due) == 0 {
			continue
		}
		if err := kind.do(ctx, tx, due); err != nil {
			return count, nil, fmt.Errorf("%s: %w", kind.name, err)
		}
		for _, j := range due {
			switch {
			case j.err != nil:
				failed = append(failed, j)
			case kind.name == accounts.StepClose:
				count.closed++
			case kind.name == accounts.StepFinalize && j.task.Result.Invoice.Held == "":
				count.finalized++
			}
		}
	}
	return count, failed, nil
}

func beginPeriods(ctx context.Context, tx pgx.Tx, due []*job) error {
	return accounts.BeginPeriods(ctx, tx, customersOf(due))
}

func expireCredits(ctx context.Context, tx pgx.Tx, due []*job) error {
	at := make(map[int64]int64, len(due))
	for _, j := range due {
		at[j.c.ID] = j.at
	}
	return invoices.ExpireCredits(ctx, tx, customersOf(due), at)
}

func (w *Worker) finalizeDrafts(ctx context.Context, tx pgx.Tx, due []*job) error {
	tasks := make([]*invoices.Task, len(due))
	for i, j := range due {
		j.task = invoices.DraftTask(j.c, j.draft, j.at)
		tasks[i] = j.task
	}
	err := w.invoices.FinalizeDrafts(ctx, tx, tasks)
	for _, j := range due {
		j.err = j.task.Err
	}
	return err
}
