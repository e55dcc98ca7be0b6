package cache

import (
	"testing"

	"pgregory.net/rapid"
)

// model is the naive map: every key's last value and expiry, and when it was
// last used. It forgets nothing by itself.
type model struct {
	values  map[int][2]int64 // value, expires
	used    map[int]int      // the step of the last use
	step    int
	dropped uint64 // evictions seen so far
}

// mustBeThere says whether a key was used so lately that no LRU of size would
// have dropped it. One is forgiven: a hot key's retirement may put it before
// one that was used later.
func (m *model) mustBeThere(key, size int) bool {
	later := 0
	for other, step := range m.used {
		if other != key && step > m.used[key] {
			later++
		}
	}
	return later < size-1
}

func (m *model) use(key int) {
	m.step++
	m.used[key] = m.step
}

func (m *model) forget(key int) { delete(m.values, key) }

func (m *model) checkGet(t *rapid.T, c *Cache[int, int64], key int, now int64, size int) {
	got, ok := c.Get(key, now)
	v, known := m.values[key]
	switch {
	case ok && (!known || now >= v[1] || got != v[0]):
		t.Fatalf("%d at %d: got %d, the model has %v", key, now, got, v)
	case !ok && known && now < v[1] && m.mustBeThere(key, size):
		t.Fatalf("%d was dropped too early", key)
	case !ok:
		m.forget(key)
	default:
		m.use(key)
	}
}

func TestCacheIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 8).Draw(t, "size")
		c, err := New[int, int64](size)
		if err != nil {
			t.Fatal(err)
		}
		m := &model{values: map[int][2]int64{}, used: map[int]int{}}
		keys := rapid.IntRange(0, size+1) // evictions now and then, hot keys often
		now := int64(0)
		set := func(t *rapid.T, key int) (value, expires int64) {
			value = rapid.Int64().Draw(t, "value")
			expires = now + rapid.SampledFrom([]int64{0, 1, 10, 1000, NoExpiry - now}).Draw(t, "for")
			m.values[key] = [2]int64{value, expires}
			m.use(key)
			return value, expires
		}
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				for range rapid.IntRange(1, 4).Draw(t, "times") {
					m.checkGet(t, c, key, now, size)
				}
			},
			"add": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				value, expires := set(t, key)
				c.Add(key, value, expires)
			},
			"addIf": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				v, known := m.values[key]
				keep := rapid.Bool().Draw(t, "keep")
				must := known && now < v[1] && m.mustBeThere(key, size)
				c.AddIf(key, now, func(old int64, ok bool) (int64, int64, bool) {
					if ok && (!known || now >= v[1] || old != v[0]) || !ok && must {
						t.Fatalf("decide got %d, %v, the model has %v", old, ok, v)
					}
					if !keep {
						return 0, 0, false
					}
					value, expires := set(t, key)
					return value, expires, true
				})
			},
			"remove": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				_, known := m.values[key]
				if c.Remove(key) && !known {
					t.Fatalf("%d was there, the model has none", key)
				}
				m.forget(key)
			},
			"purge": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "seldom") == 0 {
					c.Purge()
					clear(m.values)
				}
			},
			"time": func(t *rapid.T) { now += rapid.Int64Range(-2, 20).Draw(t, "passes") },
			"": func(t *rapid.T) {
				if n := c.Len(); n > size || n > len(m.values) {
					t.Fatalf("%d entries, size %d, the model has %d", n, size, len(m.values))
				}
				if n := c.Evictions(); n < m.dropped {
					t.Fatalf("%d evictions after %d", n, m.dropped)
				} else {
					m.dropped = n
				}
				if hot := c.shards[0].hot.Load(); hot != nil {
					if it, ok := c.shards[0].lru.Peek(hot.key); !ok || it != hot {
						t.Fatal("hot is not what the LRU holds")
					}
				}
			},
		})
	})
}
