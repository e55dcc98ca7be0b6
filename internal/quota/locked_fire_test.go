package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// lockedFire is operations of all kinds on a few customers' counters from several engines
// at once, every one sent twice or three times at the same time to different ones.
type lockedFire struct {
	seed      uint64
	engines   int
	callers   int
	rounds    int // of each caller
	customers int64
	mutate    func(*Engine)
	patient   bool // what is too busy is sent again: a mutant is to be caught by its numbers
}

// told is what the answers said was done: of a customer, in all.
type told struct {
	admitted, refunded, committed atomic.Int64
}

// run fires and returns what is wrong with what is stored at the end, if anything is.
func (f *lockedFire) run(t *testing.T) error {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	var engines []*Engine
	for range f.engines {
		e, err := newEngine(db.options(clock))
		if err != nil {
			t.Fatal(err)
		}
		if f.mutate != nil {
			f.mutate(e)
		}
		e.start()
		engines = append(engines, e)
	}
	var targets []*model.Target
	limits := []*model.Limit{
		quotatest.Compile(t, model.Spec{Name: "tight", Algorithm: "allocation", Limit: 60}),
		quotatest.Compile(t, model.Spec{Name: "month", Algorithm: "fixed_window", Limit: 1e9, Window: "calendar_month"}),
		quotatest.Compile(t, model.Spec{Name: "slots", Algorithm: "concurrency", Limit: 5, TTL: "1h"}),
		quotatest.Compile(t, model.Spec{Name: "ip", Algorithm: "sliding_log", Limit: 1000, Window: "1h", Per: "ip"}),
	}
	for i := range f.customers {
		targets = append(targets, model.NewTarget(1, i+1, 1, limits, quotatest.Target(1, 1, 1).Periods, nil))
	}
	all := make([]told, f.customers)
	var calls sync.WaitGroup
	failed := make(chan error, f.callers)
	for c := range f.callers {
		calls.Go(func() {
			p := &lockedCaller{f: f, engines: engines, targets: targets, told: all, r: rand.New(rand.NewPCG(f.seed, uint64(c))), name: fmt.Sprint(c)}
			for n := range f.rounds {
				if err := p.step(ctx, n); err != nil {
					failed <- fmt.Errorf("caller %d, round %d: %w", c, n, err)
					return
				}
			}
		})
	}
	calls.Wait()
	close(failed)
	err := errors.Join(<-failed, f.compare(ctx, engines[0], targets, all))
	for _, e := range engines {
		err = errors.Join(err, e.Close(ctx))
	}
	if n := quotatest.Deadlocks(t, db.URL); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d deadlocks", n))
	}
	if n := rowsIn(t, db, "holds"); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d holds of no reservation", n))
	}
	return err
}

// compare holds what is stored against what was told.
func (f *lockedFire) compare(ctx context.Context, e *Engine, targets []*model.Target, all []told) (err error) {
	for i, target := range targets {
		s, failed := e.Standings(ctx, []*model.Target{target.ForReservations().For(map[string]string{"ip": "1"})})
		if failed != nil {
			return failed
		}
		want := all[i].admitted.Load() + all[i].committed.Load() - all[i].refunded.Load()
		if tight, month, slots := s[0].View(0), s[0].View(1), s[0].View(2); tight.Used != want || month.Used != want || s[0].PeriodUsed != want ||
			slots.Used != 0 || tight.Reserved != 0 {
			err = errors.Join(err, fmt.Errorf("customer %d: told %d, used %d and %d, usage %d, %d in flight", i+1, want, tight.Used, month.Used,
				s[0].PeriodUsed, slots.Used))
		}
	}
	return err
}

// lockedCaller does one operation after the other.
type lockedCaller struct {
	f       *lockedFire
	engines []*Engine
	targets []*model.Target
	told    []told
	r       *rand.Rand
	name    string
}

// twice does an operation on two or three engines at once; all answers must be of one.
func twice[T any](p *lockedCaller, do func(*Engine) (T, error), same func(a, b T) bool) (T, error) {
	n := 2 + p.r.IntN(2)
	answers, errs := make([]T, n), make([]error, n)
	var calls sync.WaitGroup
	first := p.r.IntN(len(p.engines))
	for i := range n {
		calls.Go(func() { answers[i], errs[i] = answered(p, do, p.engines[(first+i)%len(p.engines)]) })
	}
	calls.Wait()
	for i := range n {
		if errs[i] == nil && errs[0] == nil && !same(answers[0], answers[i]) {
			return answers[0], fmt.Errorf("one request, two answers: %+v and %+v", answers[0], answers[i])
		}
	}
	return answers[0], errors.Join(errs...)
}

// answered does an operation, again while that is too busy where the run is patient.
func answered[T any](p *lockedCaller, do func(*Engine) (T, error), e *Engine) (T, error) {
	for tries := 0; ; tries++ {
		answer, err := do(e)
		if busy := errors.Is(err, session.ErrBusy) || errors.Is(err, locked.ErrUnderWay); !busy || !p.f.patient || tries == 8 {
			return answer, err
		}
	}
}

