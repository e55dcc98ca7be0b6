package session

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// TestAnOutageEndsItsSuspicions holds that a batch which began before the end of an outage does not have the
// circuit look again afterwards: on a machine that has much to make up for, the probe of that look may be late,
// and open the circuit. A batch that begins after the end has the circuit look.
func TestAnOutageEndsItsSuspicions(t *testing.T) {
	url, start, seen := pgtest.NewDatabase(t), time.Now(), make(chan struct{})
	var probes atomic.Int64
	o := &Options{
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			switch probes.Add(1) {
			case 1:
				return nil, context.DeadlineExceeded
			case 2:
				<-seen
			}
			return postgres.Connect(ctx, url, SessionSettings)
		},
		Now:       func(context.Context) (int64, error) { return 1, nil },
		Stopwatch: func() time.Duration { return time.Since(start) },
		Log:       slog.New(slog.DiscardHandler),
		Troubles:  NewTroubles(slog.New(slog.DiscardHandler)),
		Patience:  testkit.Patience,
	}
	const within = time.Hour // no batch is late by itself
	c := NewCircuit(within, "SELECT 1", o)
	o.Circuit = c
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	s, lockTimeout := &Session{Options: o}, &pgconn.PgError{Code: "55P03"}
	begin := func() { s.busySince.Store(int64(o.Stopwatch())) }
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx, []*Session{s}) })

	begin()
	s.Suspect(lockTimeout)
	testkit.Eventually(t, "the circuit opens", func() bool { return c.Err() != nil })
	s.Suspect(lockTimeout)
	close(seen)
	testkit.Eventually(t, "the circuit is closed", func() bool { return c.Err() == nil })
	s.Suspect(lockTimeout)
	testkit.Eventually(t, "the suspicions are read", func() bool { return len(c.suspected) == 0 })
	old := s.began()
	begin()
	s.Suspect(lockTimeout)
	testkit.Eventually(t, "a new batch has the circuit look", func() bool { return probes.Load() >= 3 })
	cancel()
	running.Wait() // or a probe that is on its way would not be seen
	if n := probes.Load(); n != 3 {
		t.Errorf("%d probes", n)
	}
	if !c.late(s.began()+within, within/2) {
		t.Error("a batch that began after the outage is not late")
	}
	s.busySince.Store(int64(old))
	if c.late(old+within, within/2) {
		t.Error("a batch that began before the end of the outage is late")
	}
}

// TestALookThatIsOverOpensNothing holds that a timer which fires late, once the probe of its look has committed,
// does not open the circuit.
func TestALookThatIsOverOpensNothing(t *testing.T) {
	c := NewCircuit(time.Hour, "", &Options{Log: slog.New(slog.DiscardHandler)})
	look, over := context.WithCancel(t.Context())
	over()
	if c.open(look, nil); c.Err() != nil {
		t.Error("the circuit is open")
	}
	if c.open(t.Context(), nil); c.Err() == nil {
		t.Error("a look that is under way does not open the circuit")
	}
}

// TestAnOldHitIsNoTrouble holds that a hit which was sent before the end of an outage, and is answered after the end,
// does not show the node as degraded again. What a session meets after the end does, and so does a later hit.
func TestAnOldHitIsNoTrouble(t *testing.T) {
	const end, within = time.Minute, time.Second
	for name, c := range map[string]struct {
		report func(*Troubles, error, time.Duration)
		at     time.Duration
		counts bool
	}{
		"a hit that waited":    {(*Troubles).ReportHit, end + within - 1, false},
		"a hit of after":       {(*Troubles).ReportHit, end + within, true},
		"a session's, at once": {(*Troubles).Report, end + 1, true},
	} {
		troubles := NewTroubles(slog.New(slog.DiscardHandler))
		troubles.ReportHit(ErrOutcomeUnknown, end-1)
		if troubles.Worst(end) == nil {
			t.Errorf("%s: the outage is no trouble", name)
		}
		troubles.forgive(end, within)
		if why := troubles.Worst(end); why != nil {
			t.Errorf("%s: after the end there is %v", name, why)
		}
		c.report(troubles, ErrOutcomeUnknown, c.at)
		if why := troubles.Worst(c.at); (why != nil) != c.counts {
			t.Errorf("%s: %v", name, why)
		}
	}
}
