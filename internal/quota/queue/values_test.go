package queue

import (
	"testing"
	"time"
)

// What is counted has a bound, and ends with its second.
func TestNewValues(t *testing.T) {
	v, now := NewNewValues(10), time.Minute
	v.Made(map[int64]int{1: 10}, now)
	for _, c := range []struct {
		customer int64
		more     int
		watch    time.Duration
		fit      bool
	}{
		{1, 1, now, false},
		{1, 1, now + time.Second - 1, false},
		{1, 10, now + time.Second, true},
		{1, 11, now + time.Second, false},
		{2, 10, now, true},
		{2, 11, now, false},
	} {
		if v.Fit(c.customer, c.more, c.watch) != c.fit {
			t.Errorf("%+v", c)
		}
	}
	for customer := range int64(3 * maxMaking) {
		v.Made(map[int64]int{customer: 1}, now)
		if len(v.made) > maxMaking {
			t.Fatalf("%d customers are counted", len(v.made))
		}
	}
}
