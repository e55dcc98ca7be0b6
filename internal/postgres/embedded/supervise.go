package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quotad/internal/postgres"
)

const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = time.Second
	// stableAfter is the minimum uptime of a server after which its next crash counts as a new trouble. After a
	// shorter uptime, the crash belongs to the previous trouble.
	stableAfter = 30 * time.Second
	// inUseWait is the maximum wait for an earlier server's last backends.
	inUseWait = time.Minute
)

// supervise keeps the server running until ctx ends or the server is given up. It sends one value on ready,
// after the first start. startCtx additionally bounds the first start.
func (s *Server) supervise(ctx, startCtx context.Context, ready chan<- error) {
	defer close(s.done)
	defer s.release()

	p, err := s.firstStart(startCtx)
	ready <- err
	if err != nil {
		s.err = err
		return
	}
	trouble := trouble{giveUpAfter: s.opts.GiveUpAfter, readyAt: time.Now()}
	for {
		select {
		case <-ctx.Done():
			s.err = s.shutdown(p)
			return
		case <-p.exited:
		}
		s.pid.Store(0)
		failure := p.failure()
		s.log.Error("embedded PostgreSQL died; starting it again", "error", failure)
		if p, err = s.restart(ctx, &trouble, failure); err != nil {
			s.err = err
			s.log.Error("embedded PostgreSQL is given up", "error", err)
			return
		}
		if p == nil {
			return // the server was stopped during the restart
		}
		s.log.Info("embedded PostgreSQL is ready again", "pid", s.PID())
	}
}

// firstStart starts the server, and waits for the last backends of a killed server.
func (s *Server) firstStart(ctx context.Context) (*process, error) {
	limit := time.Now().Add(inUseWait)
	for {
		p, err := s.startOnce(ctx)
		if !errors.Is(err, errStillInUse) || time.Now().After(limit) {
			return p, err
		}
		if !postgres.Sleep(ctx, firstBackoff) {
			return nil, errors.Join(err, ctx.Err())
		}
	}
}

// restart restarts the server, after increasing pauses. It returns nil for both results if ctx ended first.
func (s *Server) restart(ctx context.Context, trouble *trouble, failure error) (*process, error) {
	for {
		pause, ok := trouble.next(time.Now())
		if !ok {
			return nil, fmt.Errorf("the server keeps dying: %w", failure)
		}
		if !postgres.Sleep(ctx, pause) {
			return nil, nil
		}
		attempt, cancel := context.WithTimeout(ctx, s.opts.StartTimeout)
		failure = clearOrphans(attempt, s.layout, s.log)
		var p *process
		if failure == nil {
			p, failure = s.startOnce(attempt)
		}
		cancel()
		if ctx.Err() != nil && failure != nil {
			return nil, nil // startOnce has shut the server down
		}
		if failure == nil {
			trouble.readyAt = time.Now()
			return p, nil
		}
		s.log.Error("embedded PostgreSQL did not start; trying again", "error", failure)
	}
}

// trouble decides when to restart a crashed server and when to give it up. It reads no clock.
type trouble struct {
	giveUpAfter time.Duration
	readyAt     time.Time // the last time the server became ready
	since       time.Time // the first crash of the current trouble
	backoff     time.Duration
}

// next returns the pause before the next start, or false if it is time to give up. The first restart has no
// pause, because every hit waits for it.
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
