package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/billing"
	"quotad/internal/billing/invoices"
	"quotad/internal/plans/store"
	"quotad/internal/quota/usage"
)

// Options configures a Reconciler. Pool and Stopwatch are required.
type Options struct {
	// Pool is used for reads only, so it may connect to a replica.
	Pool *pgxpool.Pool
	// Stopwatch returns the time elapsed since a fixed moment, from a clock that never steps.
	Stopwatch func() time.Duration
	// Page is the time limit of a transaction, because counters are not pruned while a snapshot is open. Each
	// statement in it has a limit shorter by a ninth. If Page is 0, the limit is 450 ms.
	Page time.Duration
}

// Reconciler checks the books of one database. It is safe for concurrent use, but only one run is possible at
// a time.
type Reconciler struct {
	pool      *pgxpool.Pool
	stopwatch func() time.Duration
	page      time.Duration
	stored    *invoices.Stored
	running   chan struct{} // contains one element during a run
}

// New returns a reconciler. The reconciler does nothing until Run is called.
func New(o Options) *Reconciler {
	return &Reconciler{pool: o.Pool, stopwatch: o.Stopwatch, page: cmp.Or(o.Page, defaultPage), stored: invoices.NewStored(), running: make(chan struct{}, 1)}
}

// Run runs all checks. Run has no time limit of its own, so ctx should have a deadline. Errors:
// billing.ErrReconciling during another run, billing.ErrReconcileTime if ctx ended first, and the errors of
// store.Classify.
func (r *Reconciler) Run(ctx context.Context) (*Report, error) {
	select {
	case r.running <- struct{}{}:
		defer func() { <-r.running }()
	default:
		return nil, billing.ErrReconciling
	}
	found := newFindings()
	for _, walk := range []func(context.Context, *findings) error{r.walkCharged, r.walkCustomers, r.walkInvoices, r.walkSellers, r.walkStored} {
		if err := walk(ctx, found); err != nil {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, billing.ErrReconcileTime
			}
			return nil, fmt.Errorf("reconcile: %w", store.Classify(err))
		}
	}
	report := found.report()
	err := r.snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
		archive, err := usage.ReadArchive(ctx, tx)
		if err == nil && archive.Months > 0 {
			report.Archived = &Archived{time.UnixMicro(archive.GoneBefore).UTC(), archive.Months}
		}
		return cmp.Or(err, report.name(ctx, tx))
	})
	if err != nil {
		return nil, fmt.Errorf("reconcile: %w", store.Classify(err))
	}
	return report, nil
}

// findings collects the results of a run.
type findings struct{ of map[string]*Check }

func newFindings() *findings {
	f := &findings{make(map[string]*Check, len(checks))}
	for _, name := range checks {
		f.of[name] = &Check{Name: name, Examples: []Disagreement{}}
	}
	return f
}

// add records a row for which a check failed.
func (f *findings) add(check string, e Disagreement) {
	c := f.of[check]
	if c.Rows++; len(c.Examples) < maxExamples {
		c.Examples = append(c.Examples, e)
	}
}

func (f *findings) report() *Report {
	r := &Report{OK: true}
	for _, name := range checks {
		r.OK = r.OK && f.of[name].Rows == 0
		r.Checks = append(r.Checks, *f.of[name])
	}
	return r
}
