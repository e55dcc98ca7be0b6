package quota

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

func sumOf(hours []UsageHour) (admitted int64) {
	for _, h := range hours {
		admitted += h.Admitted
	}
	return admitted
}

// TestUsage: finished hours and the running one, by their bounds, in order, limited.
func TestUsage(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e, hour := db.startEngine(t, clock), int64(3600e6)
	l := quotatest.Window(t, "a", 1000, "1d")
	target, other := quotatest.Target(1, 1, 1, l), quotatest.Target(1, 2, 1, l)
	for i := range int64(4) {
		clock.Set(quotatest.Epoch + i*hour + 5)
		for _, h := range []model.Hit{{Target: target, Cost: 10 + i}, {Target: quotatest.WithCounter(target, "ip=1", l), Cost: 1}, {Target: other, Cost: 100}} {
			if d, err := e.Decide(ctx, h.Target, h.Cost); err != nil || !d.Allowed {
				t.Fatalf("%s, %v", d.String(), err)
			}
		}
	}
	all := []UsageHour{{quotatest.Epoch, 11, 0}, {quotatest.Epoch + hour, 12, 0}, {quotatest.Epoch + 2*hour, 13, 0}, {quotatest.Epoch + 3*hour, 14, 0}}
	for name, c := range map[string]struct {
		from, to int64
		limit    int
		want     []UsageHour
	}{
		"all":        {0, math.MaxInt64, 10, all},
		"two":        {0, math.MaxInt64, 2, all[:2]},
		"none":       {0, quotatest.Epoch, 10, nil},
		"inside":     {quotatest.Epoch + 1, quotatest.Epoch + 3*hour, 10, all[1:3]},
		"running":    {quotatest.Epoch + 3*hour, quotatest.Epoch + 3*hour + 1, 10, all[3:]},
		"up to it":   {quotatest.Epoch + hour, quotatest.Epoch + 3*hour, 10, all[1:3]},
		"after it":   {quotatest.Epoch + 3*hour + 1, math.MaxInt64, 10, nil},
		"zero limit": {0, math.MaxInt64, 0, nil},
	} {
		got, err := e.Usage(ctx, 1, 1, c.from, c.to, c.limit)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
	if got, err := e.Usage(ctx, 2, 1, 0, math.MaxInt64, 10); err != nil || len(got) != 0 {
		t.Errorf("a customer without usage: %v, %v", got, err)
	}
	if s, err := e.Standings(ctx, []*model.Target{other, target}); err != nil || s[0].PeriodUsed != 400 || s[1].PeriodUsed != 50 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestPeriodUsed: the usage of the period that holds the instant, of which the first hour
// is cut, with the running hour where that is in it.
func TestPeriodUsed(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 1000, "1d"))
	start := quotatest.Epoch - 86400e6 + 17*60e6 // 2026-02-28T00:17
	end := quotatest.Epoch + 30*86400e6 + 17*60e6
	for i, at := range []int64{start - 1, start, start + 43*60e6, end - 1, end} {
		clock.Set(at)
		if d, err := e.Decide(ctx, target, 1<<i); err != nil || !d.Allowed {
			t.Fatalf("%s, %v", d.String(), err)
		}
	}
	for at, want := range map[int64]int64{start - 1: 1, start: 14, end - 1: 14, end: 16} {
		clock.Set(at)
		s, err := e.Standings(ctx, []*model.Target{quotatest.WithCounter(target, "ip=1")})
		if err != nil || s[0].PeriodUsed != want || s[0].PeriodStart > at || s[0].PeriodEnd <= at {
			t.Errorf("at %d: %+v, %v; want %d", at, s, err, want)
		}
		hours, err := e.Usage(ctx, 1, 1, s[0].PeriodStart, s[0].PeriodEnd, 10)
		if err != nil || sumOf(hours) != want {
			t.Errorf("at %d: usage %v, %v; want %d", at, hours, err, want)
		}
	}
}

// TestUsageCountsAMovedHourOnce, also while it is being moved: the sum that readers see
// never falls, and never gets ahead of what was sent.
func TestUsageCountsAMovedHourOnce(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", model.MaxNumber, "3660d"))
	rounds := 400
	if testing.Short() {
		rounds = 50
	}
	stop, readers := make(chan struct{}), sync.WaitGroup{}
	for range 3 {
		readers.Go(func() {
			for seen := int64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				hours, err := e.Usage(ctx, 1, 1, 0, math.MaxInt64, 1000)
				sum := sumOf(hours)
				if err != nil || sum < seen {
					t.Errorf("the usage fell from %d to %d, %v", seen, sum, err)
					return
				}
				seen = sum
			}
		})
	}
	for i := range rounds {
		clock.Set(quotatest.Epoch + int64(i)*3600e6)
		if d, err := e.Decide(ctx, target, 3); err != nil || !d.Allowed {
			t.Errorf("%s, %v", d.String(), err)
			break
		}
	}
	close(stop)
	readers.Wait()
	hours, err := e.Usage(ctx, 1, 1, 0, math.MaxInt64, 1000)
	if err != nil || len(hours) != rounds || sumOf(hours) != int64(3*rounds) {
		t.Errorf("%d hours of %d units, %v", len(hours), sumOf(hours), err)
	}
}

