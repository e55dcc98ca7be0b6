package model

import (
	"encoding/binary"
	"sync"
	"time"
)

// Known is the row of a customer's own counter as this node last wrote or read it. The stored row may be newer at
// any time, so a swap compares the two.
type Known struct {
	Row
	Hour    int64 // the start of the hour of the row's units, µs
	Counted bool  // the row has units
	Missing bool  // there is no row
	Large   bool  // the row is too large to be kept; the other fields are meaningless
}

// Held reports whether reservations hold units of the counter.
func (r *Known) Held() bool {
	_, due := Unmarked(r.State)
	return due != 0 || r.Holds != nil
}

// largeState is the maximum length of a remembered state. A few longer states would take all of the memory.
const largeState = 84

// copy copies a row into r's own memory. Most of the garbage of hits was new memory for each row.
func (r *Known) copy(of *Known) {
	state := append(r.State[:0], of.State...)
	*r = *of
	r.State, r.Departed = state, nil
}

// Empty returns r's memory without a row, or no memory if it is too large to be kept.
func (r *Known) Empty() Known {
	if cap(r.State) > largeState {
		return Known{}
	}
	return Known{Row: Row{State: r.State[:0]}}
}

// recollection contains a target's knowledge of its own counter: the row, and whether lanes or the worker write
// the row.
type recollection struct {
	mu    sync.Mutex
	there bool
	row   Known

	withWorker int           // the number of operations on the counter that the worker has
	contended  time.Duration // a time on the stopwatch until which the worker has the counter

	space [2 * BucketLen]int64 // the memory of the row's state, with room for two limits
}

// contention is the time for which the worker keeps a counter after another node has written the row. During that
// time, most swaps of the row would fail.
const contention = 100 * time.Millisecond

// Recall copies the remembered row of the target's own counter into r. knows reports whether a row is remembered.
// swap is false while the worker has the counter, because later hits must follow earlier hits there. swap is also
// false for a Large row. now is a time on the stopwatch.
func (t *Target) Recall(r *Known, now time.Duration) (knows, swap bool) {
	k := &t.Base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.there {
		r.copy(&k.row)
	}
	return k.there, k.withWorker == 0 && now >= k.contended && (!k.there || !r.Large)
}

// Keep remembers a copy of a row, unless a later row is remembered. For a row with long logs it remembers only
// Large, because a few such rows would take all of the memory. Only the worker may charge a row with holds, so
// Keep forgets such a row.
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

// Contended records that a swap failed. It forgets the row, because another node writes the row, and reserves the
// counter for the worker for the time of contention.
func (t *Target) Contended(now time.Duration) {
	k := &t.Base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	k.there, k.contended = false, now+contention
}

// Locked records the version and the instant of the row when the worker locked it. If they differ from the
// remembered version and instant, another node writes the row, and the worker keeps the counter.
func (t *Target) Locked(version, at int64, now time.Duration) {
	k := &t.Base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.there && !k.row.Large && (k.row.Version != version || k.row.At != at) {
		k.contended = now + contention
	}
}

// HandOver adds n to the number of operations on the target's counters that the worker has. A negative n means
// that the operations have ended.
func (t *Target) HandOver(n int) {
	k := &t.Base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	k.withWorker += n
}

// The following functions store a target's knowledge of its counter's row in some twenty bytes. These bytes are
// kept for a customer whose target does not fit in memory, and save a round trip for the customer's next hit.

// AppendRow appends the known row of the target's own counter, in the form that LearnRow reads. It appends nothing
// if no row is known. It also appends nothing if the row contains more than the buckets of the target's limits,
// such as logs and buckets of earlier limits of the plan. Instants near since, µs, take fewer bytes.
func (t *Target) AppendRow(b []byte, since int64) []byte {
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	r, limits := &t.known.row, t.Counters[0].Limits
	if !t.known.there || r.Large || !r.Counted || r.Change != t.Change || len(r.State) != BucketLen*len(limits) {
		return b
	}
	if hour, _ := t.RunningHour(r.At); hour != r.Hour {
		return b
	}
	before, m := len(b), t.moment(r.At)
	b = binary.AppendVarint(b, r.Change)
	b = binary.AppendVarint(b, r.At-since)
	b = binary.AppendVarint(b, r.Version)
	for i, l := range limits {
		stored := r.State[BucketLen*i:][:BucketLen]
		if l.kept == inLog || stored[0] != l.BucketID(m) {
			return b[:before]
		}
		b = binary.AppendVarint(b, stored[1])
		b = binary.AppendVarint(b, stored[2]-l.usualAux())
	}
	return b
}

// LearnRow remembers the row that AppendRow appended with the same since for a target of the same counter. It
// ignores a row that was appended under another change number, because the limits may differ.
func (t *Target) LearnRow(b []byte, since int64) {
	next := func() (n int64) {
		n, size := binary.Varint(b)
		b = b[max(0, size):]
		return n
	}
	if len(b) == 0 || next() != t.Change {
		return
	}
	k := &t.known
	k.mu.Lock()
	defer k.mu.Unlock()
	r := Known{Row: Row{Change: t.Change, At: next() + since, Version: next(), State: k.space[:0]}, Counted: true}
	m := t.moment(r.At)
	for _, l := range t.Counters[0].Limits {
		r.State = l.append(r.State, bucket{next(), next() + l.usualAux()}, m)
	}
	r.Hour, _ = t.RunningHour(r.At)
	k.there, k.row = true, r
}

// usualAux returns the aux of nearly all buckets of the limit if that aux is a large number, and otherwise 0.
func (l *Limit) usualAux() int64 {
	if l.refills {
		return ratedBy(l.Limit)
	}
	return 0
}