func (p *lockedCaller) step(ctx context.Context, n int) error {
	customer := p.r.IntN(len(p.targets))
	base, told := p.targets[customer], &p.told[customer]
	target := base.For(map[string]string{"ip": fmt.Sprint(p.r.IntN(3))})
	cost, id := 1+p.r.Int64N(4), p.name+"/"+fmt.Sprint(n)
	// The refused are judged again, so of one request one answer may be no and another yes.
	hit := func(e *Engine) (model.Decision, error) {
		return e.decideOnce(ctx, target, cost, model.NewID("hit", id, ""))
	}
	sameAt := func(a, b model.Decision) bool { return !a.Allowed || !b.Allowed || a.At == b.At }
	switch p.r.IntN(5) {
	case 0, 1:
		if _, err := twice(p, hit, sameAt); err != nil {
			return err
		}
		d, err := answered(p, hit, p.engines[0]) // whether it was admitted at last
		if err != nil || !d.Allowed {
			return err
		}
		told.admitted.Add(cost)
		if p.r.IntN(2) == 0 {
			return nil
		}
		refund := locked.Refund{Target: base, Cost: 1 + p.r.Int64N(5), Hit: model.NewID("hit", id), ID: model.NewID("refund", id, "")}
		back, err := twice(p, func(e *Engine) (locked.Refunded, error) { return e.Refund(ctx, refund) },
			func(a, b locked.Refunded) bool { return a.Units == b.Units })
		told.refunded.Add(back.Units)
		return err
	case 2:
		back, err := twice(p, func(e *Engine) (locked.Refunded, error) {
			return e.Refund(ctx, locked.Refund{Target: target, Cost: cost, ID: model.NewID("refund", id, "")})
		}, func(a, b locked.Refunded) bool { return a.Units == b.Units })
		told.refunded.Add(back.Units)
		return err
	case 3:
		return p.together(ctx, id)
	}
	return p.reserve(ctx, target, base, told, id, cost)
}

// together is an atomic batch over two customers, in any order.
func (p *lockedCaller) together(ctx context.Context, id string) error {
	a, b := p.r.IntN(len(p.targets)), p.r.IntN(len(p.targets))
	hits := []model.Hit{
		{Target: p.targets[a].For(nil), Cost: 2, ID: model.NewID("hit", id+"a", "")},
		{Target: p.targets[b].For(nil), Cost: 1, ID: model.NewID("hit", id+"b", "")},
	}
	do := func(e *Engine) (bool, error) { _, all, err := e.DecideTogether(ctx, hits); return all, err }
	if _, err := twice(p, do, func(_, _ bool) bool { return true }); err != nil {
		return err
	}
	all, err := answered(p, do, p.engines[0])
	if all {
		p.told[a].admitted.Add(2)
		p.told[b].admitted.Add(1)
	}
	return err
}

func (p *lockedCaller) reserve(ctx context.Context, target, base *model.Target, told *told, id string, cost int64) error {
	reserve := func(e *Engine) (locked.Reservation, error) {
		return e.Reserve(ctx, target, cost, 60e6, model.NewID("reservation", id, ""))
	}
	if _, err := twice(p, reserve, func(a, b locked.Reservation) bool { return a.ID == b.ID }); err != nil {
		return err
	}
	r, err := answered(p, reserve, p.engines[0])
	if err != nil || !r.Allowed {
		return err
	}
	final := p.r.Int64N(cost + 2)
	s, err := twice(p, func(e *Engine) (locked.Settled, error) { return e.Commit(ctx, base, r.ID, final) },
		func(a, b locked.Settled) bool { return a.Cost == b.Cost && a.At == b.At })
	var full *locked.NoRoomError
	switch {
	case err == nil:
		told.committed.Add(s.Cost)
	case errors.As(err, &full) || errors.Is(err, locked.ErrSettled):
		// Refused once and not the other time, or both times.
		_, err = twice(p, func(e *Engine) (locked.Settled, error) { return e.Release(ctx, base, r.ID) }, func(_, _ locked.Settled) bool { return true })
		if errors.Is(err, locked.ErrSettled) {
			told.committed.Add(final)
			err = nil
		}
	}
	return err
}

// TestLockedUnderFire: what was told is what is stored, to the unit, and each request has
// one answer.
func TestLockedUnderFire(t *testing.T) {
	f := &lockedFire{seed: testkit.Seed(t), engines: 4, callers: 24, rounds: quotatest.Sized(15, 100, 2000), customers: 6}
	if err := f.run(t); err != nil {
		t.Fatalf("seed %d: %v", f.seed, err)
	}
}

// TestLockedMutantsAreCaught: a worker broken in one way fails the same run.
func TestLockedMutantsAreCaught(t *testing.T) {
	replace := func(name session.StatementName, pairs ...string) func(*Engine) {
		return func(e *Engine) {
			texts := e.workers[0].Session.Statements
			broken := strings.NewReplacer(pairs...).Replace(texts[name])
			if broken == texts[name] {
				t.Errorf("the mutant of %s is no mutant", name)
			}
			texts[name] = broken
		}
	}
	for name, mutate := range map[string]func(*Engine){
		"read then write":       replace(locked.LockRows, "FOR UPDATE", "OFFSET 0"),
		"ids are not looked up": replace(locked.FindReceipts, "AND key = i.key", "AND key = i.key AND false"),
		"no lock order": replace(locked.LockRows, "FROM unnest(", "FROM (SELECT * FROM unnest(", "attribute, n),\n",
			"attribute, n) ORDER BY random()) i,\n", "AS i(", "AS u("),
		"holds are never taken off": replace(locked.CloseHolds, "AND h.key = i.key", "AND h.key = i.key AND false"),
	} {
		t.Run(name, func(t *testing.T) {
			for round := range uint64(10) {
				f := &lockedFire{seed: round, engines: 4, callers: 16, rounds: 15, customers: 3, mutate: mutate, patient: true}
				if name == "no lock order" {
					f.rounds = 6
				}
				if err := f.run(t); err != nil {
					t.Log("caught:", err)
					return
				}
			}
			t.Error("nobody saw it")
		})
	}
}
