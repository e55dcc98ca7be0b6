package queue

import "testing"

// Senders that come again and again, one row at a time, keep nobody waiting: a new line's turn is
// the last one.
func TestNewLinesComeLast(t *testing.T) {
	var q Lines[*thing]
	for _, it := range things("a", 100, 1) {
		q.Add(it)
	}
	for _, from := range []SenderID{"c", "d"} {
		q.Add(&thing{from: from})
	}
	since := 0
	for range 150 {
		q.Take(1, func(it *thing) bool {
			if since++; it.from == "a" {
				since = 0
			} else {
				q.Add(&thing{from: it.from}) // it comes again at once
			}
			return true
		})
		if since > 2 {
			t.Fatalf("%d others went before", since)
		}
	}
}

// What leaves its line is not served, and the others go on in their order.
func TestLeaveALine(t *testing.T) {
	var q Lines[*thing]
	a, b := things("a", 3, 1), things("b", 1, 1)
	for _, it := range append(a, b...) {
		q.Add(it)
	}
	if !q.Remove(a[1]) || q.Remove(a[1]) || !q.Remove(b[0]) || q.Remove(b[0]) {
		t.Error("what waits leaves once")
	}
	var left []*thing
	q.Take(SharedRows, func(it *thing) bool {
		left = append(left, it)
		return true
	})
	if len(left) != 2 || left[0] != a[0] || left[1] != a[2] || q.Hits() != 0 || len(q.bySender) != 0 {
		t.Errorf("%v went, and %d wait", left, q.Hits())
	}
}
