package quota

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"quotad/internal/postgres"
	"quotad/internal/quota/lane"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/quotatest"
)

// exact fires and says what is wrong with the outcome, if anything is.
func (f *fire) exact(t testing.TB) (shots []shot, fromMemory int, err error) {
	t.Helper()
	if shots, err = f.run(t); err != nil {
		return nil, 0, err
	}
	all, err := histories(shots)
	if err != nil {
		return nil, 0, err
	}
	if fromMemory, err = replay(shots, all); err != nil {
		return nil, 0, err
	}
	if err := agreeWithStored(t, f.url, all); err != nil {
		return nil, 0, err
	}
	if n := quotatest.Deadlocks(t, f.url); n > 0 {
		return nil, 0, fmt.Errorf("%d deadlocks", n)
	}
	return shots, fromMemory, nil
}

func newFire(t testing.TB, rounds int) *fire {
	return &fire{
		url: pgtest.NewDatabase(t), seed: testkit.Seed(t), engines: 8, callers: 64,
		rounds: rounds, customers: 200, speed: 35_000,
	}
}

// TestExactUnderFire fires from nodes with skewed clocks and the memory of refusals on, at one hot
// customer with shared counters beside 200 others. Every decision is the model's.
func TestExactUnderFire(t *testing.T) { exactUnderFire(t, quotatest.Sized(60, 150, 5000)) }

// TestMoreExactUnderFire fires the rest of the hits, by another seed.
func TestMoreExactUnderFire(t *testing.T) { exactUnderFire(t, 300) }

// exactUnderFire has each caller send so many hits.
func exactUnderFire(t *testing.T, rounds int) {
	t.Helper()
	f := newFire(t, rounds)
	f.prepare(t, int64(rounds)*5)
	shots, fromMemory, err := f.exact(t)
	if err != nil {
		t.Fatalf("seed %d: %v", f.seed, err)
	}
	t.Logf("%d decisions replayed, %d of them refusals from memory; %d swaps, %d lost", len(shots), fromMemory, f.swapped, f.lost)
	if f.swapped == 0 || f.lost == 0 {
		t.Error("no swap was made, or none was lost")
	}
	if asked := f.engines * f.callers * rounds; !testing.Short() && (len(shots) < asked || fromMemory < len(shots)*3/10) {
		t.Fatalf("that was too easy: %d decisions and 30 %% from memory are asked for", asked)
	}
	f.fillUp(t, shots)
}

// fillUp then offers single units until each total is reached: admitted = limit, exactly.
func (f *fire) fillUp(t testing.TB, shots []shot) {
	t.Helper()
	ctx := testkit.Context(t)
	pool, err := postgres.Open(ctx, f.url, postgres.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	f.speed *= 1000 // so that the bucket and the minute do not hold it up
	e := f.engine(t, pool, 0)
	defer func() { _ = e.Close(ctx) }()
	admitted := make(map[int64]int64)
	for _, s := range shots {
		if s.Allowed {
			admitted[s.Target.Counters[0].Key.Customer] += s.Cost
		}
	}
	for _, target := range append([]*model.Target{f.hot[0]}, f.cold...) {
		target = target.For(nil)
		key, total := target.Counters[0].Key, target.Limit(0)
		for tries := 0; ; tries++ {
			f.decided.Add(1)
			d, err := e.Decide(ctx, target, max(1, min(total.Limit/10, total.Limit-admitted[key.Customer])))
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				admitted[key.Customer] += d.Cost
			} else if d.View(0).Remaining == 0 {
				break
			} else if tries > 100_000 {
				t.Fatalf("%v never fills: %+v", key, d.View(0))
			}
		}
		if admitted[key.Customer] != total.Limit {
			t.Errorf("%v: %d units admitted of a limit of %d", key, admitted[key.Customer], total.Limit)
		}
	}
}

