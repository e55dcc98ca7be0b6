package sweep

import (
	"context"
	"log/slog"
	"time"
)

// stepTimeout bounds each transaction of upkeep, waiting for a connection included.
const stepTimeout = 10 * time.Second

// repeated is work that a node does again and again. The log says when it begins to fail
// and when it works again.
type repeated struct {
	log          *slog.Logger
	first, pause time.Duration // before the first time, and between two
	fails, works string        // for the log
	do           func(context.Context) error
}

// run works until ctx ends.
func (r *repeated) run(ctx context.Context) {
	timer := time.NewTimer(r.first)
	defer timer.Stop()
	for failing := false; ; timer.Reset(r.pause) {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := r.do(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			r.log.Warn(r.fails, "error", err)
		case err == nil && failing:
			r.log.Info(r.works)
		}
		failing = err != nil
	}
}
