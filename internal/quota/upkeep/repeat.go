package upkeep

import (
	"context"
	"log/slog"
	"time"
)

// Repeated is work that a node does again and again. The log says once that it begins to fail,
// and once that it works again.
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
	for failing := false; ; timer.Reset(r.Pause) {
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
			r.Log.Warn(r.Fails, "error", err)
		case err == nil && failing:
			r.Log.Info(r.Works)
		}
		failing = err != nil
	}
}
