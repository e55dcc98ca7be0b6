package model

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sort"
	"sync"
	"unsafe"
)

// Hold contains the units that an open reservation holds in one counter.
type Hold struct {
	Key     [16]byte // the key of the reservation's receipt
	Expires int64    // µs, by the customer's clock
	At      int64    // the instant of the charge, µs
	Cost    int64
	Limits  []int64 // the identities of the charged limits; few, and in no order
}

func (h *Hold) charges(id int64) bool { return slices.Contains(h.Limits, id) }

// heldMark is the identity of the first bucket in the state of a counter with holds. The level of that bucket is
// the instant at which the first hold expires. Statements of a lane never charge such a counter (see Known.Held).
// Only the worker does, because it knows the holds.
const heldMark = int64(0)

// Unmarked returns a stored state without its mark, and the instant of the mark, or 0 if there is no mark.
func Unmarked(stored []int64) (state []int64, due int64) {
	if len(stored) >= BucketLen && stored[0] == heldMark {
		return stored[BucketLen:], stored[1]
	}
	return stored, 0
}

// Marked returns a state in the form in which it is stored with these holds.
func Marked(state []int64, holds *Holds) []int64 {
	if holds.Len() == 0 {
		return state
	}
	return append([]int64{heldMark, holds.Due(), 0, 0}, state...)
}

// CompareHolds orders holds by expiry, and then by key.
func CompareHolds(a, b Hold) int {
	return cmp.Or(cmp.Compare(a.Expires, b.Expires), bytes.Compare(a.Key[:], b.Key[:]))
}

// Holds contains the holds on one counter, in the order of expiry. Nil means that there are no holds. Holds never
// change, so all decisions on a counter share them and their running sums, which are computed on first use.
type Holds struct {
	list []Hold

	mu   sync.Mutex // guards the following fields
	sums map[sumsKey]*runningSums
	logs map[int64]*heldBlocks // by the limit's identity
}

// sumsKey identifies running sums of a limit. The sums contain either all units that count from an instant on, or
// only units that were charged before the running window.
type sumsKey struct {
	id   int64
	last bool
}

// runningSums contains the units of the first n holds, 0 ≤ n ≤ Len, that were charged to a limit at instants in
// [from, to).
type runningSums struct {
	from, to int64
	units    []int64
}

// NewHolds returns Holds with the elements of a list. It sorts the list and keeps it.
func NewHolds(list []Hold) *Holds {
	slices.SortFunc(list, CompareHolds)
	return holdsOf(list)
}

// holdsOf returns Holds with the elements of a sorted list.
func holdsOf(list []Hold) *Holds {
	if len(list) == 0 {
		return nil
	}
	return &Holds{list: list}
}

// Len returns the number of holds.
func (h *Holds) Len() int { return len(h.all()) }

func (h *Holds) all() []Hold {
	if h == nil {
		return nil
	}
	return h.list
}

// Due returns the instant at which the first hold expires, µs. There must be a hold.
func (h *Holds) Due() int64 { return h.list[0].Expires }

// With returns the holds with one hold added.
func (h *Holds) With(one Hold) *Holds {
	list := h.all()
	at, _ := slices.BinarySearchFunc(list, one, CompareHolds)
	return holdsOf(slices.Insert(slices.Clip(list), at, one))
}

// Without returns the holds without the hold of a reservation, and that hold. ok is false if the reservation has
// no hold here.
func (h *Holds) Without(key [16]byte) (rest *Holds, one Hold, ok bool) {
	list := h.all()
	i := h.find(key)
	if i < 0 {
		return h, one, false
	}
	return holdsOf(slices.Concat(list[:i], list[i+1:])), list[i], true
}

// Has reports whether a reservation has a hold here.
func (h *Holds) Has(key [16]byte) bool { return h.find(key) >= 0 }

func (h *Holds) find(key [16]byte) int {
	list := h.all()
	for i := range list {
		if list[i].Key == key {
			return i
		}
	}
	return -1
}

// expired returns the number of holds that have expired at an instant.
func (h *Holds) expired(at int64) int {
	list := h.all()
	return sort.Search(len(list), func(i int) bool { return list[i].Expires > at })
}

// Weight returns the approximate memory of the holds in bytes, including all sums that may be computed from them.
func (h *Holds) Weight() (bytes int) {
	list := h.all()
	for i := range list {
		bytes += int(unsafe.Sizeof(Hold{})) + sumsWeight*len(list[i].Limits)
	}
	return bytes
}

// sumsWeight is the memory that a hold occupies in the sums of one limit, bytes: two integers of a sliding window,
// and fewer than four of a log.
const sumsWeight = 24

// forever is an end that is later than any charge.
const forever = int64(math.MaxInt64)

// sumsOf returns the units of the first n holds, 0 ≤ n ≤ Len, that were charged to a limit at instants in [from,
// to). Sums stop at the limit of 64 bits. Because sumsOf reads every hold, it keeps the latest sums, and all
// decisions of a transaction need the same sums.
func (h *Holds) sumsOf(id, from, to int64) []int64 {
	if h == nil {
		return []int64{0}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := sumsKey{id, to != forever}
	if s := h.sums[key]; s != nil && s.from == from && s.to == to {
		return s.units
	}
	s := &runningSums{from, to, make([]int64, len(h.list)+1)}
	charged := chargedTo{id: id}
	for i := range h.list {
		s.units[i+1] = s.units[i]
		if one := &h.list[i]; one.At >= from && one.At < to && charged.by(one) {
			s.units[i+1] = AddUpTo(s.units[i], one.Cost)
		}
	}
	if h.sums == nil {
		h.sums = make(map[sumsKey]*runningSums)
	}
	h.sums[key] = s
	return s.units
}

// chargedTo reports for each hold in a sequence whether it was charged to a limit. Nearly all holds of a counter
// were charged to the same limits, and holds that were read from the database share one list of these limits.
type chargedTo struct {
	id     int64
	limits []int64 // the limits of the last hold
	is     bool
}

func (c *chargedTo) by(h *Hold) bool {
	n := len(h.Limits)
	if c.id == capID { // all held units count
		return true
	}
	if n == 0 {
		return false
	}
	if n != len(c.limits) || &h.Limits[0] != &c.limits[0] {
		c.limits, c.is = h.Limits, h.charges(c.id)
	}
	return c.is
}

// open returns the units of a limit that belong to holds that expire after an instant, up to softCap.
func (h *Holds) open(id, at int64) int64 {
	if over := h.expired(at); over > 0 {
		h = holdsOf(h.list[over:])
	}
	return min(h.sumsOf(id, 0, forever)[h.Len()], softCap)
}

// Expire removes the holds that have expired at an instant from the row of the target's i-th counter. It returns
// their units to the limits, and returns the removed holds.
func (t *Target) Expire(i int, r *Row, at int64) (over []Hold) {
	n := r.Holds.expired(at)
	if n == 0 {
		return nil
	}
	over, rest := r.Holds.list[:n:n], holdsOf(r.Holds.list[n:])
	r.State = giveBackState(t.Counters[i].Limits, r.State, r.At, over, rest, t.moment(at))
	r.Departed = lowerDeparted(r.Departed, over, rest)
	r.Holds = rest
	return over
}
