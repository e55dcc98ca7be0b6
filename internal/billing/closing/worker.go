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
	// pollEvery is the interval at which a node checks for due steps.
	pollEvery = time.Second
	// One transaction processes at most batchMost customers. It begins with batchLeast, which is also the
	// minimum, because a slow database is slow with any number of customers. batchTime is the time within
	// which a transaction may start further steps, because counters are not pruned while it is open.
	batchLeast, batchMost = 5, 20
	batchTime             = 100 * time.Millisecond
	// After a transaction shorter than batchShort, the next one may process more customers. After one longer
	// than batchLong, the next one processes fewer, because plans vary from one price to a hundred.
	batchShort, batchLong = 125 * time.Millisecond, 250 * time.Millisecond
	// wakeAtOnce is the maximum number of customers whose waiting drafts one transaction makes due after
	// their seller got a name.
	wakeAtOnce = 500
)

// Options configures a Worker. All fields are required unless their comment names a default.
type Options struct {
	Pool     *pgxpool.Pool
	Accounts *accounts.Accounts
	Invoices *invoices.Invoices
	Catalog  *catalog.Catalog
	Engine   *quota.Engine
	// Stopwatch returns the time elapsed since a fixed moment, from a clock that never steps.
	Stopwatch func() time.Duration
	Log       *slog.Logger // default: slog.Default

	// StepTimeout is the time limit of one transaction. A customer whose steps exceed the limit even in a
	// transaction of its own is blocked for a minute. If StepTimeout is 0, the limit is Accounts.Within.
	StepTimeout time.Duration
	// FenceTime is the maximum time for which a transaction waits for locked counters. If FenceTime is 0, it
	// is 250 ms.
	FenceTime time.Duration
}

// Worker runs the due steps of billing. It is safe for concurrent use.
type Worker struct {
	options     Options
	accounts    *accounts.Accounts
	invoices    *invoices.Invoices
	pool        *pgxpool.Pool
	wake        chan struct{}
	stepTimeout time.Duration // see Options
	fenceTime   time.Duration // see Options; tests lengthen it
	wakeAtOnce  int           // the constant wakeAtOnce; tests lower it
	size        atomic.Int64  // the size of the next batch
	worked      worked
	watched     watched
}

// New returns a worker. The worker does nothing until Run is called.
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

// worked counts the worker's results, for metrics.
type worked struct{ closed, finalized, failed atomic.Int64 }

// Worked returns the number of periods that this node has closed, the number of invoices that it has
// finalized, and the number of failures of single customers.
func (w *Worker) Worked() (closed, finalized, failed int64) {
	return w.worked.closed.Load(), w.worked.finalized.Load(), w.worked.failed.Load()
}

// Wake makes the worker check for due steps at once, for example after a test clock was set.
func (w *Worker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run runs due steps until ctx ends. Any number of nodes may call Run on one database. If a node is killed,
// another node or its next start completes the interrupted work.
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

// WorkOff runs all steps that are due now, and returns when this node can run no more steps. The error
// reports a failure of the database.
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
		case err == nil && taken == 0 && (told > 0 || answered): // more may be waiting
		case err == nil && taken == 0:
			return w.accounts.AnswerCalls(ctx)
		case err == nil && taken == size: // many customers are due
			took := w.options.Stopwatch() - began
			w.size.Store(int64(nextSize(size, took)))
			err = w.pause(ctx, size, took)
		case err != nil && concernsOne(err):
			// One customer of the batch makes the statements fail or take too long. Processing each customer
			// alone finds it.
			err = w.eachAlone(ctx)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// nextSize returns the number of customers for the next batch, from the size and the duration of the last
// one.
func nextSize(size int, took time.Duration) int {
	switch {
	case took > batchLong:
		return max(batchLeast, size/2)
	case took < batchShort:
		return min(2*size, batchMost)
	}
	return size
}

// eachAlone processes customers one by one, at least as many as a failed batch contained.
func (w *Worker) eachAlone(ctx context.Context) error {
	for range batchMost {
		if taken, err := w.batch(ctx, 1); err != nil || taken == 0 {
			return err
		}
	}
	return nil
}

// takeDue locks the customers that are due and skips customers that are locked. Customers on test clocks are
// locked first, by takeDueByClock, because somebody is waiting for them.
const takeDue = `
	SELECT customer_id FROM open_periods WHERE clock_id IS NULL AND due_at <= $1 AND retry_at <= $1
	ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED`

const takeDueByClock = `
	SELECT o.customer_id FROM (SELECT DISTINCT clock_id FROM clock_calls) c JOIN test_clocks t ON t.id = c.clock_id, LATERAL (
		SELECT customer_id FROM open_periods WHERE clock_id = t.id AND due_at <= t.now AND retry_at <= $1 ORDER BY due_at LIMIT $2
		FOR UPDATE SKIP LOCKED) o
	LIMIT $2`

// batch runs steps of at most n customers in one transaction. taken is the number of customers found. If n is
// 1, a customer whose statements fail is blocked.
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

// steps runs the due steps of customers, in the order of each customer's instants. It stops after the first
// step that finalized or held drafts, because that step locks sellers, or after batchTime. The rest stays
// due.
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

// dueSteps returns the next due step of each customer. If no step of a customer is due, dueSteps corrects
// due_at and omits the customer from left.
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
			j.at = c.Now // in real time, a late invoice has its actual finalization time
		}
		jobs[s.Kind], left = append(jobs[s.Kind], j), append(left, id)
	}
	if len(idle) > 0 {
		err = accounts.SetDueAt(ctx, tx, idle, dueAt)
	}
	return jobs, left, err
}

// doSteps runs one step of each customer.
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
