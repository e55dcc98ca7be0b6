package quota

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"quotad/internal/postgres"
	"quotad/internal/postgres/pgtest"
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
	if n := deadlocks(t, f.url); n > 0 {
		return nil, 0, fmt.Errorf("%d deadlocks", n)
	}
	return shots, fromMemory, nil
}

func newFire(t testing.TB, rounds int) *fire {
	return &fire{
		url: pgtest.NewDatabase(t), seed: 20261120, engines: 8, callers: 64,
		rounds: rounds, customers: 200, speed: 2000,
	}
}

// TestExactUnderFire: nodes with skewed clocks and the memory of refusals on, one hot
// customer with shared counters beside 200 others. Every decision is the model's.
func TestExactUnderFire(t *testing.T) {
	rounds := sized(60, 450, 5000)
	f := newFire(t, rounds)
	f.prepare(t, int64(rounds)*5)
	shots, fromMemory, err := f.exact(t)
	if err != nil {
		t.Fatalf("seed %d: %v", f.seed, err)
	}
	t.Logf("%d decisions replayed, %d of them refusals from memory; %d swaps, %d of them at places, %d lost", len(shots), fromMemory, f.swapped, f.placed, f.lost)
	if f.swapped == f.placed || f.placed == 0 || f.lost == 0 {
		t.Error("no swap was made, or none was lost")
	}
	if !testing.Short() && (len(shots) < 200_000 || fromMemory < len(shots)*3/10) {
		t.Fatal("that was too easy: at least 200,000 decisions and 30 % from memory are asked for")
	}
	f.fillUp(t, shots)
}

// fillUp then offers single units until each total is reached: admitted = limit, exactly.
func (f *fire) fillUp(t testing.TB, shots []shot) {
	t.Helper()
	ctx := pgtest.Context(t)
	pool, err := postgres.Open(ctx, f.url, postgres.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	f.speed *= 1000 // so that the bucket and the minute do not hold it up
	e := f.engine(t, pool, 0, true)
	defer func() { _ = e.Close(ctx) }()
	admitted := make(map[int64]int64)
	for _, s := range shots {
		if s.Allowed {
			admitted[s.Target.Counters[0].Key.Customer] += s.Cost
		}
	}
	for _, target := range append([]*Target{f.hot[0]}, f.cold...) {
		target = target.For(nil)
		key, total := target.Counters[0].Key, target.Limit(0)
		for tries := 0; ; tries++ {
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
	replace := func(pairs ...string) func(*Engine) {
		return func(e *Engine) {
			e.swapping = false // or few hits come to these
			for _, name := range []statementName{chargeHits, chargeMore} {
				text := e.statements[name]
				broken := strings.NewReplacer(pairs...).Replace(text)
				if broken == text {
					t.Errorf("the mutant of %s is no mutant", name)
				}
				e.statements[name] = broken
			}
		}
	}
	mutants := map[string]func(*Engine){
		"read then write": replace("FOR UPDATE SKIP LOCKED", "OFFSET 0", "FOR UPDATE", "OFFSET 0"),
		"no lock order": replace(
			"FROM unnest($1::smallint[]", "FROM (SELECT * FROM unnest($1::smallint[]",
			"sum_from, sum_to, n)\n", "sum_from, sum_to, n) ORDER BY random()) i\n",
			"AS i(shard", "AS u(shard"),
		"a granted remainder that no hit took": replace("quotad_step_v2", "quotad_step_greedy"),
		"two groups on one counter in one statement": func(e *Engine) {
			e.waves = func(g []*group) [][]*group { return [][]*group{g} }
		},
		"usage outside the transaction": func(e *Engine) { e.commitAt = bookUsage },
		"a swap of whatever row is there": func(e *Engine) {
			text := e.statements[swapRows]
			e.statements[swapRows] = strings.Replace(text, "c.version = i.version AND c.at = i.since AND", "", 1)
			if text == e.statements[swapRows] {
				t.Error("the mutant of the swap is no mutant")
			}
		},
	}
	for name, mutate := range mutants {
		t.Run(name, func(t *testing.T) {
			for range 10 { // one run may be lucky
				f := newFire(t, 40)
				if name == "no lock order" {
					f.rounds = 4 // each deadlock takes the server a second to see
				}
				f.speed = 20_000 // many hours end in the run
				f.prepare(t, 100)
				greedyStep(t, f.url)
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

// greedyStep adds a step function that charges all the room there is when a run does not
// fit whole.
func greedyStep(t testing.TB, url string) {
	t.Helper()
	ctx := pgtest.Context(t)
	conn, err := postgres.Connect(ctx, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var text string
	if err := conn.QueryRow(ctx, "SELECT pg_get_functiondef('quotad_step_v2'::regproc)").Scan(&text); err != nil {
		t.Fatal(err)
	}
	broken := strings.NewReplacer("quotad_step_v2", "quotad_step_greedy",
		"room := sums[run];", "IF run = cardinality(sums) THEN room := sums[run]; END IF;").Replace(text)
	if !strings.Contains(broken, "END IF;\n        l := 3") && strings.Count(broken, "cardinality(sums)") != 1 {
		t.Fatal("the greedy step is no mutant")
	}
	if _, err := conn.Exec(ctx, broken); err != nil {
		t.Fatal(err)
	}
}

// raised says what is wrong when a limit that refused on two nodes is raised; missed
// keeps the change from the second node.
func raised(t testing.TB, missed bool) error {
	t.Helper()
	ctx := pgtest.Context(t)
	f := &fire{url: pgtest.NewDatabase(t), speed: 1}
	f.prepare(t, 0)
	pool, err := postgres.Open(ctx, f.url, postgres.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	low := fireTarget(7, []*Limit{limitOf(t, "total", "fixed_window", "3660d", 10)})
	high := fireTarget(7, []*Limit{limitOf(t, "total", "fixed_window", "3660d", 20)})
	high.Change = 2
	nodes := []*Engine{f.engine(t, pool, 0, true), f.engine(t, pool, 0, false)}
	decide := func(e *Engine, target *Target, cost int64) Decision {
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
	seen := []*Target{high, high}
	if missed {
		seen[1] = low
	}
	for i, e := range nodes {
		if d := decide(e, seen[i], 1); !d.Allowed {
			return fmt.Errorf("node %d still refuses", i)
		}
	}
	// Who still holds the lower limit must not overrule the higher one.
	var stale *StaleError
	if _, err := nodes[0].lateDecide(ctx, low); !errors.As(err, &stale) || stale.Change != 2 {
		return fmt.Errorf("a hit under the older limit: %w", err)
	}
	return nil
}

// lateDecide decides past the memory, as a node would that never saw a refusal.
func (e *Engine) lateDecide(ctx context.Context, t *Target) (Decision, error) {
	e.memory.seen.Purge()
	e.memory.large.Purge()
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
