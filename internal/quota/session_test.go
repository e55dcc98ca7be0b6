package quota

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/postgres/pgtest"
)

// mute is a connection whose server hears nothing any more while off is set.
type mute struct {
	net.Conn
	off *atomic.Bool
}

func (c mute) Write(p []byte) (int, error) {
	if c.off.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// A server that does not answer keeps no hit for longer than a batch may take, and the next
// one finds another session.
func TestSilentServer(t *testing.T) {
	db, ctx := newTestDB(t), pgtest.Context(t)
	var off atomic.Bool
	options := db.options(newTestClock(testEpoch))
	options.Connect = db.connectBy(func(conn net.Conn) net.Conn { return mute{conn, &off} })
	e, err := newEngine(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.lanes[0].session.close)
	hits := []Hit{{Target: testTarget(1, 1, 1, windowLimit(t, "a", 10, "1d")), Cost: 1}}
	if r, _ := e.sendBatch(ctx, hits); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	off.Store(true)
	start := time.Now()
	r, _ := e.sendBatch(ctx, hits)
	took := time.Since(start)
	if !errors.Is(r[0].Err, ErrOutcomeUnknown) || took < sendLimit || took > sendLimit+renewAfter+time.Second {
		t.Errorf("%v after %s", r[0].Err, took)
	}
	off.Store(false)
	if r, _ = e.sendBatch(ctx, hits); r[0].Err != nil || r[0].Decision.View(0).Used != 2 {
		t.Errorf("%s, %v in another session", r[0].Decision.String(), r[0].Err)
	}
}

// The deadline of a session's last batch ends nothing that comes later.
func TestOldDeadline(t *testing.T) {
	var hits []Hit
	for name, do := range map[string]func(context.Context, *Engine, *store) error{
		"a batch": func(ctx context.Context, e *Engine, _ *store) error {
			r, _ := e.sendBatch(ctx, hits)
			return r[0].Err
		},
		"a transaction of several round trips": func(ctx context.Context, _ *Engine, s *store) error {
			f := s.begin(ctx)
			return errors.Join(f.answers(), f.commit())
		},
		"a ping": func(ctx context.Context, _ *Engine, s *store) error {
			if !s.alive(ctx) {
				return errors.New("it is not alive")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, ctx := newTestDB(t), pgtest.Context(t)
			e := db.handEngine(t, newTestClock(testEpoch))
			hits = []Hit{{Target: testTarget(1, 1, 1, windowLimit(t, "a", 10, "1d")), Cost: 1}}
			if r, _ := e.sendBatch(ctx, hits); r[0].Err != nil {
				t.Fatal(r[0].Err)
			}
			s := e.lanes[0].session.store
			if s.until.IsZero() {
				t.Fatal("the batch had no deadline")
			}
			s.until = time.Now().Add(-time.Hour)
			if err := s.conn.PgConn().Conn().SetDeadline(s.until); err != nil {
				t.Fatal(err)
			}
			if err := do(ctx, e, s); err != nil {
				t.Error(err)
			}
			if e.lanes[0].session.store != s {
				t.Error("the session was given up")
			}
		})
	}
}

// An engine that is closed in a hurry waits for no lock.
func TestCutOff(t *testing.T) {
	db, ctx := newTestDB(t), pgtest.Context(t)
	e := db.startEngine(t, newTestClock(testEpoch))
	target := testTarget(1, 1, 1, windowLimit(t, "a", 10, "1d"))
	if _, err := e.Decide(ctx, target, 1); err != nil {
		t.Fatal(err)
	}
	tx, err := db.session(t).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "SELECT FROM counters WHERE customer = 1 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	go func() {
		_, err := e.Decide(ctx, target, 1)
		told <- err
	}()
	for waiting := false; !waiting; {
		const sql = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')"
		if err := db.pool.QueryRow(ctx, sql).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	hurry, cancel := context.WithCancel(ctx)
	cancel()
	start := time.Now()
	if err := e.Close(hurry); !errors.Is(err, context.Canceled) {
		t.Errorf("it was closed with %v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("closing took %s", took)
	}
	if err := <-told; !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("the hit under way was told %v", err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
}

// The word of an attempt that failed long ago, before one that worked, is no outage: the
// session is a moment away.
func TestAnOldFailureIsNoOutage(t *testing.T) {
	db, ctx := newTestDB(t), pgtest.Context(t)
	s := &db.handEngine(t, newTestClock(testEpoch)).lanes[0].session
	ready := s.store
	making, tried := make(chan *store, 1), make(chan struct{}, 1)
	s.store, s.making, s.tried, s.cancel = nil, making, tried, func() {}
	tried <- struct{}{}
	go func() {
		for len(tried) > 0 { // until the session has heard of it
			time.Sleep(time.Millisecond)
		}
		making <- ready
	}()
	if err := s.ready(ctx); err != nil {
		t.Error(err)
	}
}
