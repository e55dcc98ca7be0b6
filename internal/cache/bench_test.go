package cache

import (
	"strconv"
	"sync/atomic"
	"testing"
)

// Every goroutine that reads: one key (a customer who is refused), all keys,
// and one key while others are written.
func BenchmarkGet(b *testing.B) {
	const n = 100_000
	type key struct{ customer, meter, per string }
	keys := make([]key, n)
	c := newCache[key, [4]int64](b, 2*n)
	for i := range keys {
		keys[i] = key{"customer-" + strconv.Itoa(i), "calls", ""}
		c.Add(keys[i], [4]int64{int64(i)}, NoExpiry)
	}
	var start atomic.Int64
	run := func(name string, f func(i int)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := int(start.Add(7919)); pb.Next(); i++ {
					f(i)
				}
			})
		})
	}
	run("hot key", func(int) { c.Get(keys[0], 0) })
	run("many keys", func(i int) { c.Get(keys[i*31%n], 0) })
	run("absent", func(i int) { c.Get(key{"nobody", "calls", ""}, 0) })
	run("hot key and 1 in 10 writes", func(i int) {
		if i%10 == 0 {
			c.Add(keys[i*31%n], [4]int64{}, NoExpiry)
		} else {
			c.Get(keys[0], 0)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	c := newCache[int64, [4]int64](b, 10_000)
	var next atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := next.Add(1 << 32); pb.Next(); i++ {
			c.Add(i, [4]int64{}, NoExpiry)
		}
	})
}
