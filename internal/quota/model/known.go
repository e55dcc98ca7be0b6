package model

import (
	"sync"
	"time"
)

// Known is the row of a customer's own counter as this node last wrote or read it. It may
// be old at any time: a swap makes sure.
type Known struct {
	Row
	Hour    int64 // start of the hour that its units are of, µs
	Counted bool  // it has units
	Missing bool  // it is not there
	Large   bool  // it is too large to be kept, and nothing else is said of it
}

// Held reports whether reservations hold units of the counter.
func (r *Known) Held() bool {
	_, due := Unmarked(r.State)
	return due != 0 || len(r.Holds) > 0
}

// A state of more than largeState integers is not kept: few would take all of the memory.
const largeState = 64

// copy makes r another row in r's own memory: one that came with each hit was most of what
// hits left to the garbage collector.
func (r *Known) copy(of *Known) {
	state := append(r.State[:0], of.State...)
	*r = *of
	r.State = state
}

// Empty is r's memory without a row, unless that is more than is worth keeping.
func (r *Known) Empty() Known {
	if cap(r.State) > largeState {
		return Known{}
	}
	return Known{Row: Row{State: r.State[:0]}}
}

// recollection is what a target knows of its own counter: the row, and who writes it.
type recollection struct {
	mu    sync.Mutex
	there bool
	row   Known

	withLedger int           // operations on the counter that are with the ledger
	contended  time.Duration // until then, on the stopwatch, the ledger has the counter

	space [2 * BucketLen]int64 // what the row's state is of, where two limits have room
}

// contention is how long the ledger keeps a counter that another node has written: a swap
// would mostly be lost there.
const contention = 100 * time.Millisecond

// Recall copies the row of the target's own counter, if it is known. swap is false while the
// ledger has the counter: hits follow those that went there before. now is on the stopwatch.
func (t *Target) Recall(r *Known, now time.Duration) (knows, swap bool) {
	k := &t.Base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.there {
		r.copy(&k.row)
	}
	return k.there, k.withLedger == 0 && now >= k.contended && (!k.there || !r.Large)
}

// Keep keeps a copy of a row, unless a later one is known, but for one with holds, which the
// ledger writes. Of one with long logs it keeps that it is such a one: few would take all of the
// memory.
func (t *Target) Keep(r *Known) {
	switch k := &t.Base().known; {
	case r.Held():
		t.Forget()
	case len(r.State) > largeState:
		k.set(&Known{Large: true})
	default:
		k.set(r)
	}
}

func (k *recollection) set(r *Known) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.there && k.row.Version > r.Version && k.row.At >= r.At && !r.Large {
		return
	}
	if k.row.State == nil {
		k.row.State = k.space[:0]
	}
	k.row.copy(r)
	k.there = true
}

// Forget forgets the row.
func (t *Target) Forget() {
	k := &t.Base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	k.there = false
}

// Contended says that a swap was lost: somebody else writes the row.
func (t *Target) Contended(now time.Duration) {
	k := &t.Base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	k.there, k.contended = false, now+contention
}

// Locked says which version and instant the row had when the ledger locked it.
func (t *Target) Locked(version, at int64, now time.Duration) {
	k := &t.Base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.there && !k.row.Large && (k.row.Version != version || k.row.At != at) {
		k.contended = now + contention
	}
}

// HandOver counts operations on the target's counters that are with the ledger; −1: no more.
func (t *Target) HandOver(n int) {
	k := &t.Base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	k.withLedger += n
}
