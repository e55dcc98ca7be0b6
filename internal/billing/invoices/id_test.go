package invoices

import (
	"regexp"
	"testing"
)

// Ids of invoices are UUIDs of version 7: they come in the order of their milliseconds, and differ
// within one.
func TestNewID(t *testing.T) {
	const now, step = int64(1_780_000_000_000_000), 1000
	shape := regexp.MustCompile(`^019e7044-8800-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := make(map[string]bool)
	for range 1000 {
		id := newID(now + step/2)
		if !shape.MatchString(id) || !validID(id) {
			t.Fatalf("%s is not of version 7 and of its millisecond", id)
		}
		if next := newID(now + step); next <= id {
			t.Fatalf("%s is not behind %s", next, id)
		}
		seen[id] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d of 1000 ids differ", len(seen))
	}
}
