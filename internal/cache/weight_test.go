package cache

import (
	"testing"

	"pgregory.net/rapid"
)

func newWeighed(t testing.TB, size, usual int) *Cache[int, int] {
	t.Helper()
	c, err := NewWeighed(size, usual, func(_, v int) int { return v })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A heavy entry makes room by the oldest ones, as many as it takes, and each is told of.
func TestWeightEvicts(t *testing.T) {
	c := newWeighed(t, 10, 10)
	var told []int
	c.OnEvict(func(key, _ int) { told = append(told, key) })
	for i := range 10 {
		c.Add(i, 10, NoExpiry)
	}
	c.Get(0, 0)
	c.Add(10, 25, NoExpiry)
	if len(told) != 3 || told[0] != 1 || told[2] != 3 || c.Evictions() != 3 {
		t.Errorf("%v made room, %d evictions", told, c.Evictions())
	}
	c.Add(10, 5, NoExpiry) // lighter again
	c.Add(11, 20, NoExpiry)
	if len(told) != 3 {
		t.Errorf("%v made room, though there was some", told)
	}
	c.Add(0, 20, NoExpiry) // heavier, and in use
	if v, ok := c.Get(0, 0); len(told) != 4 || told[3] != 4 || !ok || v != 20 {
		t.Errorf("%v made room; the entry that grew is %d, %v", told, v, ok)
	}
}

// What is heavier than a quarter of the room is not kept, nor what was there in its place.
func TestTooHeavy(t *testing.T) {
	c := newWeighed(t, 10, 10)
	for i := range 5 {
		c.Add(i, 10, NoExpiry)
	}
	for range 3 {
		c.Get(1, 0) // now it is hot
	}
	c.Add(1, 26, NoExpiry)
	stored := c.AddIf(2, 0, func(int, bool) (int, int64, bool) { return 26, NoExpiry, true })
	for i, there := range []bool{true, false, false, true, true} {
		if _, ok := c.Get(i, 0); ok != there {
			t.Errorf("%d is there: %v", i, ok)
		}
	}
	if stored || c.Evictions() != 0 {
		t.Errorf("it was stored: %v, %d evictions", stored, c.Evictions())
	}
	one := newWeighed(t, 1, 10)
	one.Add(0, 10, NoExpiry)
	one.Add(1, 11, NoExpiry)
	if v, ok := one.Get(0, 0); !ok || v != 10 || one.Len() != 1 {
		t.Error("a cache of one entry does not keep a usual one")
	}
}

// Whatever happens, the entries weigh what the shard thinks, no more than it has room for, and
// the last one added is there.
func TestWeightIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, usual := rapid.IntRange(1, 20).Draw(t, "size"), rapid.IntRange(1, 5).Draw(t, "usual")
		c, err := NewWeighed(size, usual, func(_, v int) int { return v })
		if err != nil {
			t.Fatal(err)
		}
		s := &c.shards[0]
		added := func(key, weight int) {
			if v, ok := c.Get(key, 0); ok != (weight <= s.most) || ok && v != weight {
				t.Fatalf("%d of weight %d was added: %d, %v", key, weight, v, ok)
			}
		}
		keys, weights := rapid.IntRange(0, 10), rapid.IntRange(1, 12)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				key, weight := keys.Draw(t, "key"), weights.Draw(t, "weight")
				c.Add(key, weight, NoExpiry)
				added(key, weight)
			},
			"addIf": func(t *rapid.T) {
				key, weight := keys.Draw(t, "key"), weights.Draw(t, "weight")
				if c.AddIf(key, 0, func(int, bool) (int, int64, bool) { return weight, NoExpiry, true }) != (weight <= s.most) {
					t.Fatal("stored or not")
				}
				added(key, weight)
			},
			"get": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				for range rapid.IntRange(1, 4).Draw(t, "times") {
					c.Get(key, rapid.Int64Range(0, 1).Draw(t, "now"))
				}
			},
			"expired": func(t *rapid.T) { c.Add(keys.Draw(t, "key"), 1, 0) },
			"remove":  func(t *rapid.T) { c.Remove(keys.Draw(t, "key")) },
			"purge":   func(*rapid.T) { c.Purge() },
			"": func(t *rapid.T) {
				sum := 0
				for _, it := range s.lru.Values() {
					sum += it.value
				}
				if sum != s.weight || sum > size*usual {
					t.Fatalf("the entries weigh %d, the shard thinks %d and has room for %d", sum, s.weight, size*usual)
				}
				if hot := s.hot.Load(); hot != nil {
					if it, ok := s.lru.Peek(hot.key); !ok || it != hot {
						t.Fatal("hot is not what the LRU holds")
					}
				}
			},
		})
	})
}
