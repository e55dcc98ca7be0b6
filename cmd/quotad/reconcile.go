package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/billing"
	"quotad/internal/billing/reconcile"
)

// errNotOK ends the process with code 1 and without a further message.
var errNotOK = errors.New("not ok")

type reconcileCmd struct {
	common
	Timeout time.Duration `default:"1h" help:"How long it may take."`
}

// run prints the same report as GET /v1/reconcile.
func (r *reconcileCmd) run(ctx context.Context, p *program) error {
	if r.Timeout <= 0 {
		return badSetting("timeout", "must be above 0, not %s", r.Timeout)
	}
	return r.withPool(ctx, p, func(ctx context.Context, pool *pgxpool.Pool) error {
		ctx, cancel := context.WithTimeout(ctx, r.Timeout)
		defer cancel()
		report, err := reconcile.New(reconcile.Options{Pool: pool, Stopwatch: newStopwatch()}).Run(ctx)
		if errors.Is(err, billing.ErrReconcileTime) {
			return fmt.Errorf("the check did not end within %s: give it a longer --timeout", writtenTime(r.Timeout))
		}
		if err != nil {
			return err
		}
		to := json.NewEncoder(p.stdout)
		to.SetIndent("", "  ")
		if err := to.Encode(report); err != nil {
			return err
		}
		if !report.OK {
			return errNotOK
		}
		return nil
	})
}
