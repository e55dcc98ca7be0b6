package catalog

import (
	"fmt"
	"runtime"
	"testing"

	"quotad/internal/plans"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// crowd is a node with customers in the database.
func crowd(b *testing.B, customers int) (*Catalog, []string) {
	b.Helper()
	s := planstest.NewStore(b, pgtest.NewDatabase(b))
	planstest.Populate(b, s)
	if _, err := s.Pool().Exec(b.Context(), `
		INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change)
		SELECT 'customer-' || n, 'Customer ' || n, 1, 1, 'Europe/Berlin', '2026-01-31T00:00:00', 1
		FROM generate_series(0, $1::integer - 1) n`, customers); err != nil {
		b.Fatal(err)
	}
	keys := make([]string, customers)
	for i := range keys {
		keys[i] = fmt.Sprint("customer-", i)
	}
	return New(s.Pool(), testOptions()), keys
}

// heap looks at the heap after two collections: the first frees what has finalizers.
func heap(stats *runtime.MemStats) {
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(stats)
}

func BenchmarkResolve(b *testing.B) {
	c, keys := crowd(b, 10_000)
	resolve := func(b *testing.B, key string) {
		if _, err := c.Resolve(b.Context(), key, "api", 1); err != nil {
			b.Error(err)
		}
	}
	var before, after runtime.MemStats
	heap(&before)
	for _, key := range keys {
		resolve(b, key)
	}
	heap(&after)
	b.Run("crowd", func(b *testing.B) {
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(keys)), "B/customer")
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				resolve(b, keys[i*7919%len(keys)])
			}
		})
	})
	b.Run("hot", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				resolve(b, keys[0])
			}
		})
	})
}

// A miss, which asks the database.
func BenchmarkResolveMiss(b *testing.B) {
	c, keys := crowd(b, 10_000)
	for i := 0; b.Loop(); i++ {
		if i%len(keys) == 0 {
			for _, key := range keys {
				c.memory.Load().customers.Remove(key)
			}
		}
		if _, err := c.Resolve(b.Context(), keys[i%len(keys)], "api", 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	c, _ := crowd(b, 1)
	_, secret, err := storeOf(c).CreateKey(b.Context(), "k", plans.ScopeBackend, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Authenticate(b.Context(), secret, anyKey); err != nil {
			b.Fatal(err)
		}
	}
}
