package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit/pgtest"
)

// capOf is what the quota says of a customer's cap: limit, used, remaining and reserved.
func (n *node) capOf(customer string) string {
	n.t.Helper()
	for _, one := range n.want(200, "GET", "/v1/customers/"+customer+"/quota", "").json["limits"].([]any) {
		if l := one.(map[string]any); l["name"] == "cap" {
			return fmt.Sprint(l["limit"], " ", l["used"], " ", l["remaining"], " ", l["reserved"])
		}
	}
	return "none"
}

// hit sends a hit of a cost, and says what became of it: its status, and what refuses it.
func (n *node) capHit(customer string, cost int, more string) string {
	n.t.Helper()
	got := n.do("POST", "/v1/hits", fmt.Sprintf(`{"customer":%q,"meter":"requests","cost":%d%s}`, customer, cost, more))
	if violated, ok := got.json["violated-policies"]; ok {
		return fmt.Sprint(got.status, " ", violated)
	}
	return fmt.Sprint(got.status)
}

func TestCapsAreWritten(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	const path = "/v1/customers/acme/caps/requests"
	n.want(404, "GET", path, "")
	n.want(404, "DELETE", path, "")
	// 3 are included, and one costs a cent: 53 units cost 50 cents.
	if got := n.want(201, "PUT", path, `{"amount_minor":50}`).json; got["units"] != 53.0 || got["amount_minor"] != 50.0 {
		t.Errorf("%v", got)
	}
	n.want(200, "PUT", path, `{"amount_minor":50}`)
	if got := n.want(200, "GET", path, "").json; got["units"] != 53.0 {
		t.Errorf("%v", got)
	}
	if got := n.want(200, "GET", "/v1/customers/acme/caps", "").json["items"].([]any); len(got) != 1 {
		t.Errorf("%v", got)
	}
	n.want(201, "PUT", "/v1/meters/free", `{"unit":"request"}`)
	n.want(201, "PUT", "/v1/meters/seats", `{"unit":"seat","kind":"level"}`)
	for body, want := range map[string]string{
		path + " {}":                                              "422 amount_minor",
		path + ` {"amount_minor":-1}`:                             "422 amount_minor",
		path + ` {"amount_minor":1000000000000000}`:               "422 amount_minor",
		path + ` {"amount_minor":"5"}`:                            "422 amount_minor",
		"/v1/customers/acme/caps/free {\"amount_minor\":5}":       "422 meter",
		"/v1/customers/acme/caps/nobody {\"amount_minor\":5}":     "422 meter",
		"/v1/customers/acme/caps/seats {\"amount_minor\":5}":      "422 meter",
		"/v1/customers/nobody/caps/requests {\"amount_minor\":5}": "404 ",
	} {
		at, body, _ := strings.Cut(body, " ")
		if got := n.faultOf("PUT", at, body); got != want {
			t.Errorf("%s %s: %s, want %s", at, body, got, want)
		}
	}
	plan := `{"name":"Other","currency":"USD","interval":"month","base_price_minor":0,"limits":[` + strings.Replace(hourly, "hourly", "cap", 1) + `]}`
	if got := n.faultOf("PUT", "/v1/plans/other", plan); got != "422 limits[0].name" {
		t.Errorf("a limit with the name of caps: %s", got)
	}
	n.want(204, "DELETE", path, "")
	if got := n.capOf("acme"); got != "none" {
		t.Errorf("%s", got)
	}
}

const pricedPlan = `{"name":"Priced","currency":"USD","interval":"month","base_price_minor":0,"meters":["requests"],
	"prices":[{"meter":"requests","model":"per_unit","unit_price":"1"}]}`

// capped makes a customer whose requests cost a dollar each, with a cap of dollars.
func (n *node) capped(customer, more string, dollars int) {
	n.t.Helper()
	n.do("PUT", "/v1/meters/requests", `{"unit":"request"}`)
	n.do("PUT", "/v1/plans/priced", pricedPlan)
	n.want(201, "PUT", "/v1/customers/"+customer, `{"name":"A","plan":"priced"`+more+`}`)
	n.raise(customer, dollars)
}

func (n *node) raise(customer string, dollars int) {
	n.t.Helper()
	got := n.do("PUT", "/v1/customers/"+customer+"/caps/requests", fmt.Sprintf(`{"amount_minor":%d}`, 100*dollars))
	if got.json["units"] != float64(dollars) {
		n.t.Fatalf("%d %s", got.status, got.text)
	}
}

