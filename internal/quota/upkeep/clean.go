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

// CleanerOptions are the settings of a Cleaner. All fields except Log are required.
type CleanerOptions struct {
	Pool *pgxpool.Pool
	// Now returns PostgreSQL's time, the clock of all nodes, in µs since the Unix epoch.
	Now func(context.Context) (int64, error)
	// Stopwatch returns the monotonic time since some start.
	Stopwatch func() time.Duration
	// Usable reports whether this node has seen all changes of the last second. If it has not, nothing is removed.
	Usable func() bool
	// Targets returns, for each key, the target by which the customer's hits on the meter are judged. The
	// attributes of the keys are ignored. If the plan does not have the meter, the target has no limits. If the
	// customer is archived or does not exist, the target is nil.
	Targets func(context.Context, []model.CounterKey) ([]*model.Target, error)
	// Expire removes expired holds (see Engine.Expire).
	Expire func(context.Context, *model.Target) error
	Log    *slog.Logger // nil: nothing is logged
}

// Cleaner removes counters of attribute values that are equivalent to missing counters. All limits of such a
// counter have their whole quota, and the counter has not been used for a while. Cleaner never changes
// customers' own counters, which are the account of the customers' usage. It also ignores counters of customers
// that are archived or do not exist (see package plans).
//
// Cleaner also removes the holds of expired reservations from counters that have no operations.
//
// Cleaner walks all counters in the order of their key, a small page at a time, and sleeps in between. It uses
// less than a hundredth of one session if there is little to do. All nodes may run a Cleaner on the same
// database.
type Cleaner struct {
	options CleanerOptions
	removed atomic.Int64
	at      cursor

	shards      atomic.Int64 // the number of completed shards in the running walk
	began, last atomic.Int64 // the start of the running walk on the stopwatch, and the duration of the previous walk; ns

	// Tests change the following fields, or damage them to verify that the damage is noticed.
	idle   int64         // see idleFor
	delete string        // DeleteSQL
	limit  time.Duration // stepLimit
}

// A counter must have been removable somewhat earlier, too, because other nodes' clocks differ, and because a
// batch that is sent again keeps its original instant. Therefore a counter is removed if it had its whole quota
// and was unused a minute ago. A counter without a limit in the plan is removed after a day, because the limit
// may return within the day.
const (
	idleFor      = int64(60e6)
	unlimitedFor = int64(24 * 3600e6)
)

const (
	// stepLimit is the maximum duration of a step, including all its waits.
	stepLimit = 5 * time.Second
	// busyPause is the minimum pause after a step that removed many counters. The pause is ten times the step's
	// duration if that is longer. The result is some 2000 removals a second, which hardly delay hits. restPause
	// is the minimum pause after any other step. The pause is a hundred times the step's duration if that is
	// longer. No pause is longer than maxPause.
	busyPause = 200 * time.Millisecond
	restPause = 500 * time.Millisecond
	maxPause  = 20 * time.Second
)

// NewCleaner returns a Cleaner. Run runs the Cleaner.
func NewCleaner(o CleanerOptions) *Cleaner {
	if o.Pool == nil || o.Now == nil || o.Stopwatch == nil || o.Usable == nil || o.Targets == nil || o.Expire == nil {
		panic("quota: a cleaner needs Pool, Now, Stopwatch, Usable, Targets and Expire")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	// Nodes begin at different shards, so that they seldom meet.
	at := cursor{shard: rand.N(int16(model.Shards))} //nolint:gosec // not a secret
	return &Cleaner{options: o, at: at, idle: idleFor, delete: DeleteSQL, limit: stepLimit}
}

// Walk returns the progress of the walk over all counters: the time since its start, the completed share from 0 to
// 1, and the duration of the last complete walk (0 if there was none).
func (c *Cleaner) Walk() (going time.Duration, done float64, last time.Duration) {
	return c.options.Stopwatch() - time.Duration(c.began.Load()), float64(c.shards.Load()) / float64(model.Shards), time.Duration(c.last.Load())
}

// passed records that the walk has completed a shard.
func (c *Cleaner) passed() {
	if c.shards.Add(1) < int64(model.Shards) {
		return
	}
	now := int64(c.options.Stopwatch())
	c.last.Store(now - c.began.Load())
	c.began.Store(now)
	c.shards.Store(0)
}

// Removed returns the number of counters removed since the start.
func (c *Cleaner) Removed() int64 { return c.removed.Load() }

// Run cleans until ctx ends. An error is logged once, until a step succeeds.
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

// pauseAfter returns the pause after a step, from its number of removed counters and its duration.
func pauseAfter(removed int, took time.Duration) time.Duration {
	if removed >= stepValues/2 {
		return max(busyPause, min(10*took, maxPause))
	}
	return max(restPause, min(100*took, maxPause))
}

// step cleans one page. A page that fails is left to the next walk, so that it cannot block all other pages.
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

// clean removes the counters that may be removed. It reads the clock before the counters, so all later charges
// have a later instant.
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
			continue // the counter is checked again when its holds have been removed
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

// judge reports whether a value's counter may be removed at now.
func (c *Cleaner) judge(t *model.Target, v *value, now int64) bool {
	switch {
	case v.Change > t.AsOf():
		return false // a change that this node does not know yet concerns the counter
	case t.Clock != nil:
		return false // a test clock may be set back to an instant at which the counter counts
	}
	limits := t.ValueLimits(v.key.Attribute)
	if err := cmp.Or(v.bad, t.Alone(v.key.Attribute).Check(v.key.Attribute, &v.Row)); err != nil {
		c.options.Log.Error("a counter cannot be read", "customer_id", v.key.Customer, "meter_id", v.key.Meter, "attribute", v.key.Attribute, "error", err)
		return false
	}
	if t.Level { // a level does not depend on limits
		return v.total == 0 && v.At <= now-unlimitedFor
	}
	if t.Counts(limits, &v.Row, now-c.idle) { // buckets of limits that may return
		return false
	}
	if len(limits) == 0 {
		return v.At <= now-unlimitedFor
	}
	return t.Untouched(limits, &v.Row, now-c.idle)
}
