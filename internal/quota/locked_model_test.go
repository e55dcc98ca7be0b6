package quota

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// naive is a customer's meter told from its definitions: a list of what was charged. Time
// only goes forward.
type naive struct {
	limits []*model.Limit // one of an algorithm each
	events []*event
	usage  int64
}

// event is a charge. What was given back of it is not in it any more.
type event struct {
	at, cost int64
	expires  int64 // of a reservation; 0: none, or committed
	id       string
	flying   bool // a reservation that is open
	// give is what came back, and when: a bucket of tokens is told in the order of time.
	give []struct{ at, cost int64 }
}

// alive is what an event counts at an instant.
func (e *event) alive(at int64) int64 {
	if e.flying && e.expires <= at {
		return 0
	}
	return e.cost
}

// used is what counts against a limit at an instant, by the contract's words.
func (n *naive) used(l *model.Limit, at int64) (sum int64) {
	switch l.Algorithm {
	case model.FixedWindow:
		for _, e := range n.events {
			if e.at >= at-at%l.Window {
				sum += e.alive(at)
			}
		}
	case model.SlidingWindow:
		start, last := at-at%l.Window, int64(0)
		for _, e := range n.events {
			if e.at >= start {
				sum += e.alive(at)
			} else if e.at >= start-l.Window {
				last += e.alive(at)
			}
		}
		sum += last * (l.Window - at%l.Window) / l.Window
	case model.SlidingLog:
		for _, e := range n.events {
			if e.at > at-l.Window {
				sum += e.alive(at)
			}
		}
	case model.Allocation:
		for _, e := range n.events {
			sum += e.alive(at)
		}
	case model.Concurrency:
		for _, e := range n.events {
			if e.flying {
				sum += e.alive(at)
			}
		}
	case model.TokenBucket:
		return l.Burst - max(0, n.tokens(l, at))
	default:
		panic("the definitions do not have " + l.Algorithm.String())
	}
	return sum
}

// tokens tells a bucket of a token a µs' worth of 1/scale, event by event. They are below 0 after
// an overrun.
func (n *naive) tokens(l *model.Limit, at int64) int64 {
	type change struct{ at, parts int64 }
	var changes []change
	for _, e := range n.events {
		taken := e.cost
		for _, g := range e.give {
			taken += g.cost
			changes = append(changes, change{g.at, -g.cost * parts(l).unit})
		}
		changes = append(changes, change{e.at, taken * parts(l).unit})
		if e.flying && e.expires <= at {
			changes = append(changes, change{e.expires, -e.cost * parts(l).unit})
		}
	}
	// In the order of time, what is given back at an instant before what is charged then.
	missing, since := int64(0), int64(0)
	for len(changes) > 0 {
		first := 0
		for i, c := range changes {
			if c.at < changes[first].at || c.at == changes[first].at && c.parts < changes[first].parts {
				first = i
			}
		}
		c := changes[first]
		changes = append(changes[:first], changes[first+1:]...)
		missing = max(0, missing-(c.at-since)*parts(l).refill)
		missing, since = max(0, missing+c.parts), c.at
	}
	missing = max(0, missing-(at-since)*parts(l).refill)
	left := l.Burst*parts(l).unit - missing
	if left < 0 {
		return -((-left + parts(l).unit - 1) / parts(l).unit)
	}
	return left / parts(l).unit
}

// room is what is left of a limit, below 0 behind an overrun.
func (n *naive) room(l *model.Limit, at int64) int64 {
	if l.Algorithm == model.TokenBucket {
		return n.tokens(l, at)
	}
	return l.Limit - n.used(l, at)
}

func (n *naive) fits(at, cost int64, reserving bool) bool {
	for _, l := range n.limits {
		if (reserving || l.Algorithm != model.Concurrency) && cost > max(0, n.room(l, at)) {
			return false
		}
	}
	return true
}