// TestCapsJudge: each way to ask keeps a cap.
func TestCapsJudge(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.capped("acme", "", 10)
	steps := func(all ...string) {
		t.Helper()
		for i := 0; i < len(all); i += 2 {
			if all[i] != all[i+1] {
				t.Errorf("step %d: %s, want %s", i/2, all[i], all[i+1])
			}
		}
	}
	steps(
		n.capOf("acme"), "10 0 10 0",
		n.capHit("acme", 3, ""), "200",
		n.capHit("acme", 11, ""), "429 [cap]",
		n.capHit("acme", 8, `,"dry_run":true`), "429 [cap]",
		n.capHit("acme", 7, `,"dry_run":true`), "200",
		n.capHit("acme", 8, `,"id":"a"`), "429 [cap]",
		n.capHit("acme", 2, `,"id":"a"`), "200",
		n.capHit("acme", 2, `,"id":"a"`), "200", // again
		n.capOf("acme"), "10 5 5 0",
	)
	hit := func(cost int) string { return fmt.Sprintf(`{"customer":"acme","meter":"requests","cost":%d}`, cost) }
	batch := func(atomic bool, costs ...int) (all string) {
		var hits []string
		for _, c := range costs {
			hits = append(hits, hit(c))
		}
		got := n.want(200, "POST", "/v1/hits/batch", fmt.Sprintf(`{"atomic":%v,"hits":[%s]}`, atomic, strings.Join(hits, ",")))
		for _, r := range got.json["results"].([]any) {
			all += fmt.Sprint(r.(map[string]any)["allowed"], " ")
		}
		return all
	}
	steps(
		batch(true, 3, 3), "false false ",
		batch(true, 1, 1), "true true ",
		batch(false, 2, 3, 1), "true false true ",
		n.capOf("acme"), "10 10 0 0",
		n.capHit("acme", 1, ""), "429 [cap]",
		n.capHit("acme", 1, ""), "429 [cap]", // from memory
	)
	n.raise("acme", 12)
	steps(n.capHit("acme", 2, ""), "200", n.capHit("acme", 1, ""), "429 [cap]")
	n.raise("acme", 5)
	steps(n.capHit("acme", 1, ""), "429 [cap]", n.capOf("acme"), "5 12 0 0", n.capHit("acme", 4, `,"overrun":true`), "200", n.capOf("acme"), "5 16 0 0")
	n.raise("acme", 30)
	reserve := func(cost int, id string) reply {
		return n.do("POST", "/v1/reservations", fmt.Sprintf(`{"customer":"acme","meter":"requests","cost":%d,"ttl_ms":60000,"id":%q}`, cost, id))
	}
	first, over := reserve(10, "r1"), reserve(5, "r2")
	if first.status != 201 || over.status != 429 || fmt.Sprint(over.json["violated-policies"]) != "[cap]" {
		t.Fatalf("%s, %s", first.text, over.text)
	}
	steps(n.capOf("acme"), "30 26 4 10", n.capHit("acme", 5, ""), "429 [cap]", n.capHit("acme", 1, ""), "200", n.capOf("acme"), "30 27 3 10")
	one := "/v1/reservations/" + first.json["id"].(string)
	n.want(409, "POST", one+"/commit", `{"cost":14}`)
	n.want(200, "POST", one+"/commit", `{"cost":12}`)
	steps(n.capOf("acme"), "30 29 1 0")
	second := reserve(1, "r3")
	steps(n.capOf("acme"), "30 30 0 1")
	n.want(204, "DELETE", "/v1/reservations/"+second.json["id"].(string), "")
	steps(n.capOf("acme"), "30 29 1 0", n.capHit("acme", 1, `,"id":"last"`), "200", n.capHit("acme", 1, ""), "429 [cap]")

	// What moves usage without a hit.
	n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":1,"hit":"last","id":"back"}`)
	steps(n.capOf("acme"), "30 29 1 0")
	n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":2,"id":"back again"}`)
	steps(n.capOf("acme"), "30 27 3 0", n.capHit("acme", 3, ""), "200", n.capHit("acme", 1, ""), "429 [cap]")
	adjust := func(cost int, id string) {
		t.Helper()
		n.want(201, "POST", "/v1/customers/acme/adjustments", fmt.Sprintf(`{"meter":"requests","cost":%d,"reason":"r","id":%q}`, cost, id))
	}
	adjust(-4, "a1")
	steps(n.capOf("acme"), "30 26 4 0", n.capHit("acme", 4, ""), "200", n.capHit("acme", 1, ""), "429 [cap]")
	adjust(3, "a2")
	n.raise("acme", 34)
	steps(n.capOf("acme"), "34 33 1 0", n.capHit("acme", 1, ""), "200", n.capHit("acme", 1, ""), "429 [cap]")
}

