package upkeep

import (
	"context"
	"log/slog"
	"time"

	"quotad/internal/postgres"
)

// Repeated is work that a node does again and again. The log says once that it begins to fail,
// and once that it works again. In an outage of the database it does so on the level debug: there is a
// line for the outage itself, and none is needed for each work.
type Repeated struct {
	Log          *slog.Logger
	First, Pause time.Duration // before the first time, and between two; Do may change Pause
	Fails, Works string        // for the log
	Do           func(context.Context) error
}

// Run works until ctx ends.
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