// TestStandings: several targets in one snapshot, with what was never hit.
func TestStandings(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e, l := db.startEngine(t, clock), quotatest.Window(t, "a", 10, "1h")
	hit, never := quotatest.Target(1, 1, 5, l), quotatest.Target(2, 1, 5, l)
	both := quotatest.WithCounter(hit, "ip=1", quotatest.Window(t, "b", 5, "1m"))
	if d, err := e.Decide(ctx, both, 4); err != nil || !d.Allowed {
		t.Fatal(d.String(), err)
	}
	clock.Set(quotatest.Epoch + 120e6)
	s, err := e.Standings(ctx, []*model.Target{never, both, hit, never})
	if err != nil || len(s) != 4 {
		t.Fatal(s, err)
	}
	for i, want := range [][]model.View{
		{{Limit: l, Used: 0, Remaining: 10, Exceeded: false, RetryAfter: 0, ResetAt: quotatest.Epoch + 120e6, Reserved: 0}},
		{
			{Limit: l, Used: 4, Remaining: 6, Exceeded: false, RetryAfter: 0, ResetAt: quotatest.Epoch + 3600e6, Reserved: 0},
			{Limit: both.Limit(1), Used: 0, Remaining: 5, Exceeded: false, RetryAfter: 0, ResetAt: quotatest.Epoch + 120e6, Reserved: 0},
		},
		{{Limit: l, Used: 4, Remaining: 6, Exceeded: false, RetryAfter: 0, ResetAt: quotatest.Epoch + 3600e6, Reserved: 0}},
		{{Limit: l, Used: 0, Remaining: 10, Exceeded: false, RetryAfter: 0, ResetAt: quotatest.Epoch + 120e6, Reserved: 0}},
	} {
		if !slices.Equal(s[i].Views(), want) || s[i].At != quotatest.Epoch+120e6 || !s[i].Allowed {
			t.Errorf("%d: %+v, want %+v", i, s[i].Views(), want)
		}
	}
	// A look judges a cost and changes nothing; one of a stale target says so.
	if d, err := e.Look(ctx, both, 7); err != nil || d.Allowed || d.Cost != 7 || d.View(0).RetryAfter != 3480e6 || d.View(1).RetryAfter != model.Never {
		t.Errorf("%s, %v", d.String(), err)
	}
	if d, err := e.Decide(ctx, hit, 0); err != nil || !d.Allowed || d.View(0).Used != 4 {
		t.Errorf("cost 0: %s, %v", d.String(), err)
	}
	var stale *model.StaleError
	if _, err := e.Look(ctx, quotatest.Target(1, 1, 4, l), 1); !errors.As(err, &stale) || stale.Change != 5 {
		t.Errorf("a stale look: %v", err)
	}
	if s, err := e.Standings(ctx, nil); err != nil || len(s) != 0 {
		t.Errorf("of nothing: %v, %v", s, err)
	}
}

// TestNothingWithoutAClock: when the instant is not known, nothing is charged or read.
func TestNothingWithoutAClock(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	lost := errors.New("the offset is not known")
	e := db.startEngine(t, clock, func(o *Options) {
		o.Now = func(context.Context) (int64, error) { return 0, lost }
	})
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 10, "1h"))
	if _, err := e.Decide(ctx, target, 1); !errors.Is(err, session.ErrNoSession) || errors.Is(err, session.ErrUnavailable) || !errors.Is(err, lost) {
		t.Errorf("a hit: %v", err)
	}
	if _, err := e.Look(ctx, target, 1); !errors.Is(err, session.ErrNoSession) || errors.Is(err, session.ErrUnavailable) || !errors.Is(err, lost) {
		t.Errorf("a look: %v", err)
	}
	if rows, err := db.Counters(ctx, 1); err != nil || len(rows) != 0 {
		t.Errorf("stored: %v, %v", rows, err)
	}
}

