package model

import (
	"cmp"
	"fmt"
)

// CounterKey names one counter: a customer's of a meter (Attribute empty), or that of
// one value of a `per` attribute (see AttributeKey).
type CounterKey struct {
	Customer  int64
	Meter     int32
	Attribute string
}

// AttributeKey is the counter of one value of an attribute, as stored. Names have no =.
func AttributeKey(name, value string) string { return name + "=" + value }

// Shards is the number of shards counters are spread over; part of the stored keys.
const Shards = 1024

// Shard is the hash of a customer that hot tables carry first in their keys.
func Shard(customer int64) int16 { return int16(mix(uint64(customer)) % Shards) }

// mix is the finalizer of SplitMix64, all of whose bits are well mixed. What is stored
// goes by it.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// String names the counter in messages.
func (k CounterKey) String() string { return fmt.Sprintf("%d/%d/%q", k.Customer, k.Meter, k.Attribute) }

// CompareKeys is the lock order of counters, the order of their primary key.
func CompareKeys(a, b CounterKey) int {
	if c := cmp.Compare(Shard(a.Customer), Shard(b.Customer)); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Customer, b.Customer); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Meter, b.Meter); c != 0 {
		return c
	}
	return cmp.Compare(a.Attribute, b.Attribute)
}

// HourKey names an hour, by its start, of a customer's meter.
type HourKey struct {
	Customer int64
	Meter    int32
	Hour     int64
}

// CompareHours is the order in which rows of hours are locked.
func CompareHours(a, b HourKey) int {
	own := CounterKey{Customer: a.Customer, Meter: a.Meter}
	return cmp.Or(CompareKeys(own, CounterKey{Customer: b.Customer, Meter: b.Meter}), cmp.Compare(a.Hour, b.Hour))
}
