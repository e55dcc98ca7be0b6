package quota

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/upkeep"
	"quotad/internal/testkit"
	levels "quotad/internal/testkit/oracle"
	"quotad/internal/testkit/quotatest"
)

// allocated is an allocation limit.
func allocated(t testing.TB, name, per string, limit int64) *model.Limit {
	t.Helper()
	return quotatest.Compile(t, model.Spec{Name: name, Algorithm: "allocation", Limit: limit, Per: per, OnOutage: "deny"})
}

// levelTarget is a target of a level meter of a fresh customer.
func levelTarget(customer int64, change int64, limits ...*model.Limit) *model.Target {
	return model.NewTarget(change, customer, -7, limits, quotatest.Target(customer, 1, 1).Periods, nil)
}

// change is a row of what was held.
type change struct {
	at, level int64
	integral  *big.Int
}

func (db *testDB) levelsOf(t testing.TB, customer int64) (all []change) {
	t.Helper()
	rows, err := db.Pool.Query(testkit.Context(t), `SELECT at, level, integral::text FROM levels WHERE customer = $1 ORDER BY at`, customer)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c change
		var text string
		if err := rows.Scan(&c.at, &c.level, &text); err != nil {
			t.Fatal(err)
		}
		c.integral, _ = new(big.Int).SetString(text, 10)
		all = append(all, c)
	}
	return all
}

// checkLevels makes sure that the integrals follow from the levels, and that the counter holds the last.
func (db *testDB) checkLevels(t testing.TB, customer, last int64) {
	t.Helper()
	all := db.levelsOf(t, customer)
	for i := range all {
		want := new(big.Int)
		if i > 0 {
			want.Mul(big.NewInt(all[i-1].level), big.NewInt(all[i].at-all[i-1].at))
			want.Add(want, all[i-1].integral)
		}
		if all[i].integral.Cmp(want) != 0 {
			t.Errorf("row %d: integral %s, want %s", i, all[i].integral, want)
		}
	}
	if n := len(all); n == 0 || all[n-1].level != last {
		t.Errorf("the rows end with %v, want level %d", all[max(0, n-1):], last)
	}
	if bad := compared(t, db, customer, upkeep.Mismatches); len(bad) > 0 {
		t.Errorf("charged is not booked: %v", bad)
	}
	if bad := db.misheld(t, customer); len(bad) > 0 {
		t.Errorf("the values do not add up: %+v", bad)
	}
}

// misheld returns what reconcile finds of the values of a customer's level meter.
func (db *testDB) misheld(t testing.TB, customer int64) []upkeep.Misheld {
	t.Helper()
	return compared(t, db, customer, upkeep.MisheldValues)
}

