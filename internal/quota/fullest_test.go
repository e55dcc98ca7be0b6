package quota

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

func TestFullIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, math.MaxInt64))
		draw := func(name string) Full {
			return Full{Used: units.Draw(t, name), Of: min(units.Draw(t, name), model.MaxNumber)}
		}
		a, b := draw("a"), draw("b")
		if got, want := a.Compare(&b), big.NewRat(a.Used, a.Of).Cmp(big.NewRat(b.Used, b.Of)); got != want {
			t.Errorf("%v and %v: %d, want %d", a, b, got, want)
		}
		percent := new(big.Int).Mul(big.NewInt(a.Used), big.NewInt(100))
		if percent.Quo(percent, big.NewInt(a.Of)); percent.IsInt64() && a.Percent() != percent.Int64() && a.Percent() != math.MaxInt64 {
			t.Errorf("%v is %d percent, want %s", a, a.Percent(), percent)
		}
		if (a.Percent() == math.MaxInt64) != (a.Used/a.Of >= math.MaxInt64/100) {
			t.Errorf("%v is %d percent", a, a.Percent())
		}
	})
}

// The fullest limit of each target is the one that the Go model says, whatever its algorithm; what
// refuses nothing, has no one number, or lives in a time of its own is left out.
func TestFullness(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	spec := func(name, algorithm string, limit int64, more ...func(*model.Spec)) *model.Limit {
		s := model.Spec{Name: name, Algorithm: algorithm, Limit: limit, Window: "1h"}
		for _, f := range more {
			f(&s)
		}
		return quotatest.Compile(t, s)
	}
	mode := func(m string) func(*model.Spec) { return func(s *model.Spec) { s.Mode = m } }
	timeless := func(s *model.Spec) { s.Window = "" }
	burst := int64(50)
	target := func(limits ...*model.Limit) *model.Target {
		return model.NewTarget(1, quotatest.FreshCustomers(1), 1, limits, quotatest.Target(1, 1, 1).Periods, nil)
	}
	var targets []*model.Target
	var want []string
	add := func(says string, cost int64, t *model.Target) *model.Target {
		targets = append(targets, t)
		if says != "" {
			want = append(want, says)
		}
		if cost > 0 {
			if d, err := e.Decide(ctx, t, cost); err != nil || !d.Allowed {
				panic(fmt.Sprint(d.String(), err))
			}
		}
		return t
	}
	add("day 10/20", 10, target(spec("hour", "sliding_window", 1000), spec("day", "fixed_window", 20, func(s *model.Spec) { s.Window = "1d" })))
	add("bucket 5/50", 5, target(spec("bucket", "token_bucket", 100, func(s *model.Spec) { s.Burst = &burst })))
	add("seats 3/4", 3, target(spec("seats", "allocation", 4, timeless)))
	add("log 7/8", 7, target(spec("log", "sliding_log", 8)))
	add("soft 30/10", 30, target(spec("soft", "fixed_window", 10, mode("soft"))))
	add("own 2/100", 2, target(spec("per", "fixed_window", 3, func(s *model.Spec) { s.Per = "ip" }), spec("own", "fixed_window", 100)))
	add("", 9, target(spec("shadow", "fixed_window", 10, mode("shadow"))))
	add("", 0, target(spec("untouched", "fixed_window", 10)))
	add("", 0, target(spec("closed", "fixed_window", 0)))
	add("", 5, target())
	flight := target(spec("flight", "concurrency", 4, timeless, func(s *model.Spec) { s.TTL = "1h" }))
	if r, err := e.Reserve(ctx, flight.ForReservations(), 2, 3600e6, model.ID{}); err != nil || !r.Allowed {
		t.Fatal(r.String(), err)
	}
	add("flight 2/4", 0, flight)
	tested := model.NewTarget(1, quotatest.FreshCustomers(1), 1, []*model.Limit{spec("tested", "fixed_window", 10)}, targets[0].Periods,
		&model.TestClock{Key: "c", Now: quotatest.Epoch})
	add("", 5, tested)
	stale := add("", 5, target(spec("stale", "fixed_window", 10)))
	db.Exec(ctx, t, "UPDATE counters SET change = 2 WHERE customer = $1", stale.Counters[0].Key.Customer)
	targets = append(targets, nil)

	full, err := e.Fullness(ctx, targets)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range full {
		got = append(got, fmt.Sprintf("%s %d/%d", f.Limit.Name, f.Used, f.Of))
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("%q, want %q", got, want)
	}
}

// Latest finds customers' own counters by the instant of their last charge, wherever it begins.
func TestLatest(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	if l, err := e.Latest(ctx, 10); err != nil || l.Passed != 0 || !l.All || len(l.Keys) != 0 {
		t.Fatalf("%+v, %v", l, err)
	}
	// The i-th customer was charged last at the Epoch less i seconds; one in three has a value, too.
	db.Exec(ctx, t, `INSERT INTO counters (shard, customer, meter, at, attribute) SELECT (i * 37) % 1024, i, 1, $1 - i * 1000000::bigint, '' FROM generate_series(1, 3000) i`,
		quotatest.Epoch)
	db.Exec(ctx, t, `INSERT INTO counters (shard, customer, meter, at, attribute) SELECT (i * 37) % 1024, i, 1, $1, 'ip=x' FROM generate_series(1, 3000, 3) i`,
		quotatest.Epoch)
	db.Exec(ctx, t, `INSERT INTO counters (shard, customer, meter, at) VALUES (5, 9000, 1, $1)`, quotatest.Epoch+3600e6) // of a test clock
	for range 5 {
		l, err := e.Latest(ctx, 100)
		if err != nil || l.Passed != 3001 || !l.All || len(l.Keys) != 100 {
			t.Fatalf("%d of %d, all %v, %v", len(l.Keys), l.Passed, l.All, err)
		}
		for i, k := range l.Keys {
			if k != (model.CounterKey{Customer: int64(i + 1), Meter: 1}) {
				t.Fatalf("place %d has %s", i, k)
			}
		}
	}
	// A shard with too many values hides what comes behind them, and no other shard.
	db.Exec(ctx, t, `INSERT INTO counters (shard, customer, meter, attribute) SELECT 0, 1, 2, 'ip=' || i FROM generate_series(1, 1500) i`)
	if l, err := e.Latest(ctx, 1); err != nil || l.All || l.Passed != 2999 || len(l.Keys) != 1 {
		t.Errorf("%+v, %v", l, err)
	}
}