// TestCapsThroughPeriods: a cap begins again with each period, by what prices that one.
func TestCapsThroughPeriods(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	clock := func(now string) { n.do("PUT", "/v1/test-clocks/t", `{"now":"`+now+`"}`) }
	clock("2026-01-01T00:00:00Z")
	n.capped("acme", `,"test_clock":"t"`, 10)
	step := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	full := func(what string, units int) {
		t.Helper()
		if units > 1 { // first one that fits: nobody has counted the period yet
			step(what, n.capHit("acme", units-1, ""), "200")
			step(what, n.capHit("acme", 2, ""), "429 [cap]")
		}
		step(what, n.capHit("acme", 1, ""), "200")
		step(what, n.capHit("acme", 1, ""), "429 [cap]")
	}
	full("January", 10)
	got := n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":11}`)
	if got.json["retry_after_ms"] != 31*24*3600e3 {
		t.Errorf("%s", got.text)
	}
	clock("2026-01-31T23:59:59.999999Z")
	step("the last instant of January", n.capHit("acme", 1, ""), "429 [cap]")
	clock("2026-02-01T00:00:00Z")
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":2,"reason":"r","id":"early"}`)
	step("adjusted before the first hit", n.capOf("acme"), "10 2 8 0")
	full("February", 8)

	// What is held counts in each period until it ends.
	clock("2026-02-28T23:59:59Z")
	n.raise("acme", 14)
	held := n.want(201, "POST", "/v1/reservations", `{"customer":"acme","meter":"requests","cost":4,"ttl_ms":60000}`)
	step("held in February", n.capOf("acme"), "14 14 0 4")
	clock("2026-03-01T00:00:10Z")
	step("held in March", n.capOf("acme"), "14 4 10 4")
	full("March, with what is held", 10)
	n.want(200, "POST", "/v1/reservations/"+held.json["id"].(string)+"/commit", `{"cost":3}`)
	step("committed in March", n.capOf("acme"), "14 13 1 0")
	full("March, after the commit", 1)

	// A reservation that expires gives its units back.
	n.raise("acme", 20)
	n.want(201, "POST", "/v1/reservations", `{"customer":"acme","meter":"requests","cost":6,"ttl_ms":60000}`)
	step("held", n.capHit("acme", 1, ""), "429 [cap]")
	if got := n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":1}`); got.json["retry_after_ms"] != 60e3 {
		t.Errorf("%s", got.text)
	}
	clock("2026-03-01T00:01:10Z")
	full("expired", 6)

	// Prices, and plans at once.
	n.want(201, "PUT", "/v1/customers/acme/prices/requests", `{"model":"per_unit","unit_price":"2","included":1}`)
	step("a price of the next period", n.capOf("acme"), "20 20 0 0")
	clock("2026-04-01T00:00:00Z")
	full("April, by the customer's own price", 11)
	n.want(201, "PUT", "/v1/plans/cheap", strings.Replace(pricedPlan, `"unit_price":"1"`, `"unit_price":"0.10"`, 1))
	n.want(204, "DELETE", "/v1/customers/acme/prices/requests", "")
	clock("2026-04-16T00:00:00Z")
	n.want(200, "PUT", "/v1/customers/acme", `{"name":"A","plan":"cheap","test_clock":"t","change":"now"}`, "If-Match", "*")
	step("another plan at once", n.capOf("acme"), "200 0 200 0")
	full("another plan at once", 200)
	n.want(200, "POST", "/v1/imports", `{"id":"i1","customer":"acme","meter":"requests","cost":5,"at":"2026-04-15T00:00:00Z"}`, "Content-Type",
		"application/x-ndjson")
	step("imported into the period before", n.capOf("acme"), "200 200 0 0")
	n.want(200, "POST", "/v1/imports", `{"id":"i2","customer":"acme","meter":"requests","cost":5,"at":"2026-04-16T00:00:00Z"}`, "Content-Type",
		"application/x-ndjson")
	step("imported into this one", n.capOf("acme"), "200 205 0 0")
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":-10,"reason":"r","id":"a1","at":"2026-04-15T00:00:00Z"}`)
	step("adjusted before", n.capOf("acme"), "200 205 0 0")
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":-205,"reason":"r","id":"a2"}`)
	step("adjusted", n.capOf("acme"), "200 0 200 0")
	full("adjusted", 200)

	// A trial costs nothing, and has no cap.
	n.capped("bolt", `,"test_clock":"t"`, 10)
	n.want(200, "PUT", "/v1/customers/bolt/billing", `{"buyer":{"name":"B","address":[]},"taxes":[],"trial_ends_at":"2026-04-20T00:00:00Z"}`)
	step("in a trial", n.capHit("bolt", 1000, ""), "200")
	step("in a trial", n.capOf("bolt"), "none")
	if got := n.want(200, "GET", "/v1/customers/bolt/caps/requests", "").json; got["units"] != nil || got["reason"] != "no-bound" {
		t.Errorf("%v in a trial", got)
	}
	clock("2026-04-20T00:00:00Z")
	step("after the trial", n.capHit("bolt", 11, ""), "429 [cap]")
	step("after the trial", n.capHit("bolt", 10, ""), "200")
	step("after the trial", n.capHit("bolt", 1, ""), "429 [cap]")
	if got := n.want(200, "GET", "/v1/customers/bolt/caps/requests", "").json; got["units"] == nil || got["reason"] != nil {
		t.Errorf("%v after the trial", got)
	}
	n.want(204, "DELETE", "/v1/customers/bolt", "")
	if got := n.want(200, "GET", "/v1/customers/bolt/caps/requests", "").json; got["units"] != nil || got["reason"] != "no-period" {
		t.Errorf("%v of an archived customer", got)
	}
}

