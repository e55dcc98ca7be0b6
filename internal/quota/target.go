package quota

import (
	"sync/atomic"

	"quotad/internal/calendar"
)

// CounterKey names one counter: a customer's of a meter (Attribute empty), or that of
// one value of a `per` attribute.
type CounterKey struct {
	Customer  int64
	Meter     int32
	Attribute string
}

// Shards is the number of shards counters are spread over; part of the stored keys.
const Shards = 1024

// Shard is the hash of a customer that hot tables carry first in their keys
// (the finalizer of SplitMix64, whose low bits are well mixed).
func Shard(customer int64) int16 {
	x := uint64(customer)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int16((x ^ x>>31) % Shards)
}

// Counter is one row that a hit charges, with the limits whose buckets it holds.
type Counter struct {
	Key    CounterKey
	Limits []*Limit
}

// Target is what hits of one customer on one meter are judged by: resolved once, shared
// by all hits until a change, immutable but for a memory of the running hour.
type Target struct {
	// Change is the newest change number of all that went into this target.
	Change int64
	// Counters in key order: the customer's own first, which books the usage.
	Counters []Counter

	// Periods says where the customer's hours and billing periods start.
	calendar.Periods

	hour atomic.Pointer[span]
}

type span struct{ start, end int64 }

// NumLimits is the number of limits over all counters; a Decision's views are in this
// order: the counters', and in each the plan's.
func (t *Target) NumLimits() int {
	n := 0
	for i := range t.Counters {
		n += len(t.Counters[i].Limits)
	}
	return n
}

// Limit is the i-th limit, 0 ≤ i < NumLimits.
func (t *Target) Limit(i int) *Limit {
	for c := range t.Counters {
		if i < len(t.Counters[c].Limits) {
			return t.Counters[c].Limits[i]
		}
		i -= len(t.Counters[c].Limits)
	}
	panic("quota: limit index out of range")
}

// DenyOutage reports whether any limit wants hits refused while the database is out of
// reach (any deny wins).
func (t *Target) DenyOutage() bool {
	for c := range t.Counters {
		for _, l := range t.Counters[c].Limits {
			if l.DenyOutage {
				return true
			}
		}
	}
	return false
}

// runningHour is the hour that usage at an instant is booked in, µs, [start, end): that
// of Periods, remembered.
func (t *Target) runningHour(at int64) (start, end int64) {
	if h := t.hour.Load(); h != nil && h.start <= at && at < h.end {
		return h.start, h.end
	}
	start, end = t.Hour(at)
	t.hour.Store(&span{start, end})
	return start, end
}
