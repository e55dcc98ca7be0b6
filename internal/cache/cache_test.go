package cache

import (
	"testing"
)

func newCache[K comparable, V any](t testing.TB, size int) *Cache[K, V] {
	t.Helper()
	c, err := New[K, V](size)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// want checks what Get gives; an absent value is "".
func want(t *testing.T, c *Cache[string, string], key string, now int64, value string) {
	t.Helper()
	if got, ok := c.Get(key, now); got != value || ok != (value != "") {
		t.Errorf("%s at %d: got %q, %v, want %q", key, now, got, ok, value)
	}
}

func TestNewRefusesSizesBelowOne(t *testing.T) {
	for _, size := range []int{0, -1, -1 << 62} {
		if c, err := New[string, string](size); err == nil || c != nil {
			t.Errorf("size %d: got %v, %v", size, c, err)
		}
	}
}

func TestNewSharesTheSize(t *testing.T) {
	for _, c := range []struct{ size, shards int }{
		{1, 1}, {128, 1}, {255, 1}, {256, 2}, {511, 2}, {512, 4}, {8191, 32}, {8192, 64}, {1_000_003, 64},
	} {
		cache := newCache[int, int](t, c.size)
		if len(cache.shards) != c.shards {
			t.Errorf("size %d: %d shards, want %d", c.size, len(cache.shards), c.shards)
		}
		sum := 0
		for i := range cache.shards {
			sum += cache.shards[i].room
		}
		if sum != c.size {
			t.Errorf("size %d: the shards have room for %d", c.size, sum)
		}
	}
}

func TestGetAddRemove(t *testing.T) {
	c := newCache[string, string](t, 10)
	want(t, c, "a", 0, "")
	c.Add("a", "1", NoExpiry)
	want(t, c, "a", 0, "1")
	c.Add("a", "2", NoExpiry)
	for range 5 { // by and by from hot
		want(t, c, "a", 0, "2")
	}
	c.Add("a", "3", NoExpiry)
	want(t, c, "a", 0, "3")
	if !c.Remove("a") || c.Remove("a") {
		t.Error("Remove does not tell what was there")
	}
	want(t, c, "a", 0, "")
	if c.Len() != 0 || c.Evictions() != 0 {
		t.Errorf("%d entries, %d evictions", c.Len(), c.Evictions())
	}
}

func TestExpiry(t *testing.T) {
	c := newCache[string, string](t, 10)
	for _, reads := range []int{1, 5} { // from the LRU, and from hot
		c.Add("a", "1", 100)
		for range reads {
			want(t, c, "a", 99, "1")
		}
		want(t, c, "a", 100, "")
		if c.Len() != 0 {
			t.Errorf("%d entries after expiry", c.Len())
		}
		want(t, c, "a", 99, "") // gone for good, though time went back
	}
	c.Add("past", "1", -5)
	want(t, c, "past", -6, "1")
	want(t, c, "past", -5, "")
	c.Add("never", "1", NoExpiry)
	want(t, c, "never", NoExpiry-1, "1")
	if c.Evictions() != 0 {
		t.Errorf("%d evictions, expiry is none", c.Evictions())
	}
}

func TestExpiryIsReplaced(t *testing.T) {
	c := newCache[string, string](t, 10)
	c.Add("a", "1", 100)
	want(t, c, "a", 50, "1")
	want(t, c, "a", 50, "1")
	c.Add("a", "2", 200)
	want(t, c, "a", 150, "2")
	c.Add("a", "3", 120)
	want(t, c, "a", 150, "")
}

func TestPurge(t *testing.T) {
	c := newCache[int, int](t, 1000)
	for i := range 500 {
		c.Add(i, i, NoExpiry)
		for range i % 5 {
			c.Get(i, 0)
		}
	}
	c.Purge()
	if c.Len() != 0 || c.Evictions() != 0 {
		t.Errorf("%d entries, %d evictions", c.Len(), c.Evictions())
	}
	for i := range 500 {
		if _, ok := c.Get(i, 0); ok {
			t.Fatalf("%d outlived the purge", i)
		}
	}
	c.Add(1, 7, NoExpiry)
	if v, ok := c.Get(1, 0); v != 7 || !ok {
		t.Error("no life after a purge")
	}
}

func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	c := newCache[string, string](t, 3)
	for _, key := range []string{"a", "b", "c"} {
		c.Add(key, key, NoExpiry)
	}
	want(t, c, "a", 0, "a")
	c.Add("d", "d", NoExpiry)
	want(t, c, "b", 0, "")
	want(t, c, "a", 0, "a")
	want(t, c, "c", 0, "c")
	c.Add("a", "a", NoExpiry) // a replacement is a use, and evicts nothing
	c.Add("e", "e", NoExpiry)
	want(t, c, "d", 0, "")
	if c.Len() != 3 || c.Evictions() != 2 {
		t.Errorf("%d entries, %d evictions", c.Len(), c.Evictions())
	}
}

