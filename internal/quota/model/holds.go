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

// Hold is what an open reservation holds of one counter.
type Hold struct {
	Key     [16]byte // its receipt's
	Expires int64    // µs, by the customer's clock
	At      int64    // instant of the charge, µs
	Cost    int64
	Limits  []int64 // identities of the limits that were charged; few, and in no order
}

func (h *Hold) charges(id int64) bool { return slices.Contains(h.Limits, id) }

// The state of a counter with holds begins with the bucket of the identity heldMark, whose
// level is the instant at which the first of them expires. No statement of a lane charges
// such a counter (see Known.Held); the worker does, which knows the holds.
const heldMark = int64(0)

// Unmarked is a stored state without its mark, and the instant of the mark; 0: none.
func Unmarked(stored []int64) (state []int64, due int64) {
	if len(stored) >= BucketLen && stored[0] == heldMark {
		return stored[BucketLen:], stored[1]
	}
	return stored, 0
}

// Marked is a state as it is stored beside these holds.
func Marked(state []int64, holds *Holds) []int64 {
	if holds.Len() == 0 {
		return state
	}
	return append([]int64{heldMark, holds.Due(), 0, 0}, state...)
}

// CompareHolds is the order of expiry.
func CompareHolds(a, b Hold) int {
	return cmp.Or(cmp.Compare(a.Expires, b.Expires), bytes.Compare(a.Key[:], b.Key[:]))
}

// Holds are the holds on one counter, by expiry; nil: none. Holds never change. So all decisions
// on a counter share them, and with them the running sums, which are made when first asked for.
type Holds struct {
	list []Hold

	mu   sync.Mutex // guards what follows
	sums map[sumsKey]*runningSums
	logs map[int64]*heldBlocks // by the limit's identity
}

// sumsKey says what running sums are of: of one limit, all that counts from an instant on, or only
// what was charged before the window that runs.
type sumsKey struct {
	id   int64
	last bool
}

// runningSums are the units of the first n holds, 0 ≤ n ≤ Len, that were charged to a limit at
// instants in [from, to).
type runningSums struct {
	from, to int64
	units    []int64
}

// NewHolds makes Holds of a list, which it sorts and keeps.
func NewHolds(list []Hold) *Holds {
	slices.SortFunc(list, CompareHolds)
	return holdsOf(list)
}

// holdsOf makes Holds of a sorted list.
func holdsOf(list []Hold) *Holds {
	if len(list) == 0 {
		return nil
	}
	return &Holds{list: list}
}

// Len is how many there are.
func (h *Holds) Len() int { return len(h.all()) }

func (h *Holds) all() []Hold {
	if h == nil {
		return nil
	}
	return h.list
}

// Due is the instant at which the first one expires, µs. There must be one.
func (h *Holds) Due() int64 { return h.list[0].Expires }

// With is the holds and one more.
func (h *Holds) With(one Hold) *Holds {
	list := h.all()
	at, _ := slices.BinarySearchFunc(list, one, CompareHolds)
	return holdsOf(slices.Insert(slices.Clip(list), at, one))
}

// Without is the holds without the one of a reservation, and that one; ok is false when the
// reservation has none here.
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

// expired is how many have expired at an instant.
func (h *Holds) expired(at int64) int {
	list := h.all()
	return sort.Search(len(list), func(i int) bool { return list[i].Expires > at })
}

// Weight is about what the holds take of memory with all sums that may be made of them, bytes.
func (h *Holds) Weight() (bytes int) {
	list := h.all()
	for i := range list {
		bytes += int(unsafe.Sizeof(Hold{})) + sumsWeight*len(list[i].Limits)
	}
	return bytes
}

// sumsWeight is what a hold takes in the sums of one limit: two integers of a sliding window, and
// less than four of a log.
const sumsWeight = 24

// forever is an end that no charge is behind.
const forever = int64(math.MaxInt64)

// sumsOf are the units of the first n holds, 0 ≤ n ≤ Len, that were charged to a limit at
// instants in [from, to). A sum stops where 64 bits do. Making them takes a look at each hold,
// so the latest are kept: all decisions of a transaction ask for the same.
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

// chargedTo tells of one hold after the other whether it was charged to a limit. Nearly all holds
// of a counter were charged to the same limits, and those that were read share the list of these.
type chargedTo struct {
	id     int64
	limits []int64 // of the last hold
	is     bool
}

func (c *chargedTo) by(h *Hold) bool {
	n := len(h.Limits)
	if c.id == capID { // all that is held counts
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

// open is the units of a limit that holds have which expire after an instant, up to softCap.
func (h *Holds) open(id, at int64) int64 {
	if over := h.expired(at); over > 0 {
		h = holdsOf(h.list[over:])
	}
	return min(h.sumsOf(id, 0, forever)[h.Len()], softCap)
}

// Expire takes the holds that have expired at an instant off the row of the target's i-th counter.
// It gives their units back, and returns them.
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
