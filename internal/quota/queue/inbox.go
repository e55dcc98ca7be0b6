package queue

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"quotad/internal/quota/session"
)

// SenderID names the sender of requests. They wait in a line of their own, and lines are served
// in turn, so that one sender's load does not become another's failure. The API gives the id of
// the API key. The empty name is that of quotad itself.
type SenderID string

// Item is what waits in an Inbox: a hit, or an operation of a ledger.
type Item interface {
	Sender() SenderID
	Hits() int // how many hits it is, at least 1
	Rows() int // how many rows a flight needs for it, at least 1
}

// SharedRows is how many rows a flight has at most while several senders wait, or one item that
// needs more by itself. A sender that comes next then waits for a short flight only.
const SharedRows = 250

// sharedFor is how many flights stay as short after several senders waited. A caller that waits
// for its answer before it sends again comes within these, and would else wait for a long flight
// each time.
const sharedFor = 16

// Inbox is the queue of a lane or a ledger: callers add to it, and one goroutine takes flights
// from it. A flight is a lane's batch, or a ledger's transaction.
//
// Each sender has a line, first come, first served. The lines that are not empty form a ring.
// A flight goes around the ring and takes one row of each line in turn.
type Inbox[T Item] struct {
	wake chan struct{} // holds one token when there is something to do
	over *atomic.Int64 // hits that were turned away, since their sender had its share

	Mu      sync.Mutex
	Stopped bool
	hits    int                   // that wait
	ring    []*line[T]            // no line is empty
	short   int                   // how many flights stay short, see sharedFor
	at      int                   // index of the line whose turn is next; len(ring) is 0
	lines   map[SenderID]*line[T] // the ring by senders while it has several; else empty
	spare   []*line[T]            // empty ones, to be used again
}

// line is what one sender has waiting.
type line[T Item] struct {
	sender SenderID
	items  []T
	taken  int  // items in front that the flight has; 0 between flights
	hits   int  // that wait
	credit int  // rows that it may take at its turn
	passed bool // the flight has no place for its first item
	back   []T  // to be put in front
}

// mostSpare bounds the lines that are kept to be used again.
const mostSpare = 4

// NewInbox is an empty one, which adds the hits to over that it turns away since their sender
// has its share of the queue.
func NewInbox[T Item](over *atomic.Int64) Inbox[T] {
	return Inbox[T]{wake: make(chan struct{}, 1), over: over, lines: make(map[SenderID]*line[T])}
}

// Enqueue adds items of one sender behind those of its that wait; most bounds how many hits
// wait. A sender may wait while it has fewer hits in the queue than there is room left. So one
// sender alone has half of the queue, and there is room for one that comes next.
//
// Enqueue returns how many items it added, and why not the others: ErrShare when the sender has
// its share, ErrBusy when nothing more can wait, ErrStopped when the engine stops.
func (b *Inbox[T]) Enqueue(most int, items ...T) (added int, err error) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if b.Stopped {
		return 0, session.ErrStopped
	}
	l, idle := b.lineOf(items[0].Sender()), b.hits == 0
	for ; added < len(items); added++ {
		n := items[added].Hits()
		if l.hits+n > most-b.hits-n+1 {
			err = b.turnAway(l, items[added:])
			break
		}
		l.items = append(l.items, items[added])
		l.hits += n
		b.hits += n
	}
	if len(l.items) == 0 {
		b.leave(len(b.ring) - 1) // it came just now
	}
	if idle && added > 0 {
		b.Signal()
	}
	return added, err
}

// turnAway says why items cannot wait behind those in a line.
func (b *Inbox[T]) turnAway(l *line[T], items []T) error {
	if l.hits == 0 {
		return session.ErrBusy
	}
	for _, it := range items {
		b.over.Add(int64(it.Hits()))
	}
	return session.ErrShare
}

// lineOf is a sender's line, which is made at the end of the ring if nothing of it waits. While
// one sender waits alone, its name is compared and not looked up.
func (b *Inbox[T]) lineOf(s SenderID) *line[T] {
	switch len(b.ring) {
	case 0:
	case 1:
		if b.ring[0].sender == s {
			return b.ring[0]
		}
		b.lines[b.ring[0].sender] = b.ring[0]
	default:
		if l := b.lines[s]; l != nil {
			return l
		}
	}
	l := b.empty()
	l.sender = s
	if b.ring = append(b.ring, l); len(b.ring) > 1 {
		b.lines[s] = l
	}
	return l
}

// empty is a line without items.
func (b *Inbox[T]) empty() *line[T] {
	n := len(b.spare)
	if n == 0 {
		return new(line[T])
	}
	l := b.spare[n-1]
	b.spare = b.spare[:n-1]
	return l
}

