package closing

import (
	"context"
	"time"
)

// pace is how many customers a node closes in a second at most, while many are due. So 100,000 are
// closed within five minutes: see docs/benchmarks.
const pace = 350

// pause waits after a transaction that took a full batch: hits have the processors meanwhile. No
// lock is held. The error is ctx's.
func (w *Worker) pause(ctx context.Context, size int, took time.Duration) error {
	timer := time.NewTimer(pauseOf(size, took))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// pauseOf returns what a transaction left of the time that its customers have at the pace. The pause is
// at least half of what the transaction took: on a slow machine hits have a third of the time, too.
func pauseOf(size int, took time.Duration) time.Duration {
	return max(time.Duration(size)*time.Second/pace-took, took/2)
}
