package serve

import (
	"context"
	"errors"
	"strings"
	"testing"

	"quotad/internal/quota/queue"
)

// Places go to the keys in turn, and to a key's requests in their order. One key's hundred
// waiting requests keep another key's waiting for one of them.
func TestTurnsAreFair(t *testing.T) {
	places := NewTurns(1)
	places.free = 0
	waiting := map[string]*inTurn{}
	for _, who := range []string{"a1", "a2", "a3", "b1", "c1", "b2", "a4"} {
		waiting[who] = places.wait(queue.SenderID(who[:1]))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := places.Take(gone, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has gone: %v", err)
	}
	var order []string
	for range len(waiting) {
		places.GiveBack()
		for who, w := range waiting {
			select {
			case <-w.place:
				order = append(order, who)
			default:
			}
		}
	}
	if got := strings.Join(order, " "); got != "a1 b1 c1 a2 b2 a3 a4" {
		t.Errorf("the order is %s", got)
	}
	places.GiveBack()
	if places.free != 1 || places.Waiting() != 0 {
		t.Errorf("in the end %d are free, and %d wait", places.free, places.Waiting())
	}
}

// A place that comes in the moment in which its request gives up goes to the next one.
func TestTurnThatComesTooLate(t *testing.T) {
	places := NewTurns(1)
	places.free = 0
	late, next := places.wait("a"), places.wait("b")
	places.GiveBack()
	places.leave(late)
	select {
	case <-next.place:
	default:
		t.Error("the place is lost")
	}
	places.leave(new(inTurn)) // b's, given back
	if places.free != 1 || places.Waiting() != 0 {
		t.Errorf("%d are free, and %d wait", places.free, places.Waiting())
	}
}