// leave takes the i-th line, which is empty, out of the ring.
func (b *Inbox[T]) leave(i int) {
	l := b.ring[i]
	if b.ring = slices.Delete(b.ring, i, i+1); len(b.ring) > 1 {
		delete(b.lines, l.sender)
	} else {
		clear(b.lines)
	}
	clear(l.items)
	if *l = (line[T]{items: l.items[:0], back: l.back}); len(b.spare) < mostSpare {
		b.spare = append(b.spare, l)
	}
}

// Take makes a flight: it hands items to load until there are no more, or the flight is full.
// load returns false for an item that does not fit into the flight; it takes at least the first
// one. The item then stays, and the rest of its line.
//
// While one sender waits alone, and has for some flights, load alone says when the flight is full.
func (b *Inbox[T]) Take(load func(T) bool) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if len(b.ring) > 1 {
		b.short = sharedFor
		b.takeAround(load)
		return
	}
	room := math.MaxInt
	if b.short > 0 {
		b.short--
		room = SharedRows
	}
	for _, l := range b.ring { // one or none
		for l.taken < len(l.items) {
			rows := l.items[l.taken].Rows() // load may change it
			if l.taken > 0 && rows > room || !b.pop(l, load) {
				break
			}
			room -= rows
		}
		if l.close(); len(l.items) == 0 {
			b.leave(0)
		}
	}
	b.at = len(b.ring) // who comes next is first
}

// takeAround takes from several lines. A line's credit grows by one row each time around, and an
// item goes when the credit pays for it: thus all get as many rows, whatever their items need.
// The flight ends at an item that needs more rows than are left. A line whose item load has no
// place for is passed over. Whichever of these was first begins the next flight.
func (b *Inbox[T]) takeAround(load func(T) bool) {
	room, passed := SharedRows, 0
	var first *line[T]
	for room > 0 && passed < len(b.ring) {
		if b.at >= len(b.ring) {
			b.at = 0
		}
		l := b.ring[b.at]
		if l.passed {
			b.at++
			continue
		}
		rows, others := l.items[l.taken].Rows(), len(b.ring)-passed > 1
		if l.credit++; l.credit < rows && others {
			b.at++
			continue
		}
		full := rows > room && room < SharedRows
		if full || !b.pop(l, load) {
			if l.credit--; first == nil {
				first = l
			}
			if full {
				break
			}
			l.passed = true
			passed++
			continue
		}
		room -= rows
		l.credit = max(0, l.credit-rows)
		if l.taken < len(l.items) {
			b.at++
		} else {
			b.leave(b.at)
		}
	}
	for i, l := range b.ring {
		l.close()
		if l.passed = false; l == first {
			b.at = i
		}
	}
}

// pop hands a line's first item to load.
func (b *Inbox[T]) pop(l *line[T], load func(T) bool) bool {
	hits := l.items[l.taken].Hits() // load may change it
	if !load(l.items[l.taken]) {
		return false
	}
	l.taken++
	l.hits -= hits
	b.hits -= hits
	return true
}

// close ends a flight: what it has taken is no longer in the line.
func (l *line[T]) close() {
	if l.taken > 0 {
		rest := copy(l.items, l.items[l.taken:])
		clear(l.items[rest:])
		l.items, l.taken = l.items[:rest], 0
	}
}

// PutBack puts items of a flight back, each in front of its sender's line, in their order. They
// have waited: no bound holds for them.
func (b *Inbox[T]) PutBack(items ...T) {
	if len(items) == 0 {
		return
	}
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for _, it := range items {
		l := b.lineOf(it.Sender())
		l.back = append(l.back, it)
		l.hits += it.Hits()
		b.hits += it.Hits()
	}
	for _, l := range b.ring {
		if len(l.back) > 0 {
			l.items = slices.Insert(l.items, 0, l.back...)
			clear(l.back)
			l.back = l.back[:0]
		}
	}
}

// PutBehind moves the items that are late to the end of their lines, in their order.
func (b *Inbox[T]) PutBehind(late func(T) bool) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for _, l := range b.ring {
		var last []T
		l.items = slices.DeleteFunc(l.items, func(it T) bool {
			if !late(it) {
				return false
			}
			last = append(last, it)
			return true
		})
		l.items = append(l.items, last...)
	}
}

// Queued is how many hits wait.
func (b *Inbox[T]) Queued() int {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.hits
}

// Signal wakes Run.
func (b *Inbox[T]) Signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Stop lets Run end once nothing waits.
func (b *Inbox[T]) Stop() {
	b.Mu.Lock()
	b.Stopped = true
	b.Mu.Unlock()
	b.Signal()
}

// Run calls next while anything waits, until Stop.
func (b *Inbox[T]) Run(next func()) {
	for {
		b.Mu.Lock()
		waiting, stopped := b.hits > 0, b.Stopped
		b.Mu.Unlock()
		switch {
		case waiting:
			next()
		case stopped:
			return
		default:
			<-b.wake
		}
	}
}
