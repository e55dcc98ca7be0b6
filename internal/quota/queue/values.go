package queue

import (
	"sync"
	"time"
)

// NewValues bounds how many counters of attributes' values a node makes for each customer in a
// second. A row that has to be made costs PostgreSQL some ten times as much as one that is there,
// and takes room for as long as it counts.
type NewValues struct {
	most int

	mu     sync.Mutex
	second time.Duration // the running one, on the stopwatch
	made   map[int64]int // in that second, by customer
}

// MostNewValues is how many counters of attributes' values a node makes for each customer in a second.
const MostNewValues = 1000

// maxMaking bounds the customers that are counted at once. With more the running second begins
// again, for all of them.
const maxMaking = 10_000

// NewNewValues makes a bound of so many counters a customer and second, at least 1.
func NewNewValues(most int) *NewValues { return &NewValues{most: most, made: make(map[int64]int)} }

// Most is how many there may be.
func (v *NewValues) Most() int { return v.most }

// Fit reports whether so many more may be made for a customer at an instant of the stopwatch.
func (v *NewValues) Fit(customer int64, more int, watch time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if watch.Truncate(time.Second) != v.second {
		return more <= v.most
	}
	return v.made[customer]+more <= v.most
}

// Made counts what a transaction has made at an instant of the stopwatch, by customer.
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
