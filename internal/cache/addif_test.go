package cache

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestAddIf(t *testing.T) {
	c := newCache[string, string](t, 10)
	set := func(now int64, wantOld, value string, expires int64, keep bool) {
		t.Helper()
		stored := c.AddIf("a", now, func(old string, ok bool) (string, int64, bool) {
			if old != wantOld || ok != (wantOld != "") {
				t.Errorf("decide got %q, %v, want %q", old, ok, wantOld)
			}
			return value, expires, keep
		})
		if stored != keep {
			t.Errorf("reports %v, decided %v", stored, keep)
		}
	}
	set(0, "", "no", 100, false)
	want(t, c, "a", 0, "")
	set(0, "", "1", 100, true)
	want(t, c, "a", 99, "1")
	want(t, c, "a", 99, "1")
	set(99, "1", "no", 500, false)
	want(t, c, "a", 99, "1")
	set(99, "1", "2", 200, true)
	want(t, c, "a", 150, "2")
	set(200, "", "3", 300, true) // what expired is not shown
	want(t, c, "a", 299, "3")
}

func TestAddIfEvicts(t *testing.T) {
	c := newCache[int, int](t, 2)
	for i := range 5 {
		c.AddIf(i, 0, func(int, bool) (int, int64, bool) { return i, NoExpiry, true })
	}
	if c.Len() != 2 || c.Evictions() != 3 {
		t.Errorf("%d entries, %d evictions", c.Len(), c.Evictions())
	}
}

func TestAddIfSurvivesAPanic(t *testing.T) {
	c := newCache[string, string](t, 10)
	c.Add("a", "1", NoExpiry)
	func() {
		defer func() { _ = recover() }()
		c.AddIf("a", 0, func(string, bool) (string, int64, bool) { panic("caller's bug") })
	}()
	want(t, c, "a", 0, "1") // would hang on a lock that was left held
	c.Add("a", "2", NoExpiry)
	want(t, c, "a", 0, "2")
}

// The first protocol: whatever order the inserts come in, the largest number
// stays, and no reader ever sees the numbers go back.
func TestVersionsNeverGoBack(t *testing.T) {
	const writers, versions = 4, 2000
	c := newCache[string, int](t, 10)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range versions {
				v := (i*7919 + w*1009) % versions // each in an order of its own
				c.AddIf("a", 0, func(old int, ok bool) (int, int64, bool) { return v, NoExpiry, !ok || v > old })
			}
		})
	}
	for range 2 {
		group.Go(func() {
			for seen, i := 0, 0; i < 10*versions; i++ {
				if v, ok := c.Get("a", 0); ok && v < seen {
					t.Errorf("saw %d after %d", v, seen)
					return
				} else if ok {
					seen = v
				}
			}
		})
	}
	group.Wait()
	if v, _ := c.Get("a", 0); v != versions-1 {
		t.Errorf("%d is left", v)
	}
}

// The second protocol: once an invalidation has returned, nothing that was read
// before it is seen again, however late it is inserted.
func TestLateInsertDoesNotUndoAnInvalidation(t *testing.T) {
	const changes = 3000
	for name, invalidate := range map[string]func(*Cache[string, int64]){
		"Remove": func(c *Cache[string, int64]) { c.Remove("a") },
		"Purge":  func(c *Cache[string, int64]) { c.Purge() },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache[string, int64](t, 10)
			var stored, watermark, announced atomic.Int64 // the truth; the oldest that may come in; that is in
			var group sync.WaitGroup
			for range 3 {
				group.Go(func() {
					for stored.Load() < changes {
						done := announced.Load()
						v, ok := c.Get("a", 0)
						if ok && v < done {
							t.Errorf("%d is seen after change %d was announced", v, done)
							return
						}
						read := stored.Load()
						c.AddIf("a", 0, func(old int64, ok bool) (int64, int64, bool) {
							return read, NoExpiry, read >= watermark.Load() && (!ok || read > old)
						})
					}
				})
			}
			for i := int64(1); i <= changes; i++ {
				stored.Store(i)
				watermark.Store(i)
				invalidate(c)
				announced.Store(i)
				if v, ok := c.Get("a", 0); ok && v < i {
					t.Errorf("%d is seen after change %d", v, i)
				}
			}
			group.Wait()
		})
	}
}
