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

// Options configure a Reconciler. Both are required.
type Options struct {
	// Pool reads. A replica's will do.
	Pool *pgxpool.Pool
	// Stopwatch shows the time since some moment, and never steps.
	Stopwatch func() time.Duration
	// Page bounds a transaction, and each statement in it has a ninth less: while a snapshot is open,
	// counters are not pruned. 0 means 450 ms.
	Page time.Duration
}

// Reconciler checks the books of one database. It is safe for concurrent use; it works on one run
// at a time.
type Reconciler struct {
	pool      *pgxpool.Pool
	stopwatch func() time.Duration
	page      time.Duration
	stored    *invoices.Stored
	running   chan struct{} // one element while a run is under way
}

// New returns a reconciler. It starts nothing.
func New(o Options) *Reconciler {
	return &Reconciler{pool: o.Pool, stopwatch: o.Stopwatch, page: cmp.Or(o.Page, defaultPage), stored: invoices.NewStored(), running: make(chan struct{}, 1)}
}

// Run makes all checks. It takes as long as it needs, so ctx should have a deadline. Errors:
// billing.ErrReconciling while another run is under way, billing.ErrReconcileTime where ctx ended
// first, and those of store.Classify.
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

// findings is a report that grows.
type findings struct{ of map[string]*Check }

func newFindings() *findings {
	f := &findings{make(map[string]*Check, len(checks))}
	for _, name := range checks {
		f.of[name] = &Check{Name: name, Examples: []Disagreement{}}
	}
	return f
}

// add tells of a row for which a check does not hold.
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
