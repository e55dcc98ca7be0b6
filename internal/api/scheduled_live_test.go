package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit/pgtest"
)

// In real time, on two nodes that write nothing at that moment: the instant of each hit says which plan
// judged it.
func TestScheduledInRealTime(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n := scheduledNode(t, url)
	nodes := []*node{n, newNodeOn(t, url)}
	at := n.nowOf().Add(time.Hour).UTC().Truncate(time.Second)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"C","plan":"daily","billing_anchor":"`+at.AddDate(0, 0, -3).Format("2006-01-02T15:04:05")+`"}`)
	if got := n.scheduled(201, `{"plan":"free"}`); got.json["at"] != at.Format(time.RFC3339) {
		t.Fatal(got.text)
	}
	check(t, nodes[1].server.Catalog.CatchUp(t.Context(), n.server.Catalog.Applied()))
	ways := []struct{ path, body string }{
		{"/v1/hits", `{"customer":"acme","meter":"calls"}`},
		{"/v1/hits", `{"customer":"acme","meter":"calls","id":"ID"}`},
		{"/v1/hits", `{"customer":"acme","meter":"calls","dry_run":true}`},
		{"/v1/hits", `{"customer":"acme","meter":"calls","cost":0}`},
		{"/v1/hits/batch", `{"hits":[{"customer":"acme","meter":"calls"}]}`},
		{"/v1/hits/batch", `{"hits":[{"customer":"acme","meter":"calls","id":"b-ID"}]}`},
		{"/v1/hits/batch", `{"hits":[{"customer":"acme","meter":"calls","dry_run":true}]}`},
		{"/v1/hits/batch", `{"atomic":true,"hits":[{"customer":"acme","meter":"calls"}]}`},
		{"/v1/reservations", `{"customer":"acme","meter":"calls","cost":1,"ttl_ms":60000}`},
	}
	seen := map[bool]int{}
	for i := 0; seen[true] < 60; i++ {
		if i == 3*len(ways) {
			n.leap(at.Add(-200 * time.Millisecond))
		}
		way := ways[i%len(ways)]
		got := nodes[i/len(ways)%2].do("POST", way.path, strings.ReplaceAll(way.body, "ID", fmt.Sprint(i)))
		if results, batch := got.json["results"].([]any); batch {
			got.json = results[0].(map[string]any)
		}
		if got.status != 200 && got.status != 201 && got.status != 429 {
			t.Fatalf("hit %d: %s", i, got.text)
		}
		judged, err := time.Parse(time.RFC3339Nano, got.json["at"].(string))
		check(t, err)
		limit := got.json["limits"].([]any)[0].(map[string]any)["limit"]
		after := !judged.Before(at)
		if want := map[bool]float64{false: 10, true: 100}[after]; limit != want {
			t.Fatalf("hit %d at %v was judged by a limit of %v, the change is at %v", i, judged, limit, at)
		}
		if seen[after]++; after && seen[after] == 1 && got.status == 429 {
			t.Errorf("the first hit of the new plan: %s", got.text)
		}
		if !after {
			if got.status == 429 || got.json["allowed"] == false {
				if wait, left := got.json["retry_after_ms"].(float64), float64(at.Sub(judged).Microseconds()); wait > left/1000+1 {
					t.Fatalf("a wait of %v ms, the change is in %v µs", wait, left)
				}
			}
		}
	}
	t.Logf("%d hits before the change", seen[false])
}

// In an outage, too, the plan that counts is the one of the instant, and the node has it in memory.
func TestScheduledInAnOutage(t *testing.T) {
	t.Parallel()
	pg := pgtest.Server(t)
	n := scheduledNode(t, pg.URL())
	at := n.nowOf().Add(time.Hour).UTC().Truncate(time.Second)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"C","plan":"daily","billing_anchor":"`+at.AddDate(0, 0, -3).Format("2006-01-02T15:04:05")+`"}`)
	n.scheduled(201, `{"plan":"free"}`)
	n.call(200, 1, 10)
	pg.Stop()
	hit := func() reply {
		return n.do("POST", "/v1/hits", `{"customer":"acme","meter":"calls","cost":9}`)
	}
	var got reply
	for range 50 { // one may have been on its way
		if got = hit(); got.status == 200 || got.status == 429 {
			break
		}
	}
	if got.json["degraded"] != true {
		t.Fatalf("%d %s", got.status, got.text)
	}
	admitted := map[bool]int{}
	for i := 0; admitted[true] < 3; i++ {
		if i == 5 {
			n.leap(at.Add(-200 * time.Millisecond))
		}
		got := hit()
		judged, err := time.Parse(time.RFC3339Nano, got.json["at"].(string))
		check(t, err)
		after := !judged.Before(at)
		switch {
		case got.json["degraded"] != true:
			t.Fatalf("%d %s", got.status, got.text)
		case got.status == 200:
			admitted[after]++
		case after:
			t.Fatalf("refused by the plan of before: %s", got.text)
		}
	}
	if admitted[false] > 0 {
		t.Errorf("%d more were admitted by the plan of before", admitted[false])
	}
}
