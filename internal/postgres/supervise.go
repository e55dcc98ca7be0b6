package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = time.Second
	// stableAfter is how long a server must have run for its next death to
	// count as a new trouble and not as more of the same.
	stableAfter = 30 * time.Second
	// inUseWait bounds the wait for an earlier server's last backends.
	inUseWait = time.Minute
)

// supervise keeps the server running until ctx ends or it is given up. It
// answers once on ready: after the first start, which startCtx bounds too.
func (e *Embedded) supervise(ctx, startCtx context.Context, ready chan<- error) {
	defer close(e.done)
	defer e.release()

	p, err := e.firstStart(startCtx)
	ready <- err
	if err != nil {
		e.err = err
		return
	}
	trouble := trouble{giveUpAfter: e.opts.GiveUpAfter, readyAt: time.Now()}
	for {
		select {
		case <-ctx.Done():
			e.err = e.shutdown(p)
			return
		case <-p.exited:
		}
		e.pid.Store(0)
		failure := p.failure()
		e.log.Error("embedded PostgreSQL died; starting it again", "error", failure)
		if p, err = e.restart(ctx, &trouble, failure); err != nil {
			e.err = err
			e.log.Error("embedded PostgreSQL is given up", "error", err)
			return
		}
		if p == nil {
			return // stopped meanwhile
		}
		e.log.Info("embedded PostgreSQL is ready again", "pid", e.PID())
	}
}

// firstStart starts the server, waiting for the last backends of a killed one.
func (e *Embedded) firstStart(ctx context.Context) (*process, error) {
	limit := time.Now().Add(inUseWait)
	for {
		p, err := e.startOnce(ctx)
		if !errors.Is(err, errStillInUse) || time.Now().After(limit) {
			return p, err
		}
		if !sleep(ctx, firstBackoff) {
			return nil, errors.Join(err, ctx.Err())
		}
	}
}

// restart starts the server again, with growing pauses. It returns nil for
// both when ctx ended first.
func (e *Embedded) restart(ctx context.Context, trouble *trouble, failure error) (*process, error) {
	for {
		pause, ok := trouble.next(time.Now())
		if !ok {
			return nil, fmt.Errorf("the server keeps dying: %w", failure)
		}
		if !sleep(ctx, pause) {
			return nil, nil
		}
		attempt, cancel := context.WithTimeout(ctx, e.opts.StartTimeout)
		failure = clearOrphans(attempt, e.layout, e.log)
		var p *process
		if failure == nil {
			p, failure = e.startOnce(attempt)
		}
		cancel()
		if ctx.Err() != nil && failure != nil {
			return nil, nil // startOnce has shut it down
		}
		if failure == nil {
			trouble.readyAt = time.Now()
			return p, nil
		}
		e.log.Error("embedded PostgreSQL did not start; trying again", "error", failure)
	}
}

// trouble decides how a dying server is started again; pure but for its
// arguments.
type trouble struct {
	giveUpAfter time.Duration
	readyAt     time.Time // the last time the server became ready
	since       time.Time // the first death of the present trouble
	backoff     time.Duration
}

// next returns the pause before the next start, and false when it is time to
// give up. The first restart comes at once: every hit waits for it.
func (t *trouble) next(now time.Time) (time.Duration, bool) {
	if t.since.IsZero() || (t.readyAt.After(t.since) && now.Sub(t.readyAt) >= stableAfter) {
		t.since, t.backoff = now, 0
		return 0, true
	}
	if now.Sub(t.since) > t.giveUpAfter {
		return 0, false
	}
	t.backoff = min(max(2*t.backoff, firstBackoff), maxBackoff)
	return t.backoff, true
}