// says holds what a decision says of each limit against the model: what is used, and that
// nothing comes back sooner or later than it says.
func (n *naive) says(d *model.Decision) error {
	for i := range d.NumViews() {
		v := d.View(i)
		l := v.Limit
		if want := n.used(l, d.At); v.Used != want {
			return fmt.Errorf("%s has %d used, want %d", l.Name, v.Used, want)
		}
		if room := n.room(l, d.At); v.Remaining != max(0, room) || v.Exceeded != (room < 0) {
			return fmt.Errorf("%s says %d remaining, exceeded %v; want %d", l.Name, v.Remaining, v.Exceeded, room)
		}
		if v.ResetAt != model.NoReset && v.ResetAt > d.At {
			if l.Algorithm != model.TokenBucket && (n.used(l, v.ResetAt) != 0 || n.used(l, v.ResetAt-1) == 0) {
				return fmt.Errorf("%s: %d used at its reset, %d before", l.Name, n.used(l, v.ResetAt), n.used(l, v.ResetAt-1))
			}
		} else if v.ResetAt <= d.At && n.used(l, d.At) != 0 && l.Algorithm != model.TokenBucket {
			return fmt.Errorf("%s is said to be whole", l.Name)
		}
		one := &naive{limits: []*model.Limit{l}, events: n.events}
		if w := v.RetryAfter; w > 0 && (!one.fits(d.At+w, d.Cost, true) || one.fits(d.At+w-1, d.Cost, true)) {
			return fmt.Errorf("%s: %d do not fit after %d µs, or sooner", l.Name, d.Cost, w)
		} else if w == model.Never && one.fits(d.At+1e12, d.Cost, true) {
			return fmt.Errorf("%s admits %d some day, it said never", l.Name, d.Cost)
		}
	}
	return nil
}

// lockedAlgorithms are limits of all algorithms, for random operations.
var lockedAlgorithms = []model.Spec{
	{Algorithm: "fixed_window", Window: "40s"},
	{Algorithm: "sliding_window", Window: "30s"},
	{Algorithm: "sliding_log", Window: "25s"},
	{Algorithm: "allocation"},
	{Algorithm: "token_bucket", Window: "20s"},
	{Algorithm: "concurrency", TTL: "1h"},
}

// TestLockedIsTheModel: random operations one after the other, each decision, each view and
// all usage as the definitions say.
func TestLockedIsTheModel(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock)
	seen := make(map[string]int)
	first := testkit.Seed(t)
	for n := range uint64(quotatest.Sized(10, 60, 2000)) {
		seed := first + n
		r := rand.New(rand.NewPCG(seed, 4))
		m := &naive{}
		for i, s := range lockedAlgorithms {
			if r.IntN(2) == 0 {
				s.Name, s.Limit = fmt.Sprint(s.Algorithm, i), 5+r.Int64N(20)
				if s.Algorithm == "allocation" {
					s.Limit *= 5
				}
				m.limits = append(m.limits, quotatest.Compile(t, s))
			}
		}
		base := model.NewTarget(1, quotatest.FreshCustomers(1), 1, m.limits, quotatest.Target(1, 1, 1).Periods, nil)
		run := &modelRun{ctx: ctx, e: e, m: m, r: r, base: base, seen: seen}
		for n := range 40 {
			clock.Set(clock.At.Load() + r.Int64N(8e6))
			run.now, run.name = clock.At.Load(), fmt.Sprint(n)
			if err := run.step(); err != nil {
				t.Fatalf("seed %d, step %d at +%d µs: %v", seed, n, run.now-quotatest.Epoch, err)
			}
		}
	}
	t.Log(seen)
	for _, what := range []string{
		"hit true", "hit false", "reserve true", "reserve false", "commit less", "commit more", "commit late", "commit full",
		"release", "refund", "overrun past a limit", "commit past a limit",
	} {
		if seen[what] == 0 {
			t.Errorf("no %s", what)
		}
	}
	reconciled(t, db)
}

var errUnlikeModel = errors.New("the model says otherwise")

// partsOf is what a token bucket's limit counts in: a unit is so many parts, and so many come
// back each µs.
type partsOf struct{ unit, refill int64 }

func parts(l *model.Limit) partsOf {
	g := new(big.Int).GCD(nil, nil, big.NewInt(l.Limit), big.NewInt(l.Window)).Int64()
	return partsOf{l.Window / g, l.Limit / g}
}