// TestHourIsBookedOnce, though two nodes found it over: the other one was first, and has
// charged units in the new hour already.
func TestHourIsBookedOnce(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	here, there := db.handEngine(t, clock), db.startEngine(t, clock)
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 1000, "1d"))
	theirs := quotatest.Target(1, 1, 1, target.Counters[0].Limits...)
	for _, decide := range []func() (model.Decision, error){
		func() (model.Decision, error) { return there.Decide(ctx, theirs, 10) },
		func() (model.Decision, error) { // reads the row
			r, _ := here.sendBatch(ctx, []model.Hit{{Target: target, Cost: 1}})
			return r[0].Decision, r[0].Err
		},
	} {
		if d, err := decide(); err != nil || !d.Allowed {
			t.Fatal(d.String(), err)
		}
	}
	clock.Set(quotatest.Epoch + 3600e6)
	lane := here.lanes[0]
	h := &queue.Hit{Ticket: queue.NewTicket(&lane.Session), Target: target, Cost: 1}
	lane.PutBack(h)
	if lane.Next(ctx); lane.Worker.Queued() != 1 {
		t.Fatal("the hour is not over")
	}
	if d, err := there.Decide(ctx, theirs, 100); err != nil || !d.Allowed {
		t.Fatal(d.String(), err)
	}
	lane.Worker.Next(ctx)
	if <-h.Done; h.Result.Err != nil || !h.Result.Decision.Allowed {
		t.Fatal(h.Result.Decision.String(), h.Result.Err)
	}
	hours, err := here.Usage(ctx, 1, 1, 0, math.MaxInt64, 10)
	want := []UsageHour{{quotatest.Epoch, 11, 0}, {quotatest.Epoch + 3600e6, 101, 0}}
	if err != nil || !slices.Equal(hours, want) {
		t.Errorf("usage %v, %v; want %v", hours, err, want)
	}
	stored, err := db.Admitted(ctx, 1)
	if err != nil || len(stored) != 1 || stored[quotatest.UsageKey{Meter: 1, Hour: quotatest.Epoch}] != 11 {
		t.Errorf("booked %v, %v", stored, err)
	}
}

// TestHourIsBookedTwice: a commit of nothing by a clock ahead ends the hour, a charge by one behind begins
// it again, and its units are added to what was booked. A refusal books nothing.
func TestHourIsBookedTwice(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock, withoutMemory)
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 20, "1d"))
	hit := func(at, cost int64, allowed bool) {
		t.Helper()
		clock.Set(quotatest.Epoch + at)
		if d, err := e.Decide(ctx, target, cost); err != nil || d.Allowed != allowed {
			t.Fatal(d.String(), err)
		}
	}
	hit(0, 10, true)
	r, err := e.Reserve(ctx, target, 1, 7200e6, model.NewID("reservation", "ahead"))
	if err != nil || !r.Allowed {
		t.Fatal(r.String(), err)
	}
	clock.Set(quotatest.Epoch + 3600e6)
	if _, err := e.Commit(ctx, target, r.ID, 0); err != nil {
		t.Fatal(err)
	}
	hit(5, 5, true)
	hit(3600e6, 1, true)
	hit(7200e6, 9, false)
	stored, err := db.Admitted(ctx, 1)
	if err != nil || len(stored) != 1 || stored[quotatest.UsageKey{Meter: 1, Hour: quotatest.Epoch}] != 15 {
		t.Errorf("booked %v, %v", stored, err)
	}
	rows, err := db.Counters(ctx, 1)
	if own := rows[target.Counters[0].Key]; err != nil || own.Hour != quotatest.Epoch+3600e6 || own.Units != 1 {
		t.Errorf("%+v, %v", own, err)
	}
}

// rowsAsked counts the counters that reads ask for.
type rowsAsked struct{ rows atomic.Int64 }

func (r *rowsAsked) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if data.SQL == readSQL {
		r.rows.Add(int64(len(data.Args[0].([]int16))))
	}
	return ctx
}

func (*rowsAsked) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// However many looks a batch has at one customer, its counters and open reservations are read
// once. Each look is judged as if it were alone.
func TestLooksReadEachTargetOnce(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	asked := new(rowsAsked)
	config := db.Pool.Config()
	config.ConnConfig.Tracer = asked
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	e := db.startEngine(t, clock, func(o *Options) { o.Pool = pool })
	l := quotatest.Window(t, "a", 100, "1d")
	targets := []*model.Target{quotatest.Target(1, 1, 1, l), quotatest.Target(1, 2, 1, l)}
	for i, target := range targets {
		if _, err := e.From("").Reserve(ctx, target, int64(10+i), 1e6, model.ID{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, later := range []int64{0, 2e6} { // then the reservations have expired
		clock.Set(quotatest.Epoch + later)
		before := asked.rows.Load()
		var hits []model.Hit
		for i := range 1000 {
			hits = append(hits, model.Hit{Target: targets[i%2], Cost: int64(i % 120), Look: true})
		}
		all := e.From("").DecideAll(ctx, hits)
		if rows := asked.rows.Load() - before; rows != 2 {
			t.Errorf("%d rows were asked for", rows)
		}
		for i, h := range hits[:240] {
			alone, err := e.Look(ctx, h.Target, h.Cost)
			if got := all[i]; err != nil || got.Err != nil || !got.Decision.SameAs(&alone) || got.Decision.View(0) != alone.View(0) {
				t.Fatalf("look %d: %s, %v; alone %s, %v", i, got.Decision.String(), got.Err, alone.String(), err)
			}
		}
	}
}
