package cache

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// All operations at once: the race detector finds missing locks, the checks
// values under wrong keys and a broken bound.
func TestAllAtOnce(t *testing.T) {
	const size, workers, steps = 300, 8, 20_000
	c := newCache[int, [2]int](t, size)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for step := range steps {
				key := min(random.IntN(600), random.IntN(600), random.IntN(600))
				switch random.IntN(20) {
				case 0, 1:
					c.Add(key, [2]int{key, -key}, int64(step+100))
				case 2, 3:
					c.AddIf(key, int64(step), func(old [2]int, ok bool) ([2]int, int64, bool) {
						return [2]int{key, -key}, NoExpiry, !ok
					})
				case 4:
					c.Remove(key)
				case 5:
					if n := c.Len(); n > size {
						t.Errorf("%d entries", n)
					}
					if step%50 == 0 {
						c.Purge()
					}
				default:
					if v, ok := c.Get(key, int64(step)); ok && v != [2]int{key, -key} {
						t.Errorf("%d holds %v", key, v)
					}
				}
			}
		})
	}
	group.Wait()
}
