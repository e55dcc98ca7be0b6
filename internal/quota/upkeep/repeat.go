package upkeep

import (
	"context"
	"log/slog"
	"time"

	"quotad/internal/postgres"
)

// Repeated is work that a node repeats. The log contains one line when the work begins to fail, and one when it
// succeeds again. In an outage of the database, these lines have the level debug, because the outage itself is
// logged.
type Repeated struct {
	Log          *slog.Logger
	First, Pause time.Duration // the pauses before the first run and between two runs; Do may change Pause
	Fails, Works string        // for the log
	Do           func(context.Context) error
}

// Run repeats the work until ctx ends.
func (r *Repeated) Run(ctx context.Context) {
	timer := time.NewTimer(r.First)
	defer timer.Stop()
	failing, level := false, slog.LevelWarn
	for ; ; timer.Reset(r.Pause) {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := r.Do(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			if level = slog.LevelWarn; postgres.Outage(err) {
				level = slog.LevelDebug
			}
			r.Log.Log(ctx, level, r.Fails, "error", err)
		case err == nil && failing:
			r.Log.Log(ctx, min(level, slog.LevelInfo), r.Works)
		}
		failing = err != nil
	}
}