// Each mutant is an engine or a statement broken in one way. The run that passes for the
// whole one must fail for every one of them, or it proves nothing.
func TestMutantsAreCaught(t *testing.T) {
	// replace breaks a statement, of a lane or of a worker.
	replace := func(name session.StatementName, pairs ...string) func(*Engine) {
		return func(e *Engine) {
			for _, texts := range []map[session.StatementName]string{e.lanes[0].Session.Statements, e.workers[0].Session.Statements} {
				text, ok := texts[name]
				if !ok {
					continue
				}
				if texts[name] = strings.NewReplacer(pairs...).Replace(text); texts[name] == text {
					t.Errorf("the mutant of %s is no mutant", name)
				}
			}
		}
	}
	mutants := map[string]func(*Engine){
		"a worker without its locks": replace(locked.LockRows, "FOR UPDATE", "OFFSET 0"),
		"no lock order": replace(locked.LockRows, "FROM unnest(", "FROM (SELECT * FROM unnest(",
			"attribute, n),\n", "attribute, n) ORDER BY random()) i,\n", "AS i(", "AS u("),
		"a held row is taken for missing, and so for untouched": func(e *Engine) {
			e.workers[0].SkipUntil.Store(math.MaxInt64)
			replace(locked.LockFree, "SELECT i.n, c.at, c.hour, c.units, c.total, c.version, c.change, c.state",
				"SELECT i.n, coalesce(c.at, 0), coalesce(c.hour, 0), coalesce(c.units, 0), coalesce(c.total, 0), coalesce(c.version, 0), coalesce(c.change, 0), coalesce(c.state, '{}')",
				"attribute, n),\n", "attribute, n) LEFT JOIN\n", "FOR UPDATE SKIP LOCKED) c", "FOR UPDATE SKIP LOCKED) c ON true")(e)
		},
		"a granted remainder that no hit took":       replace(lane.SwapRows, "total = CASE", "total = 1 + CASE"),
		"two groups on one counter in one statement": func(e *Engine) { e.lanes[0].Session.Faults.KeepTogether = true },
		"usage outside the transaction":              func(e *Engine) { e.workers[0].Session.Faults.CommitAfter = locked.AddUsage },
		"a swap of whatever row is there":            replace(lane.SwapRows, "c.version = i.version AND c.at = i.since AND", ""),
		"a row made over another": replace(lane.MakeRows, "ON CONFLICT DO NOTHING",
			"ON CONFLICT (shard, customer, meter, attribute) DO UPDATE SET state = excluded.state, version = excluded.version"),
	}
	for name, mutate := range mutants {
		t.Run(name, func(t *testing.T) {
			for try := range 40 { // one run may be lucky, most of all a small one
				f := newFire(t, min(40, 10<<try))
				if name == "no lock order" {
					f.rounds = 4 // each deadlock takes the server a second to see
				}
				f.speed = 500_000 // many hours end in the run
				f.prepare(t, 100)
				f.mutate = mutate
				if _, _, err := f.exact(t); err != nil {
					t.Log("caught:", err)
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}

// raised says what is wrong when a limit that refused on two nodes is raised; missed
// keeps the change from the second node.
func raised(t testing.TB, missed bool) error {
	t.Helper()
	ctx := testkit.Context(t)
	f := &fire{url: pgtest.NewDatabase(t), speed: 1}
	f.prepare(t, 0)
	pool, err := postgres.Open(ctx, f.url, postgres.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	low := fireTarget(7, []*model.Limit{quotatest.Limit(t, "total", "fixed_window", "3660d", 10)})
	high := fireTarget(7, []*model.Limit{quotatest.Limit(t, "total", "fixed_window", "3660d", 20)})
	high.Change = 2
	nodes := []*Engine{f.engine(t, pool, 0), f.engine(t, pool, 0)}
	decide := func(e *Engine, target *model.Target, cost int64) model.Decision {
		d, err := e.Decide(ctx, target, cost)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	decide(nodes[0], low, 10)
	for _, e := range nodes {
		decide(e, low, 1)
		if d := decide(e, low, 1); d.Allowed || d.AsOf == 0 {
			return errors.New("the second refusal did not come from memory")
		}
	}
	defer func() {
		for _, e := range nodes {
			_ = e.Close(ctx)
		}
	}()
	seen := []*model.Target{high, high}
	if missed {
		seen[1] = low
	}
	for i, e := range nodes {
		if d := decide(e, seen[i], 1); !d.Allowed {
			return fmt.Errorf("node %d still refuses", i)
		}
	}
	// Who still holds the lower limit must not overrule the higher one.
	var stale *model.StaleError
	if _, err := nodes[0].lateDecide(ctx, low); !errors.As(err, &stale) || stale.Change != 2 {
		return fmt.Errorf("a hit under the older limit: %w", err)
	}
	return nil
}

// lateDecide decides past the memory, as a node would that never saw a refusal.
func (e *Engine) lateDecide(ctx context.Context, t *model.Target) (model.Decision, error) {
	for _, key := range t.Keys() {
		e.node.Memory.Forget(key)
	}
	return e.Decide(ctx, t, 1)
}

func TestRaisedLimitCountsAtOnce(t *testing.T) {
	if err := raised(t, false); err != nil {
		t.Fatal(err)
	}
	if err := raised(t, true); err == nil {
		t.Error("a node that missed the change went unnoticed")
	}
}
