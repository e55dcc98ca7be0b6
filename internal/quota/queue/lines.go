package queue

import "slices"

// SenderID identifies the sender of requests. Each sender has a line of its own, and lines are served in turn, so
// that one sender's load does not cause another sender's failure. The API passes the id of the API key. The empty
// id is quotad itself.
type SenderID string

// Item is an element of an Inbox: a hit, or an operation of a worker.
type Item interface {
	comparable
	Sender() SenderID
	Hits() int // the number of hits, at least 1
	Rows() int // the number of rows that a batch needs for the item, at least 1
}

// Lines contains the waiting items by sender, and serves them by deficit round robin. Each sender has a line,
// which is a queue in order of arrival. The nonempty lines form a ring and are served in turn, so each sender
// waits for at most one turn of every other sender. A new line has the last turn. The zero value is empty. Lines
// is not safe for concurrent use.
type Lines[T Item] struct {
	hits     int                   // the number of waiting hits
	ring     []*line[T]            // no line is empty
	at       int                   // the index of the line whose turn is next; len(ring) means 0
	bySender map[SenderID]*line[T] // the ring by sender while it has several lines; else empty
	spare    []*line[T]            // empty lines for reuse
}

// line contains the waiting items of one sender.
type line[T Item] struct {
	sender SenderID
	items  []T
	taken  int  // the number of items in front that the batch has taken; 0 between batches
	hits   int  // the number of waiting hits
	credit int  // the number of rows that the line may take at its turn: the deficit counter, whose quantum is one row
	passed bool // the batch has no room for the line's first item
	back   []T  // items to be put in front
}

// mostSpare is the maximum number of empty lines that are kept for reuse.
const mostSpare = 4

// Hits returns the number of waiting hits.
func (q *Lines[T]) Hits() int { return q.hits }

// Add adds an item to the end of its sender's line.
func (q *Lines[T]) Add(it T) { q.add(q.lineOf(it.Sender()), it) }

func (q *Lines[T]) add(l *line[T], it T) {
	n := it.Hits()
	l.items = append(l.items, it)
	l.hits += n
	q.hits += n
}

// Remove removes an item from its line. It returns false if the item does not wait.
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

// lineOf returns a sender's line. If the sender has no waiting items, lineOf adds a line whose turn is the last.
// While one sender waits alone, lineOf compares the sender's id instead of looking it up.
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

// empty returns a line without items.
func (q *Lines[T]) empty() *line[T] {
	n := len(q.spare)
	if n == 0 {
		return new(line[T])
	}
	l := q.spare[n-1]
	q.spare = q.spare[:n-1]
	return l
}

// leave removes the i-th line, which must be empty, from the ring.
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

// Take calls load with one item after another, as long as the items together need at most room rows. If the
// first item needs more rows, Take passes only this item. Take ends when load has no room for an item. load must
// accept at least the first item. An item that load rejects stays in its line with the rest of that line.
func (q *Lines[T]) Take(room int, load func(T) bool) {
	if len(q.ring) > 1 {
		q.takeAround(room, load)
		return
	}
	for _, l := range q.ring { // the ring has at most one line
		for l.taken < len(l.items) {
			rows := l.items[l.taken].Rows() // load may change the number
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

// takeAround takes items from several lines. A line's credit grows by one row in each round, and an item is taken
// when the credit covers its rows. Thus all senders receive the same number of rows, whatever their items need.
//
// takeAround ends at an item that needs more rows than are left. It skips a line if load rejects the line's item.
// The next call begins with the first line that was skipped or ended the call.
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

// pop passes a line's first item to load.
func (q *Lines[T]) pop(l *line[T], load func(T) bool) bool {
	hits := l.items[l.taken].Hits() // load may change the number
	if !load(l.items[l.taken]) {
		return false
	}
	l.taken++
	l.hits -= hits
	q.hits -= hits
	return true
}

// close ends a batch by removing the taken items from the line.
func (l *line[T]) close() {
	if l.taken > 0 {
		rest := copy(l.items, l.items[l.taken:])
		clear(l.items[rest:])
		l.items, l.taken = l.items[:rest], 0
	}
}

// putBack returns taken items to the front of their lines, in their order.
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

// putLast moves the items for which late returns true to the end of their lines, in their order.
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
