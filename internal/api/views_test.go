package api

import (
	"context"
	"testing"

	"quotad/internal/api/serve"
	"quotad/internal/testkit"
)

// While views have all places for reading, and others of the same key wait, an admin's writes
// and hits of customers that are not in memory go on.
func TestViewsLeaveRoomForWrites(t *testing.T) {
	n := newNode(t)
	n.setUp(hourly)
	most := int(n.store.Pool().Config().MaxConns)
	if free := takeAll(n.server.Reading); free != most/2 {
		t.Fatalf("%d places for reading, of %d connections", free, most)
	}
	other := n.key("read")
	answered := make(chan int, 100)
	for range cap(answered) {
		go func() { answered <- n.do("GET", "/v1/customers?limit=1000", "").status }()
	}
	testkit.Eventually(t, "all views wait", func() bool { return n.server.Reading.Waiting() == cap(answered) })
	n.want(201, "PUT", "/v1/customers/new", `{"name":"n","plan":"pro"}`, "If-None-Match", "*")
	n.want(200, "POST", "/v1/hits", `{"customer":"new","meter":"requests"}`)
	n.want(200, "GET", "/readyz", "")
	others := make(chan int)
	go func() { others <- n.do("GET", "/v1/customers/acme", "", "Authorization", other).status }()
	testkit.Eventually(t, "the other key waits", func() bool { return n.server.Reading.Waiting() == cap(answered)+1 })
	n.server.Reading.GiveBack() // one goes to the first key's next view, and then around
	if got := <-others; got != 200 {
		t.Errorf("the other key's view: %d", got)
	}
	for range cap(answered) {
		if got := <-answered; got != 200 {
			t.Errorf("a view: %d", got)
		}
	}
}

// takeAll takes the places that are free, and says how many these are.
func takeAll(places *serve.Turns) (free int) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for places.Take(gone, "") == nil {
		free++
	}
	return free
}

// freeOf is how many places are free.
func freeOf(places *serve.Turns) int {
	free := takeAll(places)
	for range free {
		places.GiveBack()
	}
	return free
}
