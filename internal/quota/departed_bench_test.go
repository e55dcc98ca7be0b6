package quota

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// BenchmarkDeparted compares hits on a counter that keeps 16 buckets of limits that left, or a log of 1,000
// blocks, with hits on one that keeps none. Both are measured in turns, and "ratio" is the median of how
// many times as long a hit takes.
func BenchmarkDeparted(b *testing.B) {
	other := quotatest.Window(b, "other", model.MaxNumber, "1h")
	var windows []*model.Limit
	for i := range 16 {
		windows = append(windows, quotatest.Window(b, fmt.Sprint("w", i), model.MaxNumber, "720h"))
	}
	log := []*model.Limit{quotatest.Limit(b, "log", "sliding_log", "720h", 1000)}
	for name, c := range map[string]struct {
		left []*model.Limit
		fill int
		once bool // with an id: the row is locked, and read
	}{"16 windows": {windows, 1, false}, "16 windows, with ids": {windows, 1, true}, "log": {log, 1000, false}, "log, with ids": {log, 1000, true}} {
		b.Run(name, func(b *testing.B) {
			db, ctx, clock := newTestDB(b), testkit.Context(b), quotatest.NewClock(quotatest.Epoch)
			e := db.startEngine(b, clock)
			for range c.fill {
				clock.Set(clock.At.Load() + 1)
				if d, err := e.Decide(ctx, quotatest.Target(1, 1, 1, append(slices.Clone(c.left), other)...), 1); err != nil || !d.Allowed {
					b.Fatal(d.String(), err)
				}
			}
			targets := []*model.Target{quotatest.Target(1, 1, 2, other), quotatest.Target(2, 1, 2, other)}
			n := 0
			hit := func(t *model.Target) time.Duration {
				n++
				id := model.ID{}
				if c.once {
					id = model.NewID("hit", fmt.Sprint(n))
				}
				began := time.Now()
				if d, err := e.decideOnce(ctx, t, 1, id); err != nil || !d.Allowed {
					b.Fatal(d.String(), err)
				}
				return time.Since(began)
			}
			for range 20 {
				hit(targets[0])
				hit(targets[1])
			}
			if rowsIn(b, db, "counters WHERE departed IS NOT NULL") != 1 {
				b.Fatal("nothing is kept apart")
			}
			var with, without []time.Duration
			for b.Loop() {
				with, without = append(with, hit(targets[0])), append(without, hit(targets[1]))
			}
			slices.Sort(with)
			slices.Sort(without)
			b.ReportMetric(float64(with[len(with)/2])/float64(without[len(without)/2]), "ratio")
		})
	}
}
