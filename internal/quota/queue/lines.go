package queue

import "slices"

// SenderID names the sender of requests. They wait in a line of their own, and lines are served
// in turn, so that one sender's load does not become another's failure. The API gives the id of
// the API key. The empty name is that of quotad itself.
type SenderID string

// Item is what waits in an Inbox: a hit, or an operation of a worker.
type Item interface {
	comparable
	Sender() SenderID
	Hits() int // how many hits it is, at least 1
	Rows() int // how many rows a batch needs for it, at least 1
}

// Lines are what waits, by senders, served by deficit round robin. Each sender has a line, its queue,
// first come, first served. The lines that are not empty form a ring, and are served in turn. So
// nobody waits for more than one turn of each other sender. A new line's turn is the last one. The zero value is empty. It is not safe for
// concurrent use.
type Lines[T Item] struct {
	hits     int                   // that wait
	ring     []*line[T]            // no line is empty
	at       int                   // index of the line whose turn is next; len(ring) is 0
	bySender map[SenderID]*line[T] // the ring by senders while it has several; else empty
	spare    []*line[T]            // empty ones, to be used again
}

// line is what one sender has waiting.
type line[T Item] struct {
	sender SenderID
	items  []T
	taken  int  // items in front that the batch has; 0 between batches
	hits   int  // that wait
	credit int  // rows that it may take at its turn: the deficit counter, whose quantum is one row
	passed bool // the batch has no place for its first item
	back   []T  // to be put in front
}

// mostSpare bounds the lines that are kept to be used again.
const mostSpare = 4

// Hits is how many wait.
func (q *Lines[T]) Hits() int { return q.hits }

// Add adds an item to the end of its sender's line.
func (q *Lines[T]) Add(it T) { q.add(q.lineOf(it.Sender()), it) }

func (q *Lines[T]) add(l *line[T], it T) {
	n := it.Hits()
	l.items = append(l.items, it)
	l.hits += n
	q.hits += n
}

// Remove takes an item out of its line. It is false when the item does not wait.
func (q *Lines[T]) Remove(it T) bool {
	for i, l := range q.ring {
		if n := slices.Index(l.items, it); n >= 0 {
			l.items = slices.Delete(l.items, n, n+1)
			l.hits -= it.Hits()
			q.hits -= it.Hits()
			if len(l.items) == 0 {
				q.leave(i)
			}
			return true
		}
	}
	return false
}

// lineOf is a sender's line, which is made if nothing of it waits: its turn is the last. While
// one sender waits alone, its name is compared and not looked up.
func (q *Lines[T]) lineOf(s SenderID) *line[T] {
	switch len(q.ring) {
	case 0:
	case 1:
		if q.ring[0].sender == s {
			return q.ring[0]
		}
		if q.bySender == nil {
			q.bySender = make(map[SenderID]*line[T])
		}
		q.bySender[q.ring[0].sender] = q.ring[0]
	default:
		if l := q.bySender[s]; l != nil {
			return l
		}
	}
	l := q.empty()
	l.sender = s
	q.ring = slices.Insert(q.ring, q.at, l)
	if q.at++; len(q.ring) > 1 {
		q.bySender[s] = l
	}
	return l
}

// empty is a line without items.
func (q *Lines[T]) empty() *line[T] {
	n := len(q.spare)
	if n == 0 {
		return new(line[T])
	}
	l := q.spare[n-1]
	q.spare = q.spare[:n-1]
	return l
}

// leave takes the i-th line, which is empty, out of the ring.
func (q *Lines[T]) leave(i int) {
	l := q.ring[i]
	if i < q.at {
		q.at--
	}
	if q.ring = slices.Delete(q.ring, i, i+1); len(q.ring) > 1 {
		delete(q.bySender, l.sender)
	} else {
		clear(q.bySender)
	}
	clear(l.items)
	if *l = (line[T]{items: l.items[:0], back: l.back}); len(q.spare) < mostSpare {
		q.spare = append(q.spare, l)
	}
}

// Take hands items to load, in turn, that need at most so many rows, or one that needs more. It ends
// when load has no place for an item. load takes at least the first one. What it has no place for
// stays, and the rest of that line.
func (q *Lines[T]) Take(room int, load func(T) bool) {
	if len(q.ring) > 1 {
		q.takeAround(room, load)
		return
	}
	for _, l := range q.ring { // one or none
		for l.taken < len(l.items) {
			rows := l.items[l.taken].Rows() // load may change it
			if l.taken > 0 && rows > room || !q.pop(l, load) {
				break
			}
			room -= rows
		}
		if l.close(); len(l.items) == 0 {
			q.leave(0)
		}
	}
}

// takeAround takes from several lines. A line's credit grows by one row each time around, and an
// item goes when the credit pays for it: thus all get as many rows, whatever their items need.
// It ends at an item that needs more rows than are left. A line whose item load has no place for is
// passed over. Whichever of these was first is the first one the next time.
func (q *Lines[T]) takeAround(most int, load func(T) bool) {
	room, passed := most, 0
	var first *line[T]
	for room > 0 && passed < len(q.ring) {
		if q.at >= len(q.ring) {
			q.at = 0
		}
		l := q.ring[q.at]
		if l.passed {
			q.at++
			continue
		}
		rows, others := l.items[l.taken].Rows(), len(q.ring)-passed > 1
		if l.credit++; l.credit < rows && others {
			q.at++
			continue
		}
		full := rows > room && room < most
		if full || !q.pop(l, load) {
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
			q.at++
		} else {
			q.leave(q.at)
		}
	}
	for i, l := range q.ring {
		l.close()
		if l.passed = false; l == first {
			q.at = i
		}
	}
}

// pop hands a line's first item to load.
func (q *Lines[T]) pop(l *line[T], load func(T) bool) bool {
	hits := l.items[l.taken].Hits() // load may change it
	if !load(l.items[l.taken]) {
		return false
	}
	l.taken++
	l.hits -= hits
	q.hits -= hits
	return true
}

// close ends a batch: what it has taken is no longer in the line.
func (l *line[T]) close() {
	if l.taken > 0 {
		rest := copy(l.items, l.items[l.taken:])
		clear(l.items[rest:])
		l.items, l.taken = l.items[:rest], 0
	}
}

// putBack puts items that were taken in front of their lines, in their order.
func (q *Lines[T]) putBack(items []T) {
	for _, it := range items {
		l := q.lineOf(it.Sender())
		l.back = append(l.back, it)
		l.hits += it.Hits()
		q.hits += it.Hits()
	}
	for _, l := range q.ring {
		if len(l.back) > 0 {
			l.items = slices.Insert(l.items, 0, l.back...)
			clear(l.back)
			l.back = l.back[:0]
		}
	}
}

// putLast moves the items that are late to the end of their lines, in their order.
func (q *Lines[T]) putLast(late func(T) bool) {
	for _, l := range q.ring {
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
