package api

import (
	"context"
	"errors"
	"strings"
	"testing"

	"quotad/internal/quota/queue"
)

// takeAll takes the places that are free.
func takeAll(t *turns) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = 0
}

// Places go to the keys in turn, and to a key's requests in their order. One key's hundred
// waiting requests keep another key's waiting for one of them.
func TestTurnsAreFair(t *testing.T) {
	places := newTurns(1)
	takeAll(places)
	waiting := map[string]*inTurn{}
	for _, who := range []string{"a1", "a2", "a3", "b1", "c1", "b2", "a4"} {
		waiting[who] = places.wait(queue.SenderID(who[:1]))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := places.take(gone, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has gone: %v", err)
	}
	var order []string
	for range len(waiting) {
		places.giveBack()
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
	places.giveBack()
	if places.free != 1 || waitingIn(places) != 0 {
		t.Errorf("in the end %d are free, and %d wait", places.free, waitingIn(places))
	}
}

// A place that comes in the moment in which its request gives up goes to the next one.
func TestTurnThatComesTooLate(t *testing.T) {
	places := newTurns(1)
	takeAll(places)
	late, next := places.wait("a"), places.wait("b")
	places.giveBack()
	places.leave(late)
	select {
	case <-next.place:
	default:
		t.Error("the place is lost")
	}
	places.leave(new(inTurn)) // b's, given back
	if places.free != 1 || waitingIn(places) != 0 {
		t.Errorf("%d are free, and %d wait", places.free, waitingIn(places))
	}
}

// While views have all places for reading, and others of the same key wait, an admin's writes
// and hits of customers that are not in memory go on.
func TestViewsLeaveRoomForWrites(t *testing.T) {
	n := newNode(t)
	n.setUp(hourly)
	if most := int(n.store.Pool().Config().MaxConns); n.server.reading.free != most/2 {
		t.Fatalf("%d places for reading, of %d connections", n.server.reading.free, most)
	}
	takeAll(n.server.reading)
	other := n.key("read")
	answered := make(chan int, 100)
	for range cap(answered) {
		go func() { answered <- n.do("GET", "/v1/customers?limit=1000", "").status }()
	}
	eventually(t, "all views wait", func() bool { return waitingIn(n.server.reading) == cap(answered) })
	n.want(201, "PUT", "/v1/customers/new", `{"name":"n","plan":"pro"}`, "If-None-Match", "*")
	n.want(200, "POST", "/v1/hits", `{"customer":"new","meter":"requests"}`)
	n.want(200, "GET", "/readyz", "")
	others := make(chan int)
	go func() { others <- n.do("GET", "/v1/customers/acme", "", "Authorization", other).status }()
	eventually(t, "the other key waits", func() bool { return waitingIn(n.server.reading) == cap(answered)+1 })
	n.server.reading.giveBack() // one goes to the first key's next view, and then around
	if got := <-others; got != 200 {
		t.Errorf("the other key's view: %d", got)
	}
	for range cap(answered) {
		if got := <-answered; got != 200 {
			t.Errorf("a view: %d", got)
		}
	}
}

// waitingIn is how many requests wait for a place.
func waitingIn(t *turns) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting.Hits()
}
