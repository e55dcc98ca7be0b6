package upkeep

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/quota/model"
)

// CleanerOptions are what a Cleaner is made with. All but Log are required.
type CleanerOptions struct {
	Pool *pgxpool.Pool
	// Now is the one clock, PostgreSQL's, µs since the Unix epoch.
	Now func(context.Context) (int64, error)
	// Stopwatch is monotonic time since some start.
	Stopwatch func() time.Duration
	// Usable says that this node has seen all changes of the last second. While it does
	// not, nothing is removed.
	Usable func() bool
	// Targets returns for each key, of which the attribute does not count, what the
	// customer's hits on the meter are judged by: a target without limits when the plan
	// does not have the meter, nil when the customer is archived or not there.
	Targets func(context.Context, []model.CounterKey) ([]*model.Target, error)
	// Expire takes off what has expired of holds (see Engine.Expire).
	Expire func(context.Context, *model.Target) error
	Log    *slog.Logger // nil: none
}

// Cleaner removes the counters of attributes' values that say no more than a missing one
// would: those whose limits all have their whole quota, and that nobody has used for a
// while. Customers' own counters, which are the account of what they used, it never
// touches, nor anything of customers that are archived or not there (see package plans).
//
// On its way it takes off the holds of reservations that have expired and at whose counters
// nobody looks.
//
// It walks all counters in the order of their key, a small page at a time, and sleeps in
// between, so that it takes under a hundredth of one session where there is little to do.
// All nodes may run one, on the same database.
type Cleaner struct {
	options CleanerOptions
	removed atomic.Int64
	at      cursor

	shards      atomic.Int64 // of the walk under way, that are done
	began, last atomic.Int64 // its begin on the stopwatch, and how long the walk before took; ns

	// Parts that tests turn, or break to see that the breakage is noticed.
	idle   int64         // see idleFor
	delete string        // DeleteSQL
	limit  time.Duration // stepLimit
}

// What is told from one instant must hold a little earlier, too: other nodes' clocks
// differ, and a batch that is sent again still has the instant it was made at. So a
// counter goes when it was whole, and unused, a minute ago; and one without a limit in
// the plan after a day, in which the limit may come back.
const (
	idleFor      = int64(60e6)
	unlimitedFor = int64(24 * 3600e6)
)

const (
	// stepLimit bounds a step and so all that it waits for.
	stepLimit = 5 * time.Second
	// busyPause follows a step that removed many, or ten times what it took when that
	// is longer: some 2000 a second, and hits of others hardly slower. restPause follows one
	// that did not, or a hundred times what that took. Neither is longer than maxPause.
	busyPause = 200 * time.Millisecond
	restPause = 500 * time.Millisecond
	maxPause  = 20 * time.Second
)

