package upkeep

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// bystanders are customers whose hits are measured.
type bystanders struct {
	engine  *quota.Engine
	targets []*model.Target
}

func (db *testDB) bystanders(t testing.TB, clock *quotatest.Clock) *bystanders {
	t.Helper()
	b := &bystanders{engine: db.startEngine(t, clock, withoutMemory)}
	limit := quotatest.Window(t, "l", 1e12, "1h")
	for range 500 {
		b.targets = append(b.targets, quotatest.Target(quotatest.FreshCustomers(1), 1, 1, limit))
	}
	return b
}

// hits is how many hits 32 callers got decided in a time.
func (b *bystanders) hits(ctx context.Context, t testing.TB, during time.Duration) int64 {
	t.Helper()
	var callers sync.WaitGroup
	var n atomic.Int64
	end := time.Now().Add(during)
	for c := range uint64(32) {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(c, 7))
			for time.Now().Before(end) {
				if _, err := b.engine.Decide(ctx, b.targets[r.IntN(len(b.targets))], 1); err != nil {
					t.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	callers.Wait()
	return n.Load()
}

// ratio is 1000 times the median of what other makes of what b makes, slice by slice.
func (b *bystanders) ratio(ctx context.Context, t testing.TB, other *bystanders) int64 {
	t.Helper()
	const slice = 150 * time.Millisecond
	var ratios []int64
	for i := range 15 {
		var mine, others int64
		if i%2 == 0 {
			mine, others = b.hits(ctx, t, slice), other.hits(ctx, t, slice)
		} else {
			others, mine = other.hits(ctx, t, slice), b.hits(ctx, t, slice)
		}
		ratios = append(ratios, others*1000/max(1, mine))
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// Counters as a flood of addresses leaves them.
const floodSQL = `
INSERT INTO counters (shard, customer, meter, attribute, state, at, total, version, change)
SELECT $1::smallint, $2::bigint, 1, 'ip=10.' || (i >> 16) || '.' || ((i >> 8) & 255) || '.' || (i & 255), ARRAY[$3::bigint, 1, 1, $4::bigint + 3600000000],
	$4::bigint, 1, 1, 1
FROM generate_series(1, $5::integer) i`

// TestFloodOfValues: hits of others go on beside a flood of values of one limit of one customer, and beside
// their removal. In the long form a million values slow the hits of others by at most a tenth, before
// the table is analyzed and after.
func TestFloodOfValues(t *testing.T) {
	ctx := testkit.Context(t)
	n := quotatest.Sized(20_000, 200_000, 1_000_000)
	clock := quotatest.NewClock(quotatest.Epoch)
	without, with := newTestDB(t), newTestDB(t)
	for _, db := range []*testDB{without, with} {
		db.Exec(ctx, t, "ALTER TABLE counters SET (autovacuum_enabled = off)")
	}
	calm, flooded := without.bystanders(t, clock), with.bystanders(t, clock)
	calm.hits(ctx, t, time.Second) // all counters are there
	flooded.hits(ctx, t, time.Second)
	flood := quotatest.PerIP(t, model.Spec{Algorithm: "fixed_window", Limit: 100, Window: "1h"})
	with.Exec(ctx, t, floodSQL, model.Shard(quotatest.Customer(flood)), quotatest.Customer(flood), quotatest.IP(flood, "1").Counters[1].Limits[0].ID,
		quotatest.Epoch, n)

	measure := func(when string) {
		t.Helper()
		if quotatest.Sized(0, 0, 1) == 0 {
			return // other tests share the machine
		}
		var best int64
		for tries := 0; tries < 4 && best < 900; tries++ {
			r := calm.ratio(ctx, t, flooded)
			t.Logf("%d values, %s: hits of others at %d ‰", n, when, r)
			best = max(best, r)
		}
		if best < 900 {
			t.Errorf("%s: hits of others at %d ‰ of those without the values", when, best)
		}
	}
	measure("as they came")
	// Both: a session whose table was analyzed is slower from then on, whatever is in it.
	for _, db := range []*testDB{without, with} {
		db.Exec(ctx, t, "ANALYZE counters")
	}
	measure("analyzed")
	beside(ctx, t, with, flooded, "a flood of new values", func(stop <-chan struct{}) { floodWith(ctx, t, with, clock, flood, stop) })
	clock.Set(quotatest.Epoch + 2*3600e6)
	flooded.hits(ctx, t, time.Second) // books the hour
	cleaner := with.cleaner(clock, flood)
	cleaner.options.Stopwatch = func() time.Duration { return 0 } // as fast as it ever goes
	cleaner.at = cursor{shard: model.Shard(quotatest.Customer(flood))}
	beside(ctx, t, with, flooded, "the removal of values", func(stop <-chan struct{}) {
		ctx, cancel := context.WithCancel(ctx)
		before := cleaner.Removed()
		go func() {
			<-stop
			for cleaner.Removed() == before && ctx.Err() == nil { // the slices may be too short for a step
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		cleaner.at = cursor{shard: model.Shard(quotatest.Customer(flood)), after: cleaner.at.after}
		cleaner.Run(ctx)
	})
	if cleaner.Removed() == 0 {
		t.Error("none was removed")
	}
}

// beside prints the median of what others get done while something else goes on, against
// what they do while it does not, and how many counters were added or removed a second.
func beside(ctx context.Context, t testing.TB, db *testDB, others *bystanders, what string, do func(stop <-chan struct{})) {
	t.Helper()
	const slice = time.Second
	count := func() (n int64) {
		if err := db.Pool.QueryRow(ctx, "SELECT count(*) FROM counters").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var ratios, changed []int64
	for range 3 {
		quiet := others.hits(ctx, t, slice)
		var doing sync.WaitGroup
		stop, before := make(chan struct{}), count()
		doing.Go(func() { do(stop) })
		ratios = append(ratios, others.hits(ctx, t, slice)*1000/max(1, quiet))
		close(stop)
		doing.Wait()
		changed = append(changed, count()-before)
	}
	slices.Sort(ratios)
	t.Logf("beside %s: hits of others at %d ‰; %d counters a second", what, ratios[1], changed)
}

// floodWith has another node charge hits of new values until stop.
func floodWith(ctx context.Context, t testing.TB, db *testDB, clock *quotatest.Clock, target *model.Target, stop <-chan struct{}) {
	t.Helper()
	o := db.options(clock)
	o.MaxNewValues = 1_000_000 // its own bound would end the flood
	e, err := quota.NewEngine(o)
	if err != nil {
		t.Error(err)
		return
	}
	if err := e.Connected(ctx); err != nil {
		t.Error(err)
		return
	}
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := e.Decide(ctx, quotatest.IP(target, fmt.Sprint("new", lastValue.Add(1))), 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	if err := e.Close(ctx); err != nil {
		t.Error(err)
	}
}

var lastValue atomic.Int64
