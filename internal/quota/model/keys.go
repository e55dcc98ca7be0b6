package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
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

// MaxID bounds the ids of operations, in bytes.
const MaxID = 255

// ID names an operation of a customer: done once, whoever sends it how often. The zero ID
// is none.
type ID struct {
	Key     [16]byte // of the kind of operation and the client's id
	Payload int64    // what was asked for under it
	Batch   *ID      // of the batch that it came in, whose payload is the whole batch; nil: none
}

// NewID is the ID of an operation of some kind under the client's id. payload is all that
// was asked for: another one under the same id is ErrOtherPayload.
func NewID(kind, id string, payload ...string) ID {
	digest := digestOf(payload)
	return ID{Key: idKey(kind, id), Payload: int64(binary.BigEndian.Uint64(digest[:]))}
}

// Given reports whether there is one.
func (id ID) Given() bool { return id.Key != [16]byte{} }

// idKey is what an operation's receipt is found by, beside its customer. 128 bits of
// SHA-256: two ids never share one, and it says nothing about the id.
func idKey(kind, id string) (key [16]byte) {
	digest := digestOf([]string{kind, id})
	copy(key[:], digest[:])
	return key
}

// digestOf hashes parts, each after its length.
func digestOf(parts []string) [sha256.Size]byte {
	var b []byte
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return sha256.Sum256(b)
}

// Hit is one hit of many (see DecideAll).
type Hit struct {
	Target *Target
	Cost   int64 // 0 … MaxNumber; 0 looks only
	Look   bool  // a dry run: judge and charge nothing
	ID     ID    // charged once, whoever sends it how often; zero: it has none
	// Overrun: the cost has been spent already. It is charged and booked whole, past hard limits
	// too.
	Overrun bool
}

// Looks reports whether the hit charges nothing.
func (h *Hit) Looks() bool { return h.Look || h.Cost == 0 }

// Enclose returns the first start and the last end of spans [starts[i], ends[i]), those left out in
// which nothing can lie. Both are 0 where all are such.
func Enclose(starts, ends []int64) (from, to int64) {
	found := false
	for i, start := range starts {
		switch {
		case start >= ends[i]:
		case !found:
			from, to, found = start, ends[i], true
		default:
			from, to = min(from, start), max(to, ends[i])
		}
	}
	return from, to
}

// Keys are the keys of a target's counters.
func (t *Target) Keys() []CounterKey {
	keys := make([]CounterKey, len(t.Counters))
	for i := range t.Counters {
		keys[i] = t.Counters[i].Key
	}
	return keys
}
