package quota

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// benchTargets are 10,000 customers with two limits, each of whom was hit once.
func benchTargets(b *testing.B, callers int) (*Engine, []*model.Target) {
	db := newTestDB(b)
	targets := make([]*model.Target, 10_000)
	e := db.startEngine(b, quotatest.NewClock(quotatest.Epoch), func(o *Options) { o.MaxQueue = 2 * len(targets) }) // all at once, of one sender
	hits := make([]model.Hit, len(targets))
	limits := []*model.Limit{quotatest.Window(b, "a", model.MaxNumber, "1h"), quotatest.Bucket(b, "b", 86_400_000, "1d", 86_400_000)}
	for i := range targets {
		targets[i] = quotatest.Target(int64(i+1), 1, 1, limits...)
		hits[i] = model.Hit{Target: targets[i], Cost: 1}
	}
	for _, r := range e.DecideAll(testkit.Context(b), hits) {
		if r.Err != nil {
			b.Fatal(r.Err)
		}
	}
	b.SetParallelism(callers) // times GOMAXPROCS
	b.ReportAllocs()
	b.ResetTimer()
	return e, targets
}

// BenchmarkDecide is a hit of one of 256 callers, without HTTP.
func BenchmarkDecide(b *testing.B) {
	e, targets := benchTargets(b, 128)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if d, err := e.Decide(context.Background(), targets[rand.IntN(len(targets))], 1); err != nil || !d.Allowed {
				b.Errorf("%s %v", d.String(), err)
			}
		}
	})
}

// BenchmarkDecideAll is a batch of 100 hits of one of 64 callers, over one customer or 100.
func BenchmarkDecideAll(b *testing.B) {
	for _, over := range []int{1, 100} {
		b.Run(fmt.Sprint(over), func(b *testing.B) {
			e, targets := benchTargets(b, 32)
			b.RunParallel(func(pb *testing.PB) {
				hits := make([]model.Hit, 100)
				for pb.Next() {
					first := rand.IntN(len(targets) - over)
					for i := range hits {
						hits[i] = model.Hit{Target: targets[first+i%over], Cost: 1}
					}
					for _, r := range e.DecideAll(context.Background(), hits) {
						if r.Err != nil || !r.Decision.Allowed {
							b.Errorf("%s %v", r.Decision.String(), r.Err)
						}
					}
				}
			})
		})
	}
}

// BenchmarkDecideOnce is BenchmarkDecide of hits with ids.
func BenchmarkDecideOnce(b *testing.B) {
	e, targets := benchTargets(b, 128)
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := model.NewID("hit", fmt.Sprint(n.Add(1)))
			if d, err := e.decideOnce(context.Background(), targets[rand.IntN(len(targets))], 1, id); err != nil || !d.Allowed {
				b.Errorf("%s %v", d.String(), err)
			}
		}
	})
}
