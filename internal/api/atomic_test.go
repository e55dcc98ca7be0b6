package api

import (
	"fmt"
	"strings"
	"testing"

	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
	"quotad/internal/testkit/pgtest"
)

// setUpPair is setUp with a second meter and a second customer.
func (n *node) setUpPair() {
	n.t.Helper()
	n.want(201, "PUT", "/v1/meters/tokens", `{"unit":"token"}`)
	n.setUp(hourly + `,{"name":"tokens","meter":"tokens","algorithm":"token_bucket","limit":100,"window":"1h"}`)
	n.want(201, "PUT", "/v1/customers/initech", `{"name":"x","plan":"pro","timezone":"UTC"}`)
}

func TestAtomicBatches(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUpPair()
	got := n.want(200, "POST", "/v1/hits/batch", `{"atomic":true,"hits":[
		{"customer":"acme","meter":"requests","cost":3},
		{"customer":"initech","meter":"tokens","cost":100},
		{"customer":"acme","meter":"requests","cost":1},
		{"customer":"acme","meter":"tokens","cost":0}]}`)
	for _, r := range got.json["results"].([]any) {
		if r.(map[string]any)["allowed"] != true {
			t.Errorf("admitted: %s", got.text)
		}
	}
	n.standing("acme", 4, 0)
	// One of them is refused: so are all.
	got = n.want(200, "POST", "/v1/hits/batch", `{"atomic":true,"hits":[
		{"customer":"acme","meter":"requests","cost":1},
		{"customer":"initech","meter":"tokens","cost":1},
		{"customer":"initech","meter":"requests","cost":5}]}`)
	results := got.json["results"].([]any)
	for i, violated := range []string{"[]", "[tokens]", "[]"} {
		r := results[i].(map[string]any)
		others := strings.Contains(r["detail"].(string), "another one of its atomic batch")
		if r["allowed"] != false || r["status"] != 429.0 || fmt.Sprint(r["violated-policies"]) != violated || others != (violated == "[]") ||
			r["type"] != respond.QuotaExceeded {
			t.Errorf("%d: %v", i, r)
		}
	}
	n.standing("acme", 4, 0)
	n.standing("initech", 0, 0)
	// Each would fit, and both do not.
	got = n.want(200, "POST", "/v1/hits/batch", `{"atomic":true,"hits":[
		{"customer":"acme","meter":"requests","cost":1},{"customer":"acme","meter":"requests","cost":1}]}`)
	if strings.Contains(got.text, `"allowed":true`) || !strings.Contains(got.text, `"violated-policies":["hourly"]`) {
		t.Errorf("together too much: %s", got.text)
	}
	n.standing("acme", 4, 0)
	if got := n.want(200, "POST", "/v1/hits/batch", `{"atomic":true,"hits":[]}`); got.text != `{"results":[]}` {
		t.Errorf("of nothing: %s", got.text)
	}
}

// What is wrong with hits of an atomic batch is one problem, and nothing is charged.
func TestFaultsOfAtomicBatches(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUpPair()
	n.want(201, "PUT", "/v1/meters/other", `{"unit":"x"}`)
	const good = `{"customer":"acme","meter":"requests"}`
	for bad, fields := range map[string]string{
		`{"customer":"nobody","meter":"requests"}`: "hits[1].customer",
		`{"customer":"acme","meter":"none"}`:       "hits[1].meter",
		`{"customer":"acme","meter":"other"}`:      "hits[1].meter",
		`{"customer":"acme","meter":"requests","cost":-1},{"customer":"acme","meter":"requests","kost":1},7`: "hits[1].cost hits[2].kost hits[3]",
		`{"customer":"nobody","meter":"requests"},{"customer":"acme","meter":"none"}`:                        "hits[1].customer hits[2].meter",
		`{"meter":"requests","cost":1.5}`: "hits[1].cost",
	} {
		got := n.want(422, "POST", "/v1/hits/batch", `{"atomic":true,"hits":[`+good+`,`+bad+`]}`)
		var at []string
		for _, e := range got.json["errors"].([]any) {
			at = append(at, e.(map[string]any)["field"].(string))
		}
		if strings.Join(at, " ") != fields || got.json["type"] != "/problems/invalid" {
			t.Errorf("%s: %s, want %s", bad, got.text, fields)
		}
	}
	got := n.want(422, "POST", "/v1/hits/batch", `{"atomic":true,"hits":[`+strings.Repeat(`{},`, 999)+`7]}`)
	if len(got.json["errors"].([]any)) != problem.MaxErrors || len(got.text) > 20_000 {
		t.Errorf("%d bytes: %.1000s", len(got.text), got.text)
	}
	n.standing("acme", 0, 0)
}

// An atomic batch that is sent again is charged once; under its ids another one is not.
func TestAtomicBatchesWithIDs(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUpPair()
	const body = `{"atomic":true,"hits":[{"customer":"acme","meter":"requests","cost":2},{"customer":"initech","meter":"tokens","cost":60,"id":"own"}]}`
	for i, replayed := range []bool{false, true, true} {
		got := n.want(200, "POST", "/v1/hits/batch", body, "Idempotency-Key", "k")
		for _, r := range got.json["results"].([]any) {
			if r := r.(map[string]any); r["allowed"] != true || r["replayed"] != replayed {
				t.Errorf("%d: %s", i, got.text)
			}
		}
	}
	n.standing("acme", 2, 0)
	got := n.want(422, "POST", "/v1/hits/batch", strings.Replace(body, `"cost":60`, `"cost":61`, 1), "Idempotency-Key", "k")
	if got.json["type"] != "/problems/id-reused" {
		t.Errorf("another: %s", got.text)
	}
	n.standing("acme", 2, 0)
}

// In an outage nothing of an atomic batch is let in, whatever limits say.
func TestOperationsInAnOutage(t *testing.T) {
	t.Parallel()
	pg := pgtest.Server(t)
	n := newNodeOn(t, pg.URL())
	n.setUp(hourly)
	made := n.want(201, "POST", "/v1/reservations", `{"customer":"acme","meter":"requests","ttl_ms":60000}`).json["id"].(string)
	n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":1,"id":"r"}`)
	n.want(404, "POST", "/v1/reservations/rsv_x/commit", `{"cost":1}`)
	pg.Stop()
	for _, request := range [][2]string{
		{"/v1/hits/batch", `{"atomic":true,"hits":[{"customer":"acme","meter":"requests"}]}`},
		{"/v1/refunds", `{"customer":"acme","meter":"requests","cost":1,"id":"s"}`},
		{"/v1/reservations", `{"customer":"acme","meter":"requests","ttl_ms":60000}`},
		{"/v1/reservations/" + made + "/commit", `{"cost":1}`},
	} {
		var got reply
		for range 20 { // the first may have been on its way to the old server
			if got = n.do("POST", request[0], request[1]); got.json["type"] == "/problems/database-unavailable" {
				break
			}
		}
		if got.status != 503 || got.json["type"] != "/problems/database-unavailable" || got.header.Get("Retry-After") != "1" ||
			!strings.Contains(got.json["detail"].(string), "nothing was charged. Send it again in a second (Retry-After)") {
			t.Errorf("%s: %d %s", request[0], got.status, got.text)
		}
	}
	if got := n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests","id":"h"}`); got.status != 200 || got.json["degraded"] != true {
		t.Errorf("a hit with an id: %d %s", got.status, got.text)
	}
}
