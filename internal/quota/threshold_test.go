package quota

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/upkeep"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// takeReached takes all thresholds that are written, as the numberer does.
func (db *testDB) takeReached(t testing.TB) (all []upkeep.Threshold) {
	t.Helper()
	err := pgx.BeginFunc(testkit.Context(t), db.Pool, func(tx pgx.Tx) (err error) {
		all, err = upkeep.TakeThresholds(testkit.Context(t), tx, 100_000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// notifyOracle is the contract of thresholds, for one limit that operations come to one after the other. It
// knows what is used from answers, and nothing of rows.
type notifyOracle struct {
	percents []int
	windowed bool
	of       int64
	window   int64 // that runs, µs

	raised map[int]bool
	peak   int64 // the most used since a refusal raised 100 percent below it; −1: it did not
}

func (o *notifyOracle) begins(window, used int64) {
	if o.windowed {
		if window != o.window {
			o.raised, o.window = map[int]bool{}, window
		}
		return
	}
	for p := range o.raised {
		ten := int64(p - 10)
		switch {
		case p == 100 && o.peak >= 0:
			if 10*used <= 10*min(o.peak, o.of)-o.of {
				delete(o.raised, p)
				o.peak = -1
			}
		case 100*used <= max(0, ten)*o.of:
			delete(o.raised, p)
		}
	}
}

func (o *notifyOracle) edited(of, used int64) {
	o.of = of
	for p := range o.raised {
		if 100*used < int64(p)*of {
			delete(o.raised, p)
		}
	}
	if !o.raised[100] {
		o.peak = -1
	}
}

// ends returns what an operation has raised that leaves so much used.
func (o *notifyOracle) ends(used int64, refused bool) (raised []int) {
	for _, p := range o.percents {
		reached := 100*used >= int64(p)*o.of
		if o.raised[p] || !reached && (p < 100 || !refused) {
			continue
		}
		if o.raised[p] = true; !reached && !o.windowed {
			o.peak = used
		}
		raised = append(raised, p)
	}
	if o.peak >= 0 {
		if o.peak = max(o.peak, used); used >= o.of {
			o.peak = -1
		}
	}
	return raised
}

// failedThresholds are seeds that failed once.
var failedThresholds = map[string][]uint64{"bucket": {14072274897042457418}}

// TestThresholdsAreTheOracle: hits, refunds, waits and edits in any order, from two nodes, raise what the
// contract says, of each kind of limit.
func TestThresholdsAreTheOracle(t *testing.T) {
	thresholdsAreTheOracle(t, quotatest.Sized(2, 2, 40), failedThresholds)
}

// TestMoreThresholdsAreTheOracle runs the rest, by other seeds.
func TestMoreThresholdsAreTheOracle(t *testing.T) { thresholdsAreTheOracle(t, 2, nil) }

// thresholdsAreTheOracle runs so many rounds of each kind of limit for its seed and for each that failed.
func thresholdsAreTheOracle(t *testing.T, rounds int, failed map[string][]uint64) {
	t.Helper()
	t.Parallel()
	for kind, spec := range map[string]model.Spec{
		"clock":      {Algorithm: "fixed_window", Window: "1h"},
		"first hit":  {Algorithm: "fixed_window", Window: "1h", Align: "first_hit"},
		"soft":       {Algorithm: "fixed_window", Window: "calendar_day", Mode: "soft"},
		"sliding":    {Algorithm: "sliding_window", Window: "1h"},
		"log":        {Algorithm: "sliding_log", Window: "1h", Precision: "1m"},
		"bucket":     {Algorithm: "token_bucket", Window: "1h"},
		"allocation": {Algorithm: "allocation"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			testkit.EachSeed(t, failed[kind], func(t *testing.T, seed uint64) {
				for n := range uint64(rounds) { // each ends with its engines, or the server would run out of sessions
					t.Run(strconv.FormatUint(n, 10), func(t *testing.T) { thresholdRun(t, spec, seed+n) })
				}
			})
		})
	}
}

func thresholdRun(t *testing.T, spec model.Spec, seed uint64) {
	ctx, db, clock := testkit.Context(t), newTestDB(t), quotatest.NewClock(quotatest.Epoch)
	random := rand.New(rand.NewPCG(seed, 7))
	engines := []*Engine{db.startEngine(t, clock), db.startEngine(t, clock)}
	o := &notifyOracle{percents: []int{5, 30, 50, 95, 100}, windowed: spec.Algorithm == "fixed_window", of: 100, raised: map[int]bool{}, peak: -1}
	change, customer := int64(1), quotatest.FreshCustomers(1)
	periods := quotatest.Target(customer, 1, 1).Periods
	target := func() *model.Target {
		s := spec
		s.Name, s.Limit, s.Notify = "l", o.of, o.percents
		return model.NewTarget(change, customer, 1, []*model.Limit{quotatest.Compile(t, s)}, periods, nil)
	}
	// Each node has a target of its own.
	on := []*model.Target{target(), target()}
	look := func() (used, window int64) {
		d, err := engines[0].Look(ctx, on[0], 0)
		if err != nil {
			t.Fatal(err)
		}
		window, runs := d.WindowStart(0)
		if !runs {
			window = 0
		}
		return d.View(0).Used, window
	}
	var want, did []string
	for step := range 300 {
		clock.At.Add([]int64{0, 1, 60e6, 600e6, 2400e6}[random.IntN(5)])
		n := random.IntN(2)
		what := random.IntN(12)
		used, window := look()
		if what < 11 || spec.Algorithm != "token_bucket" {
			o.begins(window, used)
		}
		doing, refused := "", false
		switch {
		case what < 7:
			cost := 1 + random.Int64N(40)
			var d model.Decision
			var err error
			if what == 0 {
				d, err = engines[n].Decide(ctx, on[n], cost)
			} else {
				r := engines[n].DecideAll(ctx, []model.Hit{{Target: on[n], Cost: cost, ID: model.ID{}}})[0]
				d, err = r.Decision, r.Err
			}
			if err != nil {
				t.Fatal(err)
			}
			doing, refused = fmt.Sprint("hit ", cost), !d.Allowed && d.AsOf == 0 // one from memory may not know of a refund yet
		case what < 9:
			cost := 1 + random.Int64N(50)
			if _, err := engines[n].Refund(ctx, locked.Refund{Target: on[n], Cost: cost, ID: model.NewID("refund", fmt.Sprint(step), "p")}); err != nil {
				t.Fatal(err)
			}
			doing = fmt.Sprint("refund ", cost)
		case what == 9:
			cost := 1 + random.Int64N(30)
			r := engines[n].DecideAll(ctx, []model.Hit{{Target: on[n], Cost: cost, Overrun: true, ID: model.NewID("hit", fmt.Sprint(step), "p")}})[0]
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			doing = fmt.Sprint("overrun ", cost)
		case what == 10:
			r, err := engines[n].Reserve(ctx, on[n], 1+random.Int64N(20), 60e6, model.NewID("reserve", fmt.Sprint(step), "p"))
			if err != nil {
				t.Fatal(err)
			}
			doing, refused = "reserve", !r.Allowed
		default:
			was := o.of
			change, o.of = change+1, []int64{80, 100, 130, 200}[random.IntN(4)]
			doing = fmt.Sprint("edit to ", o.of)
			on = []*model.Target{target(), target()}
			used, _ := look() // by the new limit: a bucket without a rate of its own has refilled by the limit's
			of := o.of
			o.of = was // an edit arms what has come to be 10 points below until then
			o.begins(window, used)
			if of != was {
				o.edited(of, used)
			}
			if err := engines[n].Notify(ctx, on[n:n+1]); err != nil {
				t.Fatal(err)
			}
		}
		before := used
		used, window = look()
		did = append(did, fmt.Sprint(clock.At.Load()-quotatest.Epoch, " ", doing, " ", before, " to ", used, " in ", window-quotatest.Epoch))
		if o.windowed {
			if window != o.window { // a first hit has begun it
				o.begins(window, used)
			}
			refused = refused && window != 0
		}
		for _, p := range o.ends(used, refused) {
			want = append(want, fmt.Sprint(p, " ", used, "/", o.of))
		}
		if got := db.reachedOf(t, customer); !slices.Equal(got, want) {
			t.Fatalf("seed %d, step %d, %s by node %d: raised are\n%s\nand not\n%s\nraised %v, peak %d, used %d\n%s",
				seed, step, doing, n, strings.Join(got[max(0, len(got)-4):], "\n"), strings.Join(want[max(0, len(want)-4):], "\n"), o.raised, o.peak, used,
				strings.Join(did[max(0, len(did)-8):], "\n"))
		}
	}
	if len(want) < 10 {
		t.Errorf("seed %d: %d were raised: the run proves little", seed, len(want))
	}
}

// reachedOf are the thresholds of a customer that are written, in the order of their charges.
func (db *testDB) reachedOf(t testing.TB, customer int64) []string {
	t.Helper()
	rows, _ := db.Pool.Query(testkit.Context(t), `SELECT percent || ' ' || used || '/' || CASE burst WHEN 0 THEN units ELSE burst END FROM thresholds
		WHERE customer = $1 ORDER BY at, version, percent`, customer)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestThresholdsAreWrittenWithTheCharge: while the event cannot be written, nobody sees the charge, and when
// the node dies then, neither is there. Written in a transaction of its own, the event is lost.
func TestThresholdsAreWrittenWithTheCharge(t *testing.T) {
	t.Parallel()
	for name, mutate := range map[string]func(*Engine){
		"": func(*Engine) {},
		"written after the charge": func(e *Engine) {
			for _, w := range e.workers {
				w.Session.Faults.CommitAfter = "quotad_locked_save"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, db := testkit.Context(t), newTestDB(t)
			e, err := newEngine(db.options(quotatest.NewClock(quotatest.Epoch)))
			if err != nil {
				t.Fatal(err)
			}
			mutate(e)
			e.start()
			t.Cleanup(func() { _ = e.Close(context.Background()) })
			customer := quotatest.FreshCustomers(1)
			limit := quotatest.Compile(t, model.Spec{Name: "l", Algorithm: "fixed_window", Window: "1h", Limit: 100, Notify: []int{80}})
			target := model.NewTarget(1, customer, 1, []*model.Limit{limit}, quotatest.Target(customer, 1, 1).Periods, nil)
			// On another meter first: the session's statements are prepared then, which would wait for the lock, too.
			first := model.NewTarget(1, customer, 2, []*model.Limit{limit}, quotatest.Target(customer, 2, 1).Periods, nil)
			if _, err := e.Decide(ctx, first, 90); err != nil {
				t.Fatal(err)
			}
			if len(db.takeReached(t)) != 1 {
				t.Fatal("no threshold was reached")
			}
			if _, err := e.Decide(ctx, target, 10); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Decide(ctx, target, 10); err != nil { // by a swap
				t.Fatal(err)
			}
			holding, err := db.Session(t).Begin(ctx)
			if err == nil {
				_, err = holding.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE thresholds IN EXCLUSIVE MODE")
			}
			if err != nil {
				t.Fatal(err)
			}
			answered := make(chan error, 1)
			go func() {
				_, err := e.Decide(context.WithoutCancel(ctx), target, 70)
				answered <- err
			}()
			var lost error
			testkit.Eventually(t, "whoever writes the event to die, each time", func() bool {
				select {
				case lost = <-answered:
					return true
				default:
				}
				_, err := db.Pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted AND relation = 'thresholds'::regclass`)
				if err != nil {
					t.Fatal(err)
				}
				return false
			})
			if lost == nil {
				t.Fatal("the charge was done while the event was held up")
			}
			if err := holding.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
			var d model.Decision
			testkit.Eventually(t, "a session in place of the one that died", func() bool {
				d, err = e.Look(ctx, target, 0)
				return err == nil
			})
			told := len(db.takeReached(t)) > 0
			whole := (d.View(0).Used == 90) == told
			if whole == (name != "") {
				t.Errorf("%d units are used, and an event is written: %v (the caller was told %v)", d.View(0).Used, told, lost)
			}
		})
	}
}
