package closing

import (
	"context"
	"time"
)

// pace is the maximum number of customers that a node closes per second while many are due. At this pace,
// 100,000 customers are closed within five minutes, see docs/benchmarks.
const pace = 350

// pause waits after a transaction that processed a full batch, so that hits can use the processors. No lock
// is held meanwhile. If ctx ends first, pause returns its error.
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

// pauseOf returns the rest of the time that size customers have at the pace after a transaction that took
// took. The pause is at least took/2, so that hits have a third of the time even on a slow machine.
func pauseOf(size int, took time.Duration) time.Duration {
	return max(time.Duration(size)*time.Second/pace-took, took/2)
}
