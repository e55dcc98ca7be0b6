package hits

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/plans/catalog"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// Only an outage lets a hit in; whatever else the database says does not.
func TestOnlyAnOutageLetsIn(t *testing.T) {
	t.Parallel()
	s := &Room{Server: &serve.Server{Options: serve.Options{Engine: unreached(t), Estimate: func() (int64, bool) { return 7, true }}}}
	target := targetOf()
	for err, lets := range map[error]bool{
		session.ErrUnavailable: true, session.ErrNoSession: false, session.ErrInternal: false, session.ErrBusy: false, session.ErrStopped: false,
		session.ErrOutcomeUnknown: false, &model.StaleError{Change: 7}: false, errors.New("other"): false,
	} {
		wrapped := fmt.Errorf("x: %w", err)
		d, got := s.withoutDatabase(target, 3, false, wrapped)
		if lets && (got != nil || !d.Allowed || !d.Degraded || d.Cost != 3 || d.At != 7) || !lets && (!errors.Is(got, err) || d.Allowed) {
			t.Errorf("%v: %+v, %v", err, d, got)
		}
	}
	target = targetOf(&model.Limit{DenyOutage: true})
	if d, err := s.withoutDatabase(target, 3, false, session.ErrUnavailable); d.Allowed || !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("a limit that denies: %+v, %v", d, err)
	}
}

// Who is suspended or has ended is not let in.
func TestAnOutageLetsNobodyInWhoIsBarred(t *testing.T) {
	t.Parallel()
	s := &Room{Server: &serve.Server{Options: serve.Options{Engine: unreached(t), Estimate: func() (int64, bool) { return 7, true }}}}
	for from, barred := range map[int64]bool{math.MinInt64: true, 7: true, 8: false} {
		target := targetOf()
		target.Bar(from, plans.ErrEnded)
		d, err := s.withoutDatabase(target, 3, false, session.ErrUnavailable)
		if barred != errors.Is(err, plans.ErrEnded) || barred == d.Allowed {
			t.Errorf("from %d: %+v, %v", from, d, err)
		}
	}
}

// TestBarredByOldNews: a node that may have missed changes asks before it says that a customer is barred.
func TestBarredByOldNews(t *testing.T) {
	t.Parallel()
	pg := pgtest.Server(t)
	pool := planstest.NewPool(t, pg.URL())
	admin := planstest.NewStore(t, pg.URL())
	var since atomic.Int64
	c := catalog.New(pool, catalog.Options{
		Monotonic: func() time.Duration { return time.Duration(since.Load()) }, Now: planstest.WallClock,
		Within: testkit.Patience,
	})
	s := &Room{Server: &serve.Server{Options: serve.Options{Catalog: c}}}
	if err := c.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := errors.New("other")
	says := func(err error, want error) {
		t.Helper()
		if got := s.barred(t.Context(), err); !errors.Is(got, want) {
			t.Errorf("%v of %v, want %v", got, err, want)
		}
	}
	planstest.Declare(t, admin, "requests")
	says(plans.ErrSuspended, plans.ErrSuspended) // it asked within the last second
	since.Add(int64(2 * time.Second))
	says(other, other)
	says(nil, nil)
	stale, is := errors.AsType[*model.StaleError](s.barred(t.Context(), plans.ErrEnded))
	if !is || stale.Change != planstest.ChangeNumber(t, admin) {
		t.Errorf("after a change: %v", stale)
	}
	since.Add(int64(2 * time.Second))
	says(plans.ErrEnded, plans.ErrEnded) // nothing has changed
	since.Add(int64(2 * time.Second))
	pg.Stop()
	says(plans.ErrSuspended, plans.ErrSuspended)
}

// What an outage lets in is at the clock's instant, too.
func TestDegradedByTheTestClock(t *testing.T) {
	t.Parallel()
	estimated := func() (int64, bool) { return instant("2030-01-01T00:00:00Z"), true }
	for want, clock := range map[string]*model.TestClock{
		"2030-01-01T00:00:00Z": nil, "2026-01-31T12:00:00Z": {Key: "c1", Now: instant("2026-01-31T12:00:00Z")},
	} {
		s := &Room{Server: &serve.Server{Options: serve.Options{Engine: unreached(t), Estimate: estimated}}}
		d, err := s.withoutDatabase(model.NewTarget(1, 7, 1, nil, calendar.Periods{}, clock), 1, false, session.ErrUnavailable)
		if err != nil || !d.Degraded || d.At != instant(want) {
			t.Errorf("%+v %v", d, err)
		}
		answer := string(respond.AppendDecision(nil, &respond.Subject{}, &d, nil, 0, 200))
		if strings.Contains(answer, `"test_clock":"c1"`) != (clock != nil) {
			t.Errorf("%s", answer)
		}
	}
}

// targetOf is a customer's target with limits.
func targetOf(limits ...*model.Limit) *model.Target {
	return model.NewTarget(1, 7, 1, limits, calendar.Periods{}, nil)
}

// unreached is an engine without a database.
func unreached(t *testing.T) *quota.Engine {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	began := time.Now()
	e, err := quota.NewEngine(quota.Options{
		Connect: func(context.Context) (*pgx.Conn, error) { return nil, io.EOF }, Pool: pool,
		Now:  func(context.Context) (int64, error) { return 0, io.EOF },
		Wall: time.Now, Stopwatch: func() time.Duration { return time.Since(began) }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

func instant(text string) int64 {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t.UnixMicro()
}
