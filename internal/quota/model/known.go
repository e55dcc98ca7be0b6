package model

import (
	"encoding/binary"
	"sync"
	"time"
)

// Known is the row of a customer's own counter as this node last wrote or read it. The stored row
// may be newer at any time: a swap compares the two.
type Known struct {
	Row
	Hour    int64 // start of the hour that the row's units are of, µs
	Counted bool  // the row has units
	Missing bool  // there is no row
	Large   bool  // the row is too large to be kept; the other fields say nothing
}

// Held reports whether reservations hold units of the counter.
func (r *Known) Held() bool {
	_, due := Unmarked(r.State)
	return due != 0 || r.Holds != nil
}

// A state of more than largeState integers is not kept: few would take all of the memory.
const largeState = 84

// copy copies a row into r's own memory. New memory for each hit was most of what hits left to
// the garbage collector.
func (r *Known) copy(of *Known) {
	state := append(r.State[:0], of.State...)
	*r = *of
	r.State, r.Departed = state, nil
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

	withWorker int           // operations on the counter that are with the worker
	contended  time.Duration // on the stopwatch; before that the worker has the counter

	space [2 * BucketLen]int64 // memory of the row's state, with room for two limits
}

// contention is how long the worker keeps a counter after another node has written the row.
// Meanwhile most swaps of the row would be lost.
const contention = 100 * time.Millisecond

// Recall copies the remembered row of the target's own counter into r; knows says whether there
// is one. swap is false while the worker has the counter: later hits follow earlier ones there.
// swap is false of a Large row, too. now is on the stopwatch.
func (t *Target) Recall(r *Known, now time.Duration) (knows, swap bool) {
	k := &t.Base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.there {
		r.copy(&k.row)
	}
	return k.there, k.withWorker == 0 && now >= k.contended && (!k.there || !r.Large)
}

// Keep remembers a copy of a row, unless a later row is remembered. Of a row with long logs it
// remembers only Large: few such rows would take all of the memory. A row with holds is for the
// worker alone: Keep forgets it.
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

// Contended notes that a swap was lost. It forgets the row, which somebody else writes, and gives
// the counter to the worker for the time of contention.
func (t *Target) Contended(now time.Duration) {
	k := &t.Base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	k.there, k.contended = false, now+contention
}

// Locked notes which version and instant the row had when the worker locked it. If these are not
// the remembered ones, another node writes the row, and the worker keeps the counter.
func (t *Target) Locked(version, at int64, now time.Duration) {
	k := &t.Base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.there && !k.row.Large && (k.row.Version != version || k.row.At != at) {
		k.contended = now + contention
	}
}

// HandOver counts operations on the target's counters that are with the worker; −1: no more.
func (t *Target) HandOver(n int) {
	k := &t.Base().known
	k.mu.Lock()
	defer k.mu.Unlock()
	k.withWorker += n
}

// What a target knows of its counter's row, in some twenty bytes: so much is kept of a
// customer for whom there is no room otherwise, and spares its next hit a round trip.

// AppendRow appends what is known of the row of the target's own counter, for LearnRow.
// Nothing, where nothing is known, or more than the buckets of the target's limits: such as
// logs, and buckets of limits that the plan had before. Instants take the fewer bytes the
// nearer they are to since, µs.
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

// LearnRow has the target know what AppendRow appended, with the same since, for a target of
// the same counter. What was appended under another change number, so for other limits
// perhaps, it does not take.
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

// usualAux is what nearly all buckets of the limit have as aux, where that is a large number.
func (l *Limit) usualAux() int64 {
	if l.refills {
		return ratedBy(l.Limit)
	}
	return 0
}