// TestCapsWhenTheClockGoesBack sets a test clock back from a period whose cap is full to a period whose cap
// has room. A counter never goes back, so hits are booked in the later period, and its cap refuses them.
func TestCapsWhenTheClockGoesBack(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	clock := func(now string) { n.do("PUT", "/v1/test-clocks/t", `{"now":"`+now+`"}`) }
	clock("2026-03-02T00:00:00Z")
	n.capped("acme", `,"test_clock":"t"`, 10)
	step := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	step("all of March", n.capHit("acme", 10, `,"id":"march"`), "200")
	for _, later := range []string{"2026-04-02T00:00:00Z", "2027-02-02T00:00:00Z"} {
		clock(later)
		step("all of "+later, n.capHit("acme", 10, ""), "200")
		if later < "2027" {
			n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":10,"hit":"march","id":"back"}`)
		}
		clock("2026-03-15T00:00:00Z")
		step("the quota after "+later, n.capOf("acme"), "10 10 0 0")
		step("one after "+later, n.capHit("acme", 1, ""), "429 [cap]")
		step("six with an id after "+later, n.capHit("acme", 6, `,"id":"six"`), "429 [cap]")
		n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":2,"id":"two after `+later+`"}`)
		step("what was given back after "+later, n.capHit("acme", 2, ""), "200")
		step("one more after "+later, n.capHit("acme", 1, ""), "429 [cap]")
	}

	// The period to which the clock is set back is a trial, which has no cap.
	n.capped("bolt", `,"test_clock":"t"`, 10)
	n.want(200, "PUT", "/v1/customers/bolt/billing", `{"buyer":{"name":"B","address":[]},"taxes":[],"trial_ends_at":"2026-04-20T00:00:00Z"}`)
	clock("2026-04-21T00:00:00Z")
	step("all after the trial", n.capHit("bolt", 10, ""), "200")
	clock("2026-03-16T00:00:00Z")
	step("one from the trial", n.capHit("bolt", 1, ""), "429 [cap]")
	step("the quota from the trial", n.capOf("bolt"), "10 10 0 0")
}

// TestCapsOnTwoNodes: what one node adjusts, another node's remembered row and refusals do not undo.
func TestCapsOnTwoNodes(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n, other := newNodeOn(t, url), newNodeOn(t, url)
	n.capped("acme", "", 10)
	check(t, other.server.Catalog.CatchUp(t.Context(), n.server.Catalog.Applied()))
	adjust := func(cost int, id string) {
		t.Helper()
		other.want(201, "POST", "/v1/customers/acme/adjustments", fmt.Sprintf(`{"meter":"requests","cost":%d,"reason":"r","id":%q}`, cost, id))
	}
	hit := func(cost int, want string) {
		t.Helper()
		if got := n.capHit("acme", cost, ""); got != want {
			t.Errorf("a hit of %d: %s, want %s", cost, got, want)
		}
	}
	for range 3 { // the row is the lane's now
		hit(1, "200")
	}
	adjust(5, "up")
	hit(3, "429 [cap]")
	hit(2, "200")
	hit(1, "429 [cap]")
	adjust(-2, "down")
	n.leap(n.nowOf().Add(1100 * time.Millisecond)) // so long a refusal may be believed
	hit(2, "200")
	hit(1, "429 [cap]")
	if got := n.capOf("acme"); got != "10 10 0 0" {
		t.Errorf("%s", got)
	}
}

