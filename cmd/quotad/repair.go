package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing/closing"
	"quotad/internal/billing/invoices"
	"quotad/internal/plans"
	"quotad/internal/plans/catalog"
	"quotad/internal/postgres"
	"quotad/internal/quota"
	"quotad/internal/quota/session"
)

type repairClock struct {
	common
	DryRun  bool          `help:"Only say what would be done."`
	Timeout time.Duration `default:"1h" help:"How long it may take."`
}

// repaired is the output of `quotad repair clock`.
type repaired struct {
	DatabaseTime string  `json:"database_time"`
	Offset       float64 `json:"ahead_of_this_machine_seconds"` // of the database's time, in seconds
	DryRun       bool    `json:"dry_run"`
	Ahead        int     `json:"counters_ahead"`
	Furthest     float64 `json:"furthest_seconds"`
	Brought      int     `json:"brought_back"`
	Closed       int     `json:"stay_at_closed_periods"`
	Left         int     `json:"left"`
}

// run sets counters that are ahead of the database's clock back to it. If some counters remain ahead, the exit
// code is 1.
func (r *repairClock) run(ctx context.Context, p *program) error {
	if r.Timeout <= 0 {
		return badSetting("timeout", "must be above 0, not %s", r.Timeout)
	}
	return r.withDatabase(ctx, p, existing, func(ctx context.Context, url string, log *slog.Logger) error {
		ctx, cancel := context.WithTimeout(plans.As(ctx, plans.Actor{By: plans.ActorCommand}), r.Timeout)
		defer cancel()
		report, err := r.repair(ctx, url, log)
		if err != nil {
			return err
		}
		to := json.NewEncoder(p.stdout)
		to.SetIndent("", "  ")
		if err := to.Encode(report); err != nil {
			return err
		}
		if report.Left > 0 {
			return errNotOK
		}
		return nil
	})
}

// repair runs the parts of a node that are needed to charge: a clock, a catalog, and an engine with one lane.
func (r *repairClock) repair(ctx context.Context, url string, log *slog.Logger) (report repaired, err error) {
	pool, err := postgres.Open(ctx, url, postgres.PoolOptions{Params: session.PoolSettings})
	if err != nil {
		return report, badDatabaseURL(err)
	}
	defer pool.Close()
	stopwatch, clock := newStopwatch(), postgres.NewClock(url, log)
	defer clock.Close()
	targets := catalog.New(pool, catalog.Options{Monotonic: stopwatch, Now: clock.Now, Log: log})
	engine, err := quota.NewEngine(quota.Options{
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			return postgres.Connect(ctx, url, session.SessionSettings)
		},
		Pool: pool, Now: clock.Now, Wall: time.Now, Stopwatch: stopwatch, AlsoAdjusted: invoices.OpenAdjustments, Log: log,
	})
	if err != nil {
		return report, err
	}
	background, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { clock.Run(background) })
	running.Go(func() { _ = targets.Run(background) }) // Run returns only when its context ends
	defer func() {
		cancel()
		running.Wait()
		ending, done := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer done()
		if closed := engine.Close(ending); err == nil {
			err = closed
		}
	}()
	now, err := clock.Now(ctx)
	if err != nil {
		return report, fmt.Errorf("read the database's clock: %w", err)
	}
	offset, _ := clock.Offset()
	ahead := closing.Ahead{Pool: pool, Catalog: targets, Engine: engine, Now: clock.Now}
	found, err := ahead.BringBack(ctx, r.DryRun)
	seconds := func(us int64) float64 { return math.Round(float64(us)/1e3) / 1e3 }
	return repaired{
		DatabaseTime: shown(time.UnixMicro(now)), Offset: seconds(offset.Microseconds()), DryRun: r.DryRun,
		Ahead: found.Ahead, Furthest: seconds(found.Furthest), Brought: found.Brought, Closed: found.Closed, Left: found.Left,
	}, err
}
