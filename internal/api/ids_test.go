package api

import (
	"fmt"
	"strings"
	"testing"
)

// A hit that is sent again with its id is charged once, and answered as at first.
func TestHitsWithIDs(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	first := n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":2,"id":"a"}`)
	if first.json["replayed"] != false {
		t.Errorf("the first: %s", first.text)
	}
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	for _, headers := range [][]string{nil, {"Idempotency-Key", "a"}, {"Idempotency-Key", `"a"`}} {
		body := `{"customer":"acme","meter":"requests","cost":2,"id":"a"}`
		if headers != nil {
			body = `{"customer":"acme","meter":"requests","cost":2}`
		}
		again := n.want(200, "POST", "/v1/hits", body, headers...)
		if again.text != strings.Replace(first.text, `"replayed":false`, `"replayed":true`, 1) || again.header.Get("RateLimit") != first.header.Get("RateLimit") {
			t.Errorf("%v: %s, at first %s", headers, again.text, first.text)
		}
	}
	for _, body := range []string{
		`{"customer":"acme","meter":"requests","cost":1,"id":"a"}`,
		`{"customer":"acme","meter":"requests","cost":2,"attributes":{"a":"b"},"id":"a"}`,
	} {
		if got := n.want(422, "POST", "/v1/hits", body); got.json["type"] != "/problems/id-reused" {
			t.Errorf("%s: %s", body, got.text)
		}
	}
	got := n.want(422, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","id":"a"}`, "Idempotency-Key", "b")
	if at := got.json["errors"].([]any)[0].(map[string]any)["field"]; at != "id" {
		t.Errorf("two ids: %s", got.text)
	}
	// Another customer's ids are its own.
	n.want(201, "PUT", "/v1/customers/initech", `{"name":"x","plan":"pro","timezone":"UTC"}`)
	if got := n.want(200, "POST", "/v1/hits", `{"customer":"initech","meter":"requests","id":"a"}`); got.json["replayed"] != false {
		t.Errorf("of another customer: %s", got.text)
	}
	n.standing("acme", 3, 0)
}

// A refused id is judged again, and one that only looks stores nothing.
func TestRefusedIDsAreJudgedAnew(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":5,"id":"all"}`)
	for range 3 {
		got := n.want(429, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":2,"id":"b"}`)
		if got.json["replayed"] != false || got.json["as_of"] != nil {
			t.Errorf("refused: %s", got.text)
		}
	}
	n.want(201, "PUT", "/v1/customers/acme/overrides/hourly", `{"limit":8}`)
	for _, look := range []string{
		`{"customer":"acme","meter":"requests","cost":2,"id":"b","dry_run":true}`,
		`{"customer":"acme","meter":"requests","cost":0,"id":"all"}`,
	} {
		if got := n.want(200, "POST", "/v1/hits", look); got.json["replayed"] != false {
			t.Errorf("a look: %s", got.text)
		}
	}
	for i, replayed := range []bool{false, true, true} {
		// Under another cost than the refused one: nothing was stored of that.
		if got := n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":3,"id":"b"}`); got.json["replayed"] != replayed {
			t.Errorf("%d: %s", i, got.text)
		}
	}
	n.standing("acme", 8, 0)
}

// Another batch under a key is refused whole, be it longer, shorter or for more customers. A batch of
// which nothing was admitted keeps nothing.
func TestOtherBatchesUnderAKey(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(201, "PUT", "/v1/customers/initech", `{"name":"x","plan":"pro","timezone":"UTC"}`)
	batch := func(costs ...int) string {
		var hits []string
		for _, cost := range costs {
			hits = append(hits, fmt.Sprintf(`{"customer":"acme","meter":"requests","cost":%d}`, cost))
		}
		return `{"hits":[` + strings.Join(hits, ",") + `]}`
	}
	// Of the first batch under each key only the second hit is admitted.
	n.want(200, "POST", "/v1/hits/batch", batch(9, 1), "Idempotency-Key", "k")
	n.standing("acme", 1, 0)
	for _, other := range []string{
		batch(9, 1, 1), batch(9), batch(1), batch(1, 9), batch(1, 1),
		`{"atomic":true,"hits":[{"customer":"acme","meter":"requests","cost":1}]}`,
		`{"hits":[{"customer":"initech","meter":"requests"},{"customer":"acme","meter":"requests"}]}`,
		`{"hits":[{"customer":"initech","meter":"requests"},{"customer":"acme","meter":"requests","id":"own"}]}`,
	} {
		if got := n.want(422, "POST", "/v1/hits/batch", other, "Idempotency-Key", "k"); got.json["type"] != "/problems/id-reused" {
			t.Errorf("%s: %s", other, got.text)
		}
	}
	n.standing("acme", 1, 0)
	n.standing("initech", 0, 0)
	// Of another customer the key is free, and so is one under which nothing was admitted.
	n.want(200, "POST", "/v1/hits/batch", strings.ReplaceAll(batch(2), "acme", "initech"), "Idempotency-Key", "k")
	n.standing("initech", 2, 0)
	n.want(200, "POST", "/v1/hits/batch", batch(9, 9), "Idempotency-Key", "none")
	n.want(200, "POST", "/v1/hits/batch", batch(1), "Idempotency-Key", "none")
	n.standing("acme", 2, 0)
}

// A batch that is sent again with its key charges what was not charged yet.
func TestBatchesWithKeys(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	replayed := func(r reply) (all string) {
		for _, result := range r.json["results"].([]any) {
			r := result.(map[string]any)
			all += fmt.Sprintf("%v%v ", r["status"], r["replayed"])
		}
		return all
	}
	const body = `{"hits":[
		{"customer":"acme","meter":"requests","cost":1},
		{"customer":"acme","meter":"requests","cost":1},
		{"customer":"acme","meter":"requests","cost":1,"id":"own"},
		{"customer":"acme","meter":"requests","cost":0},
		{"customer":"acme","meter":"requests","cost":7},
		{"customer":"nobody","meter":"requests","cost":1}]}`
	for i, want := range []string{
		"<nil>false <nil>false <nil>false <nil>false 429false 404<nil> ",
		"<nil>true <nil>true <nil>true <nil>false 429false 404<nil> ",
	} {
		if got := replayed(n.want(200, "POST", "/v1/hits/batch", body, "Idempotency-Key", `"k"`)); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	n.standing("acme", 3, 0)
	if got := n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","id":"own"}`); got.json["replayed"] != true {
		t.Errorf("a hit's own id: %s", got.text)
	}
	got := n.want(422, "POST", "/v1/hits/batch", `{"hits":[{"customer":"acme","meter":"requests","cost":2}]}`, "Idempotency-Key", `k`)
	if got.json["type"] != "/problems/id-reused" {
		t.Errorf("another batch: %s", got.text)
	}
	// Twice in one batch is once.
	got = n.want(200, "POST", "/v1/hits/batch", `{"hits":[{"customer":"acme","meter":"requests","id":"x"},{"customer":"acme","meter":"requests","id":"x"}]}`)
	if have := replayed(got); have != "<nil>false <nil>true " && have != "<nil>true <nil>false " {
		t.Errorf("twice in one: %s", got.text)
	}
	n.standing("acme", 4, 0)
}

// standing fails unless the customer's first limit stands so.
func (n *node) standing(customer string, used, reserved float64) {
	n.t.Helper()
	got := n.want(200, "GET", "/v1/customers/"+customer+"/quota", "")
	l := got.json["limits"].([]any)[0].(map[string]any)
	if l["used"] != used || l["reserved"] != reserved {
		n.t.Errorf("%s has used %v, of that reserved %v, want %v and %v", customer, l["used"], l["reserved"], used, reserved)
	}
}

// booked fails unless the customer's first meter has this usage in its billing period.
func (n *node) booked(customer string, used float64) {
	n.t.Helper()
	got := n.want(200, "GET", "/v1/customers/"+customer+"/quota", "")
	if m := got.json["meters"].([]any)[0].(map[string]any); m["used"] != used {
		n.t.Errorf("%s's usage is %v, want %v", customer, m["used"], used)
	}
}
