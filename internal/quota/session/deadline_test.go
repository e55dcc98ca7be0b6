package session

import (
	"context"
	"errors"
	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/quota/quotatest"
	"testing"
	"time"
)

// The deadline of a session's last batch ends nothing that comes later.
func TestOldDeadline(t *testing.T) {
	var hits []model.Hit
	for name, do := range map[string]func(context.Context, *quota.Engine, *store) error{
		"a batch": func(ctx context.Context, e *quota.Engine, _ *store) error {
			r, _ := e.sendBatch(ctx, hits)
			return r[0].Err
		},
		"a transaction of several round trips": func(ctx context.Context, _ *quota.Engine, s *store) error {
			f := s.Begin(ctx)
			return errors.Join(f.Answers(), f.Commit())
		},
		"a ping": func(ctx context.Context, _ *quota.Engine, s *store) error {
			if !s.alive(ctx) {
				return errors.New("it is not alive")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, ctx := newTestDB(t), pgtest.Context(t)
			e := db.handEngine(t, quotatest.NewClock(quotatest.Epoch))
			hits = []model.Hit{{Target: quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 10, "1d")), Cost: 1}}
			if r, _ := e.sendBatch(ctx, hits); r[0].Err != nil {
				t.Fatal(r[0].Err)
			}
			s := e.Lanes[0].Session.Conn
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
			if e.Lanes[0].Session.Conn != s {
				t.Error("the session was given up")
			}
		})
	}
}

// The word of an attempt that failed long ago, before one that worked, is no outage: the
// session is a moment away.
func TestAnOldFailureIsNoOutage(t *testing.T) {
	db, ctx := newTestDB(t), pgtest.Context(t)
	s := &db.handEngine(t, quotatest.NewClock(quotatest.Epoch)).Lanes[0].Session
	ready := s.Conn
	making, tried := make(chan *store, 1), make(chan struct{}, 1)
	s.Conn, s.making, s.tried, s.cancel = nil, making, tried, func() {}
	tried <- struct{}{}
	go func() {
		for len(tried) > 0 { // until the session has heard of it
			time.Sleep(time.Millisecond)
		}
		making <- ready
	}()
	if err := s.Ready(ctx); err != nil {
		t.Error(err)
	}
}
