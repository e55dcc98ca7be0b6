package queue

import (
	"sync"
	"time"
)

// NewValues limits the number of counters of attribute values that a node creates for each customer in a second.
// The creation of a row costs PostgreSQL some ten times as much as an update, and the row occupies space for as
// long as it counts.
type NewValues struct {
	most int

	mu     sync.Mutex
	second time.Duration // the running second, on the stopwatch
	made   map[int64]int // the created counters in that second, by customer
}

// MostNewValues is the maximum number of counters of attribute values that a node creates for each customer in a
// second.
const MostNewValues = 1000

// maxMaking is the maximum number of customers that are counted at once. If there are more, the running second
// starts anew for all of them.
const maxMaking = 10_000

// NewNewValues returns a limit of most counters for each customer and second, at least 1.
func NewNewValues(most int) *NewValues { return &NewValues{most: most, made: make(map[int64]int)} }

// Most returns the maximum number of counters.
func (v *NewValues) Most() int { return v.most }

// Fit reports whether more counters may be created for a customer at an instant of the stopwatch.
func (v *NewValues) Fit(customer int64, more int, watch time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if watch.Truncate(time.Second) != v.second {
		return more <= v.most
	}
	return v.made[customer]+more <= v.most
}

// Made counts the counters that a transaction has created at an instant of the stopwatch, by customer.
func (v *NewValues) Made(made map[int64]int, watch time.Duration) {
	if len(made) == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if second := watch.Truncate(time.Second); second != v.second || len(v.made)+len(made) > maxMaking {
		v.second = second
		clear(v.made)
	}
	for customer, n := range made {
		v.made[customer] += n
	}
}