// NewCleaner returns a Cleaner; Run runs it.
func NewCleaner(o CleanerOptions) *Cleaner {
	if o.Pool == nil || o.Now == nil || o.Stopwatch == nil || o.Usable == nil || o.Targets == nil || o.Expire == nil {
		panic("quota: a cleaner needs Pool, Now, Stopwatch, Usable, Targets and Expire")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	// Nodes begin at different places, so that they seldom meet.
	at := cursor{shard: rand.N(int16(model.Shards))} //nolint:gosec // not a secret
	return &Cleaner{options: o, at: at, idle: idleFor, delete: DeleteSQL, limit: stepLimit}
}

// Walk is how the walk over all counters goes: since when it goes on, how much of it is done, from
// 0 to 1, and how long the last whole one took (0: there was none).
func (c *Cleaner) Walk() (going time.Duration, done float64, last time.Duration) {
	return c.options.Stopwatch() - time.Duration(c.began.Load()), float64(c.shards.Load()) / float64(model.Shards), time.Duration(c.last.Load())
}

// passed notes that the walk is done with a shard.
func (c *Cleaner) passed() {
	if c.shards.Add(1) < int64(model.Shards) {
		return
	}
	now := int64(c.options.Stopwatch())
	c.last.Store(now - c.began.Load())
	c.began.Store(now)
	c.shards.Store(0)
}

// Removed is the number of counters removed since the start.
func (c *Cleaner) Removed() int64 { return c.removed.Load() }

// Run cleans until ctx ends. An error is logged once until a step succeeds.
func (c *Cleaner) Run(ctx context.Context) {
	work := Repeated{
		Log: c.options.Log, First: restPause,
		Fails: "counters that are full again cannot be removed now", Works: "counters that are full again are removed again",
	}
	c.began.Store(int64(c.options.Stopwatch()))
	work.Do = func(ctx context.Context) error {
		start := c.options.Stopwatch()
		removed, err := c.step(ctx)
		work.Pause = pauseAfter(removed, c.options.Stopwatch()-start)
		return err
	}
	work.Run(ctx)
}

// pauseAfter is the rest after a step that removed so many and took so long.
func pauseAfter(removed int, took time.Duration) time.Duration {
	if removed >= stepValues/2 {
		return max(busyPause, min(10*took, maxPause))
	}
	return max(restPause, min(100*took, maxPause))
}

// step looks at one page and removes what can go. A page that fails is left to the next
// walk, so that nothing in it can hold up all the others.
func (c *Cleaner) step(ctx context.Context) (removed int, err error) {
	if !c.options.Usable() {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	if c.at.after == (model.CounterKey{}) {
		if err := c.expireHolds(ctx); err != nil {
			return 0, err
		}
	}
	keys, next, err := c.page(ctx)
	if err != nil {
		return 0, err
	}
	if next.shard != c.at.shard {
		c.passed()
	}
	if c.at = next; len(keys) == 0 {
		return 0, nil
	}
	return c.clean(ctx, keys)
}

// clean removes those of the counters that can go. The clock is read before they are:
// what was charged later is later than that.
func (c *Cleaner) clean(ctx context.Context, keys []model.CounterKey) (int, error) {
	now, err := c.options.Now(ctx)
	if err != nil {
		return 0, err
	}
	found, err := c.read(ctx, keys)
	if err != nil {
		return 0, err
	}
	targets, err := c.options.Targets(ctx, keys)
	if err != nil {
		return 0, err
	}
	var idle []value
	for i := range found {
		target, v := targets[found[i].n-1], &found[i]
		if target == nil {
			continue
		}
		if _, due := model.Unmarked(v.State); due != 0 {
			continue // it is looked at again when its holds are gone
		}
		if c.judge(target, v, now) {
			idle = append(idle, *v)
		}
	}
	if len(idle) == 0 || !c.options.Usable() {
		return 0, nil
	}
	removed, err := c.remove(ctx, idle)
	c.removed.Add(int64(removed))
	return removed, err
}

// judge says whether a value's counter may go at now.
func (c *Cleaner) judge(t *model.Target, v *value, now int64) bool {
	switch {
	case v.Change > t.AsOf():
		return false // a newer change than this node knows concerns it
	case t.Clock != nil:
		return false // a test clock may be set back to where it counts
	}
	limits := t.ValueLimits(v.key.Attribute)
	if err := cmp.Or(v.bad, t.Alone(v.key.Attribute).Check(v.key.Attribute, &v.Row)); err != nil {
		c.options.Log.Error("a counter cannot be read", "customer_id", v.key.Customer, "meter_id", v.key.Meter, "attribute", v.key.Attribute, "error", err)
		return false
	}
	if t.Level { // what is held is held, whichever limits there are
		return v.total == 0 && v.At <= now-unlimitedFor
	}
	if t.Counts(limits, &v.Row, now-c.idle) { // of a limit that may come back
		return false
	}
	if len(limits) == 0 {
		return v.At <= now-unlimitedFor
	}
	return t.Untouched(limits, &v.Row, now-c.idle)
}
