package upkeep

import (
	"testing"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// leastCleaned is how many values a second a node's cleaner removes at least, where it finds them. So
// it keeps up with as many new ones. The long form holds to that.
const leastCleaned = 1000

// The cleaner keeps up with 1,000 new values a second. Its steps are run one after the other, and the
// rest that each earns is added up and not waited for.
func TestCleanerKeepsUp(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	target := quotatest.PerIP(t, model.Spec{Algorithm: "token_bucket", Limit: 10, Window: "1m"})
	customer, values := quotatest.Customer(target), quotatest.Sized(5000, 20_000, 200_000)
	db.Exec(ctx, t, `INSERT INTO counters (shard, customer, meter, attribute, version, at, change, state, units, hour)
		SELECT $1, $2, 1, 'ip=' || i, 1, 5, 0, '{}', 0, 0 FROM generate_series(1, $3::int) i`, model.Shard(customer), customer, values)
	db.Exec(ctx, t, "ANALYZE counters")
	cleaner := db.cleaner(clock, target)
	cleaner.at = cursor{shard: model.Shard(customer)}
	removed, steps, worked, all := 0, 0, time.Duration(0), time.Duration(0)
	for removed < values {
		began := time.Now()
		n, err := cleaner.step(ctx)
		if err != nil || n == 0 {
			t.Fatalf("%d removed after %d: %v", n, removed, err)
		}
		d := time.Since(began)
		removed, steps, worked, all = removed+n, steps+1, worked+d, all+d+pauseAfter(n, d)
	}
	t.Logf("%d values in %d steps of %s on average: %d a second", removed, steps, worked/time.Duration(steps), int(float64(removed)/all.Seconds()))
	if most := values/stepValues + 1; steps > most {
		t.Errorf("%d steps, want at most %d: each removes as many as it may", steps, most)
	}
	testkit.AtMost(t, "removing the values", all, time.Duration(values)*time.Second/leastCleaned)
}