// The LRU sees nothing of a hot key's reads; it must not be evicted for it.
func TestHotKeyIsNotEvicted(t *testing.T) {
	c := newCache[int, int](t, 4)
	c.Add(0, 42, NoExpiry)
	for i := 1; i < 1000; i++ {
		c.Add(i, i, NoExpiry)
		for range i % 7 * 2 {
			c.Get(i, 0)
		}
		if v, ok := c.Get(0, 0); v != 42 || !ok {
			t.Fatalf("the hot key is gone after %d inserts", i)
		}
		c.Get(0, 0)
	}
	if c.Len() != 4 || c.Evictions() != 996 {
		t.Errorf("%d entries, %d evictions", c.Len(), c.Evictions())
	}
}

// Nor when it was read past the LRU only, before the insert or before another
// key became the hot one.
func TestReadsOfTheHotKeyAreUses(t *testing.T) {
	for name, between := range map[string]func(*Cache[string, string]){
		"insert":  func(*Cache[string, string]) {},
		"new hot": func(c *Cache[string, string]) { want(t, c, "b", 0, "b"); want(t, c, "b", 0, "b") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache[string, string](t, 4)
			c.Add("a", "a", NoExpiry)
			want(t, c, "a", 0, "a")
			want(t, c, "a", 0, "a")
			for _, key := range []string{"b", "c", "d"} {
				c.Add(key, key, NoExpiry)
			}
			if hot := c.shards[0].hot.Load(); hot == nil || hot.key != "a" {
				t.Fatal("a is not hot")
			}
			want(t, c, "a", 0, "a")
			between(c)
			c.Add("e", "e", NoExpiry)
			want(t, c, "a", 0, "a")
		})
	}
}

// A key that was hot once is not kept for ever.
func TestOnceHotKeyIsEvicted(t *testing.T) {
	c := newCache[int, int](t, 4)
	c.Add(0, 42, NoExpiry)
	for range 5 {
		c.Get(0, 0)
	}
	for i := 1; i < 10; i++ {
		c.Add(i, i, NoExpiry)
	}
	if _, ok := c.Get(0, 0); ok {
		t.Error("still there")
	}
}

func TestBoundHolds(t *testing.T) {
	for _, size := range []int{1, 2, 100, 300, 10_000} {
		c := newCache[int, int](t, size)
		for i := range 3 * size {
			c.Add(i, i, NoExpiry)
			c.Get(i, 0)
			c.Get(i, 0)
		}
		if c.Len() > size || c.Len()+int(c.Evictions()) != 3*size {
			t.Errorf("size %d: %d entries, %d evictions", size, c.Len(), c.Evictions())
		}
		if c.Len() < size*9/10 {
			t.Errorf("size %d: only %d entries", size, c.Len())
		}
	}
}

func TestGetDoesNotAllocate(t *testing.T) {
	type key struct{ customer, meter, per string }
	c := newCache[key, [4]int64](t, 1000)
	keys := []key{{"a", "calls", ""}, {"b", "calls", "x"}, {"absent", "calls", ""}}
	c.Add(keys[0], [4]int64{1}, NoExpiry)
	c.Add(keys[1], [4]int64{2}, NoExpiry)
	i := 0
	if n := testing.AllocsPerRun(1000, func() { c.Get(keys[i/3%3], 0); i++ }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
