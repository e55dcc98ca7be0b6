package api

import (
	"fmt"
	"strings"
	"testing"

	"quotad/internal/api/request"
	"quotad/internal/testkit"
)

func TestRefunds(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":5,"id":"h"}`)
	n.want(429, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	const body = `{"customer":"acme","meter":"requests","cost":2,"id":"r"}`
	first := n.want(200, "POST", "/v1/refunds", body)
	limit := first.json["limits"].([]any)[0].(map[string]any)
	if first.json["refunded"] != 2.0 || first.json["cost"] != 2.0 || first.json["replayed"] != false || limit["used"] != 3.0 || limit["remaining"] != 2.0 {
		t.Errorf("refunded: %s", first.text)
	}
	if first.header.Get("X-RateLimit-Remaining") != "2" || first.header.Get("RateLimit") == "" || first.header.Get("Retry-After") != "" {
		t.Errorf("headers: %v", first.header)
	}
	again := n.want(200, "POST", "/v1/refunds", strings.Replace(body, `,"id":"r"`, "", 1), "Idempotency-Key", `"r"`)
	if again.json["refunded"] != 2.0 || again.json["replayed"] != true || again.json["at"] != first.json["at"] {
		t.Errorf("again: %s", again.text)
	}
	n.standing("acme", 3, 0)
	n.booked("acme", 3)
	if got := n.want(422, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":3,"id":"r"}`); got.json["type"] != "/problems/id-reused" {
		t.Errorf("another refund: %s", got.text)
	}
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":2}`)
	// Of a hit, in parts, and no more than it was charged.
	for i, refunded := range []float64{3, 2, 0} {
		got := n.want(200, "POST", "/v1/refunds", fmt.Sprintf(`{"customer":"acme","meter":"requests","cost":3,"hit":"h","id":"r%d"}`, i))
		if got.json["refunded"] != refunded {
			t.Errorf("part %d: %s", i, got.text)
		}
	}
	n.standing("acme", 0, 0)
	n.booked("acme", 0)
	got := n.want(404, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":3,"hit":"none","id":"r9"}`)
	if !strings.Contains(got.json["detail"].(string), `no admitted hit with the id "none"`) {
		t.Errorf("of no hit: %s", got.text)
	}
}

// TestRefundsAfterAnAdjustment: an adjustment took units off, so usage falls by less than the limits get
// back, and refunded is the amount by which usage fell.
func TestRefundsAfterAnAdjustment(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(`{"name":"l","meter":"requests","algorithm":"fixed_window","limit":100,"window":"1h"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":60}`)
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":-5,"reason":"r","id":"a"}`)
	for range 2 {
		got := n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":60,"id":"r"}`)
		if got.json["refunded"] != 55.0 {
			t.Errorf("usage fell by 55: %s", got.text)
		}
		n.standing("acme", 0, 0)
		n.booked("acme", 0)
	}
}

// What a plan has lost can still be given back; nobody is made by a refund.
func TestRefundsBesideThePlan(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":5,"id":"h"}`)
	n.want(201, "PUT", "/v1/plans/bare", `{"name":"B","currency":"USD","interval":"month","base_price_minor":0,"limits":[],"prices":[]}`)
	n.want(200, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"bare","timezone":"Europe/Berlin","change":"limits_now"}`, "If-Match", "*")
	got := n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":2,"hit":"h","id":"r"}`)
	if got.json["refunded"] != 2.0 || len(got.json["limits"].([]any)) != 0 || got.header.Get("RateLimit") != "" {
		t.Errorf("%s %v", got.text, got.header)
	}
	n.want(200, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","timezone":"Europe/Berlin","change":"limits_now"}`, "If-Match", "*")
	n.booked("acme", 3)
	n.want(404, "POST", "/v1/refunds", `{"customer":"nobody","meter":"requests","cost":2,"id":"r"}`)
	n.want(404, "GET", "/v1/customers/nobody", "")
}

// Seats are given back by refunds, and count at once on every node.
func TestSeatsComeBack(t *testing.T) {
	t.Parallel()
	a := newNode(t)
	b := newNodeOn(t, a.database)
	a.setUp(`{"name":"seats","meter":"requests","algorithm":"allocation","limit":3}`)
	a.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":3}`)
	for range 3 {
		b.want(429, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	}
	a.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":1,"id":"r"}`)
	testkit.Eventually(t, "the other node", func() bool { return b.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`).status == 200 })
	a.standing("acme", 3, 0)
}

func TestBadRefunds(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":5}`)
	for body, want := range map[string]string{
		``: "400 ", `{`: "400 ", `[]`: "422 ", `{}`: "422 customer meter cost id",
		`{"customer":"acme","meter":"requests","cost":1}`:                                                     "422 id",
		`{"customer":"acme","meter":"requests","cost":1,"id":""}`:                                             "422 id",
		`{"customer":"acme","meter":"requests","cost":0,"id":"r"}`:                                            "422 cost",
		`{"customer":"acme","meter":"requests","cost":-1,"id":"r"}`:                                           "422 cost",
		`{"customer":"acme","meter":"requests","cost":1.5,"id":"r"}`:                                          "422 cost",
		`{"customer":"acme","meter":"requests","cost":1000000000000000,"id":"r"}`:                             "422 cost",
		`{"customer":"acme","meter":"requests","cost":1,"hit":"","id":"r"}`:                                   "422 hit",
		`{"customer":"acme","meter":"requests","cost":1,"hit":7,"id":"r"}`:                                    "422 hit",
		`{"customer":"acme","meter":"requests","cost":1,"hit":"a\nb","id":"r"}`:                               "422 hit",
		`{"customer":"acme","meter":"requests","cost":1,"id":"r","dry_run":true}`:                             "422 dry_run",
		`{"customer":"acme","meter":"requests","cost":1,"id":"r","attributes":{"a b":"x"}}`:                   "422 attributes.a b",
		`{"customer":"nobody","meter":"requests","cost":1,"id":"r"}`:                                          "404 ",
		`{"customer":"acme","meter":"none","cost":1,"id":"r"}`:                                                "404 ",
		`{"customer":"acme","meter":"requests","cost":1,"id":"` + strings.Repeat("x", request.MaxBody) + `"}`: "413 ",
	} {
		if got := n.faultOf("POST", "/v1/refunds", body); got != want {
			t.Errorf("%.90s: %s, want %s", body, got, want)
		}
	}
	if got := n.faultOf("POST", "/v1/refunds?deny_status=200", `{}`); got != "422 deny_status" {
		t.Errorf("a parameter: %s", got)
	}
	n.want(415, "POST", "/v1/refunds", `{}`, "Content-Type", "text/plain")
	n.standing("acme", 5, 0)
}
