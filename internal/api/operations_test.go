package api

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// What is sent many times at once under one id, to two nodes, is done once; the others
// hear of it, or that it is still under way.
func TestDuplicatesAtOnce(t *testing.T) {
	t.Parallel()
	a := newNode(t)
	b := newNodeOn(t, a.database)
	a.setUp(`{"name":"many","meter":"requests","algorithm":"fixed_window","limit":1000,"window":"365d"}`)
	a.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":100}`)
	reservations := map[any]bool{}
	for i, request := range [][3]string{
		{"/v1/hits", `{"customer":"acme","meter":"requests","cost":3,"id":"x"}`, "200"},
		{"/v1/refunds", `{"customer":"acme","meter":"requests","cost":5,"id":"x"}`, "200"},
		{"/v1/reservations", `{"customer":"acme","meter":"requests","cost":7,"ttl_ms":60000,"id":"x"}`, "201"},
		{"/v1/hits/batch", `{"atomic":true,"hits":[{"customer":"acme","meter":"requests","cost":11,"id":"y"}]}`, "200"},
	} {
		var mu sync.Mutex
		outcomes := map[string]int{}
		var sending sync.WaitGroup
		for sender := range 24 {
			n := []*node{a, b}[sender%2]
			sending.Go(func() {
				got := n.do("POST", request[0], request[1])
				result := got.json
				if results, ok := got.json["results"].([]any); ok {
					result = results[0].(map[string]any)
				}
				mu.Lock()
				defer mu.Unlock()
				outcomes[fmt.Sprint(got.status, " ", result["replayed"])]++
				if i == 2 && got.status == 201 {
					reservations[got.json["id"]] = true
				}
			})
		}
		sending.Wait()
		if outcomes[request[2]+" false"] != 1 || outcomes[request[2]+" true"]+outcomes["409 <nil>"] != 23 {
			t.Errorf("%s: %v", request[0], outcomes)
		}
	}
	if len(reservations) != 1 {
		t.Errorf("reservations: %v", reservations)
	}
	a.standing("acme", 100+3-5+7+11, 7)
	a.booked("acme", 100+3-5+11)
}

// A reservation is committed and released on any node.
func TestReservationsOnAnotherNode(t *testing.T) {
	t.Parallel()
	a := newNode(t)
	b := newNodeOn(t, a.database)
	a.setUp(hourly)
	first, second := a.held(2, time.Minute), a.held(2, time.Minute)
	b.want(200, "POST", first+"/commit", `{"cost":1}`)
	b.want(204, "DELETE", second, "")
	for _, n := range []*node{a, b} {
		if got := n.want(200, "POST", first+"/commit", `{"cost":1}`); got.json["replayed"] != true {
			t.Errorf("again: %s", got.text)
		}
		n.standing("acme", 1, 0)
	}
	// And of nobody who is archived.
	third := a.held(2, time.Minute)
	a.want(204, "DELETE", "/v1/customers/acme", "")
	a.want(404, "POST", third+"/commit", `{"cost":1}`)
	a.want(404, "DELETE", third, "")
}

// Buckets of an attribute's value are held, given back and refunded with the others.
func TestOperationsByAttribute(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly + `,{"name":"by-ip","meter":"requests","algorithm":"token_bucket","limit":4,"window":"365d","per":"ip"}`)
	of := func(ip string, own, value float64) {
		t.Helper()
		limits := n.want(200, "GET", "/v1/customers/acme/quota?attr.ip="+ip, "").json["limits"].([]any)
		if a, b := limits[0].(map[string]any)["used"], limits[1].(map[string]any)["used"]; a != own || b != value {
			t.Errorf("%s: used %v and %v, want %v and %v", ip, a, b, own, value)
		}
	}
	const asked = `"customer":"acme","meter":"requests","attributes":{"ip":"192.0.2.1"}`
	held := n.want(201, "POST", "/v1/reservations", `{`+asked+`,"cost":4,"ttl_ms":60000}`).json["id"].(string)
	of("192.0.2.1", 4, 4)
	of("192.0.2.2", 4, 0)
	got := n.want(429, "POST", "/v1/reservations", `{`+asked+`,"ttl_ms":60000}`)
	if fmt.Sprint(got.json["violated-policies"]) != "[by-ip]" {
		t.Errorf("refused: %s", got.text)
	}
	if got := n.want(200, "POST", "/v1/reservations/"+held+"/commit", `{"cost":3}`); len(got.json["limits"].([]any)) != 2 {
		t.Errorf("committed: %s", got.text)
	}
	of("192.0.2.1", 3, 3)
	n.want(200, "POST", "/v1/hits", `{`+asked+`,"id":"h"}`)
	n.want(200, "POST", "/v1/refunds", `{`+asked+`,"cost":2,"id":"r"}`)
	of("192.0.2.1", 2, 2)
	n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":1,"hit":"h","id":"s"}`)
	of("192.0.2.1", 1, 1)
	of("192.0.2.2", 1, 0)
}
