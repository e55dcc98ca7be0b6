package quota

import (
	"sync"
	"time"
)

// knownRow is the row of a customer's own counter as this node last wrote or read it. It may
// be old at any time: a swap makes sure.
type knownRow struct {
	row
	hour    int64 // start of the hour that its units are of, µs
	counted bool  // it has units
	missing bool  // it is not there
	large   bool  // it is too large to be kept, and nothing else is said of it
}

// held reports whether reservations hold units of the counter.
func (r *knownRow) held() bool {
	_, due := unmarked(r.state)
	return due != 0 || len(r.holds) > 0
}

// A state of more than largeState integers is not kept: few would take all of the memory.
const largeState = 64

// copy makes r another row in r's own memory: one that came with each hit was most of what
// hits left to the garbage collector.
func (r *knownRow) copy(of *knownRow) {
	state := append(r.state[:0], of.state...)
	*r = *of
	r.state = state
}

// empty is r's memory without a row, unless that is more than is worth keeping.
func (r *knownRow) empty() knownRow {
	if cap(r.state) > largeState {
		return knownRow{}
	}
	return knownRow{row: row{state: r.state[:0]}}
}

// recollection is what a target knows of its own counter: the row, and who writes it.
type recollection struct {
	mu    sync.Mutex
	there bool
	row   knownRow

	withLedger int           // operations on the counter that are with the ledger
	contended  time.Duration // until then, on the stopwatch, the ledger has the counter

	space [2 * bucketLen]int64 // what the row's state is of, where two limits have room
}

// contention is how long the ledger keeps a counter that another node has written: a swap
// would mostly be lost there.
const contention = 100 * time.Millisecond

// Recall copies the row of the target's own counter, if it is known. swap is false while the
// ledger has the counter: hits follow those that went there before. now is on the stopwatch.
func (t *Target) Recall(r *knownRow, now time.Duration) (knows, swap bool) {
	k := &t.base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.there {
		r.copy(&k.row)
	}
	return k.there, k.withLedger == 0 && now >= k.contended && (!k.there || !r.large)
}

// Keep keeps a copy of a row, unless a later one is known, but for one with holds, which the
// ledger writes. Of one with long logs it keeps that it is such a one: few would take all of the
// memory.
func (t *Target) Keep(r *knownRow) {
	switch k := &t.base().known; {
	case r.held():
		t.Forget()
	case len(r.state) > largeState:
		k.set(&knownRow{large: true})
	default:
		k.set(r)
	}
}

func (k *recollection) set(r *knownRow) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.there && k.row.version > r.version && k.row.at >= r.at && !r.large {
		return
	}
	if k.row.state == nil {
		k.row.state = k.space[:0]
	}
	k.row.copy(r)
	k.there = true
}

// Forget forgets the row.
func (t *Target) Forget() {
	k := &t.base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	k.there = false
}

// Contended says that a swap was lost: somebody else writes the row.
func (t *Target) Contended(now time.Duration) {
	k := &t.base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	k.there, k.contended = false, now+contention
}

// Locked says which version and instant the row had when the ledger locked it.
func (t *Target) Locked(version, at int64, now time.Duration) {
	k := &t.base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.there && !k.row.large && (k.row.version != version || k.row.at != at) {
		k.contended = now + contention
	}
}

// HandOver counts operations on the target's counters that are with the ledger; −1: no more.
func (t *Target) HandOver(n int) {
	k := &t.base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	k.withLedger += n
}
