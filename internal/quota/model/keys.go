package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// CounterKey identifies one counter: a customer's counter of a meter (Attribute is empty), or the counter of one
// value of a `per` attribute (see AttributeKey).
type CounterKey struct {
	Customer  int64
	Meter     int32
	Attribute string
}

// AttributeKey returns the stored form of the counter's attribute and value. Names contain no =.
func AttributeKey(name, value string) string { return name + "=" + value }

// Shards is the number of shards over which counters are distributed. It is part of the stored keys.
const Shards = 1024

// Shard returns the hash of a customer that is the first column of the keys of hot tables.
func Shard(customer int64) int16 { return int16(mix(uint64(customer)) % Shards) }

// mix is the finalizer of SplitMix64, which mixes all bits well. Stored data depends on it.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// String formats the counter for messages.
func (k CounterKey) String() string { return fmt.Sprintf("%d/%d/%q", k.Customer, k.Meter, k.Attribute) }

// CompareKeys orders counters by their primary key, which is also the order in which they are locked.
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

// HourKey identifies an hour of a customer's meter by the hour's start.
type HourKey struct {
	Customer int64
	Meter    int32
	Hour     int64
}

// CompareHours orders hours in the order in which their rows are locked.
func CompareHours(a, b HourKey) int {
	own := CounterKey{Customer: a.Customer, Meter: a.Meter}
	return cmp.Or(CompareKeys(own, CounterKey{Customer: b.Customer, Meter: b.Meter}), cmp.Compare(a.Hour, b.Hour))
}

// MaxID is the maximum length of the id of an operation, in bytes.
const MaxID = 255

// ID identifies an operation of a customer. The operation is done once, however often and by whomever it is sent.
// The zero ID identifies no operation.
type ID struct {
	Key     [16]byte // the hash of the kind of operation and the client's id
	Payload int64    // the hash of the request
	Batch   *ID      // the ID of the operation's batch, whose payload is the whole batch; nil: no batch
}

// NewID returns the ID of an operation of a kind under the client's id. payload is the complete request, because
// another payload under the same id returns ErrOtherPayload.
func NewID(kind, id string, payload ...string) ID {
	digest := digestOf(payload)
	return ID{Key: idKey(kind, id), Payload: int64(binary.BigEndian.Uint64(digest[:]))}
}

// Given reports whether the ID identifies an operation.
func (id ID) Given() bool { return id.Key != [16]byte{} }

// idKey returns the key of an operation's receipt within its customer. The key is 128 bits of SHA-256, so two ids
// never share a key, and the key does not reveal the id.
func idKey(kind, id string) (key [16]byte) {
	digest := digestOf([]string{kind, id})
	copy(key[:], digest[:])
	return key
}

// digestOf hashes parts, each preceded by its length.
func digestOf(parts []string) [sha256.Size]byte {
	var b []byte
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return sha256.Sum256(b)
}

// Hit is one of the hits of a batch (see DecideAll).
type Hit struct {
	Target *Target
	Cost   int64 // 0 … MaxNumber; 0 charges nothing
	Look   bool  // a dry run: the hit is judged and charges nothing
	ID     ID    // charged once, however often and by whomever it is sent; zero: the hit has no id
	// Overrun means that the cost has been spent already. The whole cost is charged and booked, even beyond hard
	// limits.
	Overrun bool
}

// Looks reports whether the hit charges nothing.
func (h *Hit) Looks() bool { return h.Look || h.Cost == 0 }

// Enclose returns the first start and the last end of the non-empty spans [starts[i], ends[i]). Both are 0 if all
// spans are empty.
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

// Keys returns the keys of a target's counters.
func (t *Target) Keys() []CounterKey {
	keys := make([]CounterKey, len(t.Counters))
	for i := range t.Counters {
		keys[i] = t.Counters[i].Key
	}
	return keys
}
