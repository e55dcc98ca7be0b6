package quota

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/quotatest"
)

// muted are connections whose server hears nothing any more while off is set.
type muted struct {
	off   atomic.Bool
	until atomic.Pointer[time.Time] // the deadline of what was sent first while it was
}

func (m *muted) wrap(conn net.Conn) net.Conn { return &mute{Conn: conn, muted: m} }

type mute struct {
	net.Conn
	*muted
	deadline atomic.Pointer[time.Time]
}

func (c *mute) SetDeadline(at time.Time) error {
	c.deadline.Store(&at)
	return c.Conn.SetDeadline(at)
}

func (c *mute) Write(p []byte) (int, error) {
	if c.off.Load() {
		c.until.CompareAndSwap(nil, c.deadline.Load())
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// A server that does not answer keeps no hit for longer than a batch may take, and the next
// one finds another session.
func TestSilentServer(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	var m muted
	var asked atomic.Pointer[time.Time] // the last instant that the engine was told
	options := db.options(quotatest.NewClock(quotatest.Epoch))
	impatient(&options)
	options.Connect = db.ConnectBy(m.wrap)
	options.Stopwatch = func() time.Duration { return time.Hour } // no session is idle
	options.Wall = func() time.Time {
		now := time.Now()
		asked.Store(&now)
		return now
	}
	e, err := newEngine(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.lanes[0].Session.Close)
	t.Cleanup(e.workers[0].Session.Close)
	e.awaitSession(ctx, t)
	hits := []model.Hit{{Target: quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 10, "1d")), Cost: 1}}
	if r, _ := e.sendBatch(ctx, hits); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	m.off.Store(true)
	start := time.Now()
	r, _ := e.sendBatch(ctx, hits)
	ended, until := time.Now(), m.until.Load()
	if until == nil || !errors.Is(r[0].Err, session.ErrOutcomeUnknown) {
		t.Fatalf("%v: deadline %v", r[0].Err, until)
	}
	if least := until.Sub(start); least < session.SendLimit || ended.Before(*until) {
		t.Errorf("a batch may take %s, and ended after %s", least, ended.Sub(start))
	}
	if most := until.Sub(*asked.Load()); most > session.SendLimit+time.Second {
		t.Errorf("a batch may take %s more", most)
	}
	m.off.Store(false)
	e.awaitSession(ctx, t)
	if r, _ = e.sendBatch(ctx, hits); r[0].Err != nil || r[0].Decision.View(0).Used != 2 {
		t.Errorf("%s, %v in another session", r[0].Decision.String(), r[0].Err)
	}
}

// An engine that is closed in a hurry waits for no lock.
func TestCutOff(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch), func(o *Options) {
		o.Connect = func(ctx context.Context) (*pgx.Conn, error) { // nothing else ends the wait for a lock
			conn, err := db.Connect(ctx)
			if err == nil {
				_, err = conn.Exec(ctx, "SET lock_timeout = 0")
			}
			return conn, err
		}
	})
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 10, "1d"))
	if _, err := e.Decide(ctx, target, 1); err != nil {
		t.Fatal(err)
	}
	tx := db.HoldRow(ctx, t, 1, true)
	told := make(chan error, 1)
	go func() {
		_, err := e.Decide(ctx, target, 1)
		told <- err
	}()
	for waiting := false; !waiting; {
		const sql = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')"
		if err := db.Pool.QueryRow(ctx, sql).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	hurry, cancel := context.WithCancel(ctx)
	cancel()
	if err := e.Close(hurry); !errors.Is(err, context.Canceled) {
		t.Errorf("it was closed with %v", err)
	}
	if err := <-told; !errors.Is(err, session.ErrOutcomeUnknown) {
		t.Errorf("the hit under way was told %v", err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
}

// A new session charges nothing before it was confirmed, and then nothing for targets of another
// history: by swaps, under locks, and from the memory of refusals.
func TestHistory(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	var history atomic.Uint64
	var open atomic.Bool
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch), func(o *Options) {
		o.History = history.Load
		o.Confirm = func(context.Context, *pgx.Conn) error {
			if !open.Load() {
				return errors.New("another history, perhaps")
			}
			history.Store(1) // it is another
			return nil
		}
	})
	of := func(history uint64) *model.Target {
		target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 2, "1d"))
		target.SetHistory(history, nil)
		return target
	}
	ways := map[string]func(*model.Target) error{
		"swap": func(t *model.Target) error { _, err := e.Decide(ctx, t, 1); return err },
		"locked": func(t *model.Target) error {
			return e.DecideAll(ctx, []model.Hit{{Target: t, Cost: 1, ID: model.NewID("hit", fmt.Sprint(t.History), "1")}})[0].Err
		},
	}
	old := of(0)
	for name, way := range ways {
		if err := way(old); !errors.Is(err, session.ErrNoSession) {
			t.Errorf("%s: %v before a session was confirmed", name, err)
		}
	}
	open.Store(true)
	for name, way := range ways {
		var stale *model.StaleError
		testkit.Eventually(t, name+" on a confirmed session", func() bool { return errors.As(way(old), &stale) })
		if stale.Change != 0 {
			t.Errorf("%s: to be resolved at change %d", name, stale.Change)
		}
		if err := way(of(1)); err != nil {
			t.Errorf("%s: %v of the history that there is", name, err)
		}
	}
	if got := pgtest.Query[int64](t, db.URL, "SELECT sum(total)::bigint FROM counters"); got != 2 {
		t.Errorf("%d units were charged, not 2", got)
	}
	// Memory says no for the history that there is, and says nothing of another.
	if d, err := e.Decide(ctx, of(1), 1); err != nil || d.Allowed {
		t.Fatal(d.String(), err)
	}
	before := e.Stats().FromMemory
	if d, err := e.Decide(ctx, of(1), 1); err != nil || d.Allowed || e.Stats().FromMemory != before+1 {
		t.Errorf("%s, %v, not from memory", d.String(), err)
	}
	if _, err := e.Decide(ctx, of(2), 1); err == nil || e.Stats().FromMemory != before+1 {
		t.Errorf("%v, from memory", err)
	}
}
