package cache

import (
	"fmt"
	"slices"
	"testing"
)

// Who made room is told, once, with what it was last; nobody else is.
func TestOnEvict(t *testing.T) {
	c := newCache[string, int](t, 2)
	var told []string
	c.OnEvict(func(key string, value int) {
		told = append(told, fmt.Sprint(key, value))
		if _, there := c.Get(key, 0); there { // no lock is held, or this would wait for ever
			t.Errorf("%s is there still", key)
		}
	})
	c.Add("a", 1, NoExpiry)
	c.Add("b", 1, 10)
	c.Add("a", 2, NoExpiry)
	c.Get("b", 20) // expired
	c.Add("c", 1, NoExpiry)
	c.Remove("c")
	if len(told) > 0 {
		t.Errorf("%v are told of, and none made room", told)
	}
	c.Add("d", 1, NoExpiry)
	for range 5 {
		c.Get("a", 0) // now it is hot
	}
	c.Add("e", 1, NoExpiry)
	c.AddIf("f", 0, func(int, bool) (int, int64, bool) { return 1, NoExpiry, true })
	c.AddIf("g", 0, func(int, bool) (int, int64, bool) { return 1, NoExpiry, false })
	c.Purge()
	if want := []string{"d1", "a2"}; !slices.Equal(told, want) {
		t.Errorf("%v are told of, not %v", told, want)
	}
}