// TestQuotaSaysCaps: a meter says what it may cost, also where no number of units is too much.
func TestQuotaSaysCaps(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(201, "PUT", "/v1/customers/acme/caps/requests", `{"amount_minor":7}`)
	meter := n.want(200, "GET", "/v1/customers/acme/quota", "").json["meters"].([]any)[0].(map[string]any)
	if meter["cap_minor"] != 7.0 || n.capOf("acme") != "10 0 10 0" {
		t.Errorf("%v", meter)
	}
	got := n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":4}`)
	if policy := got.header.Get("RateLimit-Policy"); !strings.Contains(policy, `"cap";q=10`) {
		t.Errorf("the header says %s", policy)
	}
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":-9,"reason":"r","id":"a"}`)
	if got := n.capOf("acme"); got != "10 0 15 0" { // 15 more make 10
		t.Errorf("%s", got)
	}
	if got := n.faultOf("PUT", "/v1/customers/acme/overrides/cap", `{"limit":1000}`); !strings.HasPrefix(got, "4") {
		t.Errorf("a cap was overridden: %s", got)
	}
}

// TestCapsBeginWithWhatIsUsed: hits of hours that are over and of the running one, adjustments, imports,
// and what was held before there was a cap.
func TestCapsBeginWithWhatIsUsed(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	clock := func(now string) { n.do("PUT", "/v1/test-clocks/t", `{"now":"`+now+`"}`) }
	clock("2026-01-10T10:00:00Z")
	n.capped("acme", `,"test_clock":"t","billing_anchor":"2026-01-01T00:00:00"`, 10)
	n.want(204, "DELETE", "/v1/customers/acme/caps/requests", "")
	for i, at := range []string{"2026-01-10T10:00:00Z", "2026-01-10T11:30:00Z", "2026-01-12T00:00:00Z"} {
		clock(at)
		if got := n.capHit("acme", 1+i, ""); got != "200" { // 6 in all
			t.Fatal(got)
		}
	}
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":5,"reason":"r","id":"a","at":"2026-01-11T00:00:00Z"}`)
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":-1,"reason":"r","id":"b"}`)
	n.want(200, "POST", "/v1/imports", `{"id":"i","customer":"acme","meter":"requests","cost":4,"at":"2026-01-11T05:00:00Z"}`, "Content-Type",
		"application/x-ndjson")
	n.want(201, "POST", "/v1/reservations", `{"customer":"acme","meter":"requests","cost":2,"ttl_ms":60000}`)
	n.raise("acme", 20)
	if got := n.capOf("acme"); got != "20 16 4 2" {
		t.Errorf("before a hit: %s", got)
	}
	for _, step := range []struct {
		cost int
		want string
	}{{1, "200"}, {4, "429 [cap]"}, {3, "200"}, {1, "429 [cap]"}} {
		if got := n.capHit("acme", step.cost, ""); got != step.want {
			t.Errorf("a hit of %d: %s, want %s", step.cost, got, step.want)
		}
	}
	if got := n.capOf("acme"); got != "20 20 0 2" {
		t.Errorf("after the hits: %s", got)
	}
}

// Where billing begins again on a clock that stands, what is free at that instant moves no cap.
func TestCapsWhereBillingBeginsAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-10T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	n.want(201, "PUT", "/v1/plans/pro",
		`{"name":"Pro","currency":"USD","interval":"month","base_price_minor":0,"limits":[],"prices":[{"meter":"requests","model":"per_unit","unit_price":"1"}]}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	n.want(201, "PUT", "/v1/customers/acme/caps/requests", `{"amount_minor":300}`)
	n.bill(200, "acme", `{"ends_at":"2026-01-25T00:00:00Z","after_end":"free"}`)
	n.settled("2026-01-26T00:00:00Z")
	if got := n.capHit("acme", 5, ""); got != "200" { // billing has ended, so it is free
		t.Error(got)
	}
	n.bill(200, "acme", `{}`)
	if got := n.capHit("acme", 4, ""); got != "200" { // and so is what else is of that instant
		t.Error(got)
	}
	n.agreed("a cap where billing begins again")
	n.settled("2026-01-26T00:00:01Z")
	for _, want := range []string{"200", "200", "200", "429 [cap]"} {
		if got := n.capHit("acme", 1, ""); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	n.agreed("a cap in the new chain")
}