// compared returns what a check of reconcile finds of a customer's level meter.
func compared[T any](t testing.TB, db *testDB, customer int64, check func(context.Context, pgx.Tx, []upkeep.Charged) ([]T, error)) []T {
	t.Helper()
	tx, err := db.Pool.Begin(testkit.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	bad, err := check(testkit.Context(t), tx, []upkeep.Charged{{Shard: model.Shard(customer), Customer: customer, Meter: -7}})
	if err != nil {
		t.Fatal(err)
	}
	return bad
}

// Hits take, refunds give up, and levels are set, of values and of the meter; and it is as if one
// variable for each value had been changed.
func TestLevelsAreHeld(t *testing.T) {
	t.Parallel()
	ctx, db := testkit.Context(t), newTestDB(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	engines := []*Engine{db.startEngine(t, clock), db.startEngine(t, clock)}
	customer := quotatest.FreshCustomers(1)
	target := levelTarget(customer, 1, allocated(t, "all", "", 50), allocated(t, "each", "team", 20))
	held := map[string]int64{}
	total := func() (n int64) {
		for _, units := range held {
			n += units
		}
		return n
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		clock.Set(clock.At.Load() + random.Int64N(3)*1000)
		e, team, units := engines[random.IntN(2)], []string{"", "a", "b", "c"}[random.IntN(4)], 1+random.Int64N(9)
		of := target.For(map[string]string{"team": team})
		fits := func(rise int64) bool { return held[team]+rise <= 20 && total()+rise <= 50 }
		var d model.Decision
		var err error
		switch random.IntN(3) {
		case 0:
			want := fits(units)
			if d, err = e.Decide(ctx, of, units); d.Allowed != want {
				t.Fatalf("%d: a hit of %d for %q: %s, held %v", i, units, team, d.String(), held)
			}
			if want {
				held[team] += units
			}
		case 1:
			var done locked.Refunded
			done, err = e.Refund(ctx, locked.Refund{Target: of, Cost: units, ID: model.NewID("refund", fmt.Sprint(i), "p")})
			if d = done.Decision; done.Units != min(units, held[team]) {
				t.Fatalf("%d: a refund of %d for %q gave %d back, held %v", i, units, team, done.Units, held)
			}
			held[team] -= done.Units
		default:
			level := random.Int64N(25)
			want := level <= held[team] || fits(level-held[team])
			if d, err = e.SetLevel(ctx, of, level); d.Allowed != want {
				t.Fatalf("%d: level %d for %q: %s, held %v", i, level, team, d.String(), held)
			}
			if want {
				held[team] = level
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if all, each := d.View(0).Used, d.View(1).Used; all != total() || each != held[team] {
			t.Fatalf("%d: used %d and %d of %q, held %v", i, all, each, team, held)
		}
		s, err := engines[0].StandingsIn(ctx, nil, []*model.Target{of})
		if err != nil || s[0].PeriodUsed != total() || s[0].View(1).Used != held[team] {
			t.Fatalf("%d: it stands at %d, %d of %q, %v; held %v", i, s[0].PeriodUsed, s[0].View(1).Used, team, err, held)
		}
	}
	db.checkLevels(t, customer, total())
}

// The level stays when limits change their names, come and go. What was held without a limit per an
// attribute is the empty value's.
func TestLevelsOutliveLimits(t *testing.T) {
	t.Parallel()
	ctx, db := testkit.Context(t), newTestDB(t)
	e := db.startEngine(t, quotatest.NewClock(quotatest.Epoch))
	customer := quotatest.FreshCustomers(1)
	take := func(target *model.Target, team string, units int64) model.Decision {
		t.Helper()
		d, err := e.Decide(ctx, target.For(map[string]string{"team": team}), units)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	take(levelTarget(customer, 1), "", 5)
	if d := take(levelTarget(customer, 2, allocated(t, "seats", "", 6)), "", 2); d.Allowed || d.View(0).Used != 5 {
		t.Errorf("5 are held of 6: %s", d.String())
	}
	per := levelTarget(customer, 3, allocated(t, "teams", "team", 5), allocated(t, "users", "", 100))
	if d := take(per, "", 1); d.Allowed || d.View(0).Used != 5 {
		t.Errorf("the empty team holds 5 of 5: %s", d.String())
	}
	if d := take(per, "x", 3); !d.Allowed || d.View(0).Used != 3 || d.View(1).Used != 8 {
		t.Errorf("team x takes 3: %s", d.String())
	}
	if d := take(levelTarget(customer, 4, allocated(t, "other", "", 8)), "x", 1); d.Allowed || d.View(0).Used != 8 {
		t.Errorf("8 are held of 8: %s", d.String())
	}
	if d := take(levelTarget(customer, 5, allocated(t, "again", "team", 9)), "x", 0); d.View(0).Used != 3 {
		t.Errorf("team x still holds 3: %s", d.String())
	}
	lost := levelTarget(customer, 6)
	lost.Lost = true
	if d, err := e.SetLevel(ctx, lost, 4); err != nil || !d.Allowed {
		t.Errorf("what the plan lost can fall: %s %v", d.String(), err)
	}
	if _, err := e.SetLevel(ctx, lost, 5); !errors.Is(err, locked.ErrLost) {
		t.Errorf("and cannot rise: %v", err)
	}
	db.checkLevels(t, customer, 4)
}

// TestLevelsOfValues plays hits, refunds and levels under plans whose limits are per an attribute, per
// another one or per none, and compares each value with what the oracle holds of it.
func TestLevelsOfValues(t *testing.T) {
	t.Parallel()
	ctx, db := testkit.Context(t), newTestDB(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	engines := []*Engine{db.startEngine(t, clock), db.startEngine(t, clock)}
	customer := quotatest.FreshCustomers(1)
	plans := map[string]*model.Target{
		"":       levelTarget(customer, 1, allocated(t, "all", "", 50)),
		"team":   levelTarget(customer, 1, allocated(t, "all", "", 50), allocated(t, "each", "team", 20)),
		"region": levelTarget(customer, 1, allocated(t, "all", "", 50), allocated(t, "near", "region", 30)),
	}
	most := map[string]int64{"": 50, "team": 20, "region": 30}
	held, per := levels.Values{}, "team"
	random := rand.New(rand.NewPCG(68, 1))
	for i := range 600 {
		clock.Set(clock.At.Load() + random.Int64N(3)*1000)
		if random.IntN(5) == 0 { // an edit of the plan
			per = []string{"", "team", "region"}[random.IntN(3)]
		}
		e, value, units := engines[random.IntN(2)], []string{"", "a", "b", "c"}[random.IntN(4)], random.Int64N(10)
		of := plans[per].For(map[string]string{per: value})
		before := held.Held(per, value)
		fits := func(rise int64) bool { return held.Total+rise <= 50 && before+rise <= most[per] }
		what := fmt.Sprintf("%d: %d units of %s=%s", i, units, per, value)
		switch random.IntN(3) {
		case 0:
			d, err := e.Decide(ctx, of, units)
			if err != nil || d.Allowed != fits(units) {
				t.Fatalf("a hit of %s: %s %v", what, d.String(), err)
			}
			if d.Allowed && units > 0 {
				held.Add(per, value, units)
			}
		case 1:
			done, err := e.Refund(ctx, locked.Refund{Target: of, Cost: units + 1, ID: model.NewID("refund", fmt.Sprint(i), "p")})
			if err != nil || done.Units != min(units+1, before) {
				t.Fatalf("a refund of one more than %s: %d of %d given back, %v", what, done.Units, before, err)
			}
			if done.Units > 0 {
				held.Add(per, value, -done.Units)
			}
		default:
			d, err := e.SetLevel(ctx, of, units)
			if err != nil || d.Allowed != (units <= before || fits(units-before)) {
				t.Fatalf("a level of %s: %s %v", what, d.String(), err)
			}
			if d.Allowed {
				held.Add(per, value, units-before)
			}
		}
		for _, looked := range []string{"", "team", "region"} {
			for _, value := range []string{"", "a", "b", "c"} {
				s, err := e.StandingsIn(ctx, nil, []*model.Target{plans[looked].For(map[string]string{looked: value})})
				if err != nil || s[0].PeriodUsed != held.Total || s[0].View(0).Used != held.Total {
					t.Fatalf("after %s: %v %v; held %+v", what, s, err, held)
				}
				if looked != "" && s[0].View(1).Used != held.Held(looked, value) {
					t.Fatalf("after %s: %s=%s holds %d; held %+v", what, looked, value, s[0].View(1).Used, held)
				}
			}
		}
	}
	db.checkLevels(t, customer, held.Total)
	if _, err := engines[0].SetLevel(ctx, plans["team"].For(map[string]string{"team": "a"}), 1); err != nil {
		t.Fatal(err)
	}
	db.Exec(ctx, t, `UPDATE counters SET total = total + 1 WHERE customer = $1 AND attribute = 'team=a'`, customer)
	if bad := db.misheld(t, customer); len(bad) != 1 || bad[0].Each != bad[0].Together+1 {
		t.Errorf("a unit of a value too many is not found: %+v", bad)
	}
}

// What a level meter does not take, changes nothing.
func TestLevelsRefuse(t *testing.T) {
	t.Parallel()
	ctx, db := testkit.Context(t), newTestDB(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	customer := quotatest.FreshCustomers(1)
	target := levelTarget(customer, 1)
	if _, err := e.Decide(ctx, target, model.MaxNumber); err != nil {
		t.Fatal(err)
	}
	_, high := e.Decide(ctx, target, 1)
	if _, ok := errors.AsType[*locked.TooHighError](high); !ok {
		t.Errorf("one more: %v", high)
	}
	_, held := e.Reserve(ctx, target, 1, 1000, model.NewID("reserve", "r", "p"))
	_, adjusted := e.Adjust(ctx, locked.Adjustment{Target: target, ID: model.NewID("adjust", "a", "p"), Cost: 1, Reason: "r"})
	over := e.DecideAll(ctx, []model.Hit{{Target: target, Cost: 1, Overrun: true, ID: model.NewID("hit", "o", "p")}})[0].Err
	used := e.ImportAll(ctx, []locked.Import{{Target: target, ID: model.NewID("import", "i", "p"), Cost: 1, At: quotatest.Epoch}})[0].Err
	for what, err := range map[string]error{"reservation": held, "adjustment": adjusted, "overrun": over, "imported usage": used} {
		if !errors.Is(err, locked.ErrLevel) {
			t.Errorf("%s: %v", what, err)
		}
	}
	flow := quotatest.Target(customer, 7, 1)
	_, set := e.SetLevel(ctx, flow, 1)
	imported := e.ImportAll(ctx, []locked.Import{{Target: flow, ID: model.NewID("import", "j", "p"), SetsLevel: true, Level: 1}})[0].Err
	for _, err := range []error{set, imported} {
		if !errors.Is(err, locked.ErrNoLevel) {
			t.Errorf("a level of a flow meter: %v", err)
		}
	}
	done := e.ImportAll(ctx, []locked.Import{{Target: target, ID: model.NewID("import", "k", "p"), SetsLevel: true, Level: 3}})[0]
	again := e.ImportAll(ctx, []locked.Import{{Target: target, ID: model.NewID("import", "k", "p"), SetsLevel: true, Level: 3}})[0]
	if done.Err != nil || again.Err != nil || !again.Replayed {
		t.Errorf("an imported level: %v %v", done, again)
	}
	if got := db.levelsOf(t, customer); len(got) != 1 || got[0].level != 3 {
		t.Errorf("at one instant only the last counts: %v", got)
	}
	full := levelTarget(customer, 1, allocated(t, "few", "", 8))
	clock.Set(clock.At.Load() + 1)
	if _, together, err := e.DecideTogether(ctx, []model.Hit{{Target: full, Cost: 5}, {Target: full, Cost: 5}}); together || err != nil {
		t.Errorf("two hits of 5 on 3 of 8: %v %v", together, err)
	}
	db.checkLevels(t, customer, 3)
}

// Eight callers take, give up and set on three nodes, and the level is what their answers say.
func TestLevelsAreExact(t *testing.T) {
	t.Parallel()
	ctx, db := testkit.Context(t), newTestDB(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	var engines []*Engine
	for range 3 {
		engines = append(engines, db.startEngine(t, clock))
	}
	customer := quotatest.FreshCustomers(1)
	limits := []*model.Limit{allocated(t, "all", "", 60), allocated(t, "each", "team", 40)}
	var sum atomic.Int64
	var callers sync.WaitGroup
	for c := range 8 {
		callers.Go(func() {
			own := levelTarget(customer, 1, limits...) // each node has a target of its own
			random := rand.New(rand.NewPCG(uint64(c), 9))
			for i := range 60 {
				clock.At.Add(1 + random.Int64N(500))
				e, of, units := engines[c%3], own.For(map[string]string{"team": fmt.Sprint(c % 2)}), 1+random.Int64N(9)
				if random.IntN(2) == 0 {
					d, err := e.Decide(ctx, of, units)
					if err != nil {
						t.Error(err)
					} else if d.Allowed {
						sum.Add(units)
					}
					continue
				}
				done, err := e.Refund(ctx, locked.Refund{Target: of, Cost: units, ID: model.NewID("refund", fmt.Sprint(c, " ", i), "p")})
				if err != nil {
					t.Error(err)
				}
				sum.Add(-done.Units)
			}
		})
	}
	callers.Wait()
	db.checkLevels(t, customer, sum.Load())
}
