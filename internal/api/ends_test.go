package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit/pgtest"
)

const ofSuspension = "/v1/customers/acme/suspension"

// asked are the ways to ask for units that a customer who is suspended or has ended is refused on.
var asked = map[string]struct{ path, body string }{
	"a hit":         {"/v1/hits", `{"customer":"acme","meter":"requests"}`},
	"with an id":    {"/v1/hits", `{"customer":"acme","meter":"requests","id":"new"}`},
	"an overrun":    {"/v1/hits", `{"customer":"acme","meter":"requests","overrun":true}`},
	"a dry run":     {"/v1/hits", `{"customer":"acme","meter":"requests","dry_run":true}`},
	"cost 0":        {"/v1/hits", `{"customer":"acme","meter":"requests","cost":0}`},
	"per value":     {"/v1/hits", `{"customer":"acme","meter":"requests","attributes":{"ip":"192.0.2.9"}}`},
	"never counted": {"/v1/hits", `{"customer":"acme","meter":"others"}`},
	"and with id":   {"/v1/hits", `{"customer":"acme","meter":"others","id":"newer"}`},
	"atomic":        {"/v1/hits/batch", `{"atomic":true,"hits":[{"customer":"other","meter":"requests"},{"customer":"acme","meter":"requests"}]}`},
	"reservation":   {"/v1/reservations", `{"customer":"acme","meter":"requests","cost":1,"ttl_ms":60000}`},
	"and its id":    {"/v1/reservations", `{"customer":"acme","meter":"requests","cost":1,"ttl_ms":60000,"id":"new"}`},
}

// endsNode has customers acme and other on a plan with limits, whole and by address.
func endsNode(t *testing.T, url string) *node {
	n := newNodeOn(t, url)
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	n.want(201, "PUT", "/v1/meters/others", `{"unit":"other"}`)
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":0,"meters":["others"],"limits":[`+
		`{"name":"hourly","meter":"requests","algorithm":"fixed_window","limit":1000,"window":"1h"},`+
		`{"name":"each","meter":"requests","algorithm":"token_bucket","limit":1000,"window":"1h","per":"ip"}]}`)
	return n
}

func (n *node) made2(key, clock string) {
	n.t.Helper()
	n.want(201, "PUT", "/v1/customers/"+key, `{"name":"A","plan":"pro"`+clock+`}`)
}

// barred holds that all ways are refused, and what is done elsewhere in a batch.
func (n *node) barred(why string) {
	n.t.Helper()
	for what, a := range asked {
		got := n.want(403, "POST", a.path, a.body)
		if got.json["type"] != "/problems/"+why || !strings.Contains(got.text, `acme`) {
			n.t.Errorf("%s: %s", what, got.text)
		}
	}
	got := n.want(200, "POST", "/v1/hits/batch", `{"hits":[{"customer":"other","meter":"requests"},{"customer":"acme","meter":"requests"},
		{"customer":"acme","meter":"requests","id":"newest"},{"customer":"acme","meter":"requests","dry_run":true}]}`)
	results := got.json["results"].([]any)
	for i, r := range results {
		if r := r.(map[string]any); i == 0 && r["allowed"] != true || i > 0 && (r["status"] != 403.0 || r["type"] != "/problems/"+why) {
			n.t.Errorf("result %d of a batch: %v", i, r)
		}
	}
}

func (n *node) usedOf(customer string) any {
	n.t.Helper()
	return n.want(200, "GET", "/v1/customers/"+customer+"/quota", "").json["meters"].([]any)[1].(map[string]any)["used"]
}

// From PUT to DELETE nothing is admitted, and all else goes on.
func TestSuspension(t *testing.T) {
	t.Parallel()
	n := endsNode(t, pgtest.NewDatabase(t))
	n.made2("acme", "")
	n.made2("other", "")
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":7,"id":"before"}`)
	reserve := func(cost string) string {
		return n.want(201, "POST", "/v1/reservations", `{"customer":"acme","meter":"requests","cost":`+cost+`,"ttl_ms":600000}`).json["id"].(string)
	}
	kept, given := reserve("5"), reserve("6")
	tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	is := n.want(200, "PUT", ofSuspension, `{"reason":"not paid"}`).json
	if is["reason"] != "not paid" || is["at"] == nil {
		t.Errorf("%v", is)
	}
	n.barred("suspended")
	for _, path := range []string{"/v1/customers/acme", "/v1/customers/acme/quota"} {
		got := n.want(200, "GET", path, "")
		if s, _ := got.json["suspension"].(map[string]any); s["reason"] != "not paid" || s["at"] != is["at"] {
			t.Errorf("%s: %s", path, got.text)
		}
	}
	if n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag") == tag {
		t.Error("the same entity tag")
	}
	// What was admitted is answered again, committed and given back.
	if got := n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":7,"id":"before"}`); got.json["replayed"] != true {
		t.Error(got.text)
	}
	n.want(422, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":8,"id":"before"}`)
	n.want(200, "POST", "/v1/reservations/"+kept+"/commit", `{"cost":6}`)
	n.want(204, "DELETE", "/v1/reservations/"+given, "")
	n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":2,"hit":"before","id":"r"}`)
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":1,"reason":"x","id":"a"}`)
	n.want(200, "GET", "/v1/customers/acme/usage?meter=requests", "")
	n.want(200, "GET", "/v1/customers/acme/invoices/upcoming", "")
	if got := n.usedOf("acme"); got != 12.0 {
		t.Error("used", got)
	}
	// Another reason is no other suspension, and the same one is no change.
	again := n.want(200, "PUT", ofSuspension, `{"reason":"still not paid"}`).json
	if again["at"] != is["at"] || again["reason"] != "still not paid" {
		t.Errorf("%v", again)
	}
	tag = n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	n.want(200, "PUT", ofSuspension, `{"reason":"still not paid"}`)
	if n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag") != tag {
		t.Error("another entity tag for no change")
	}
	n.want(204, "DELETE", ofSuspension, "")
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	n.want(404, "DELETE", ofSuspension, "")
	if got := n.want(200, "GET", "/v1/customers/acme", ""); got.json["suspension"] != nil {
		t.Error(got.text)
	}
}

func TestSuspensionsThatAreRefused(t *testing.T) {
	t.Parallel()
	n := endsNode(t, pgtest.NewDatabase(t))
	n.made2("acme", "")
	for body, want := range map[string]string{
		`{}`:                    "422 reason",
		`{"reason":""}`:         "422 reason",
		`{"reason":"  "}`:       "422 reason",
		`{"reason":null}`:       "422 reason",
		`{"reason":7}`:          "422 reason",
		`{"reason":"a\u0000b"}`: "422 reason",
		`{"reason":"` + strings.Repeat("ü", 201) + `"}`: "422 reason",
		`{"reason":"x","until":"tomorrow"}`:             "422 until",
	} {
		if got := n.faultOf("PUT", ofSuspension, body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	n.want(404, "PUT", "/v1/customers/nobody/suspension", `{"reason":"x"}`)
	n.want(404, "DELETE", "/v1/customers/nobody/suspension", "")
	for _, scope := range []string{"backend", "read", "support"} {
		n.want(403, "PUT", ofSuspension, `{"reason":"x"}`, "Authorization", n.key(scope))
	}
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`) // nothing was half written
	n.want(204, "DELETE", "/v1/customers/acme", "")
	n.want(409, "PUT", ofSuspension, `{"reason":"x"}`)
	n.want(409, "DELETE", ofSuspension, "")
}

// A suspension counts within a second on every node, and so does its end, for a node that was busy
// with the customer all the time.
func TestSuspensionOnOtherNodes(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n := endsNode(t, url)
	other := newNodeOn(t, url)
	n.made2("acme", "")
	const hit = `{"customer":"acme","meter":"requests"}`
	other.want(200, "POST", "/v1/hits", hit)
	for _, step := range []struct {
		status       int
		method, body string
		want         int
	}{{200, "PUT", `{"reason":"x"}`, 403}, {204, "DELETE", "", 200}, {200, "PUT", `{"reason":"x"}`, 403}} {
		n.want(step.status, step.method, ofSuspension, step.body)
		other.heeds(fmt.Sprintf("%d after %s", step.want, step.method), n, func() bool { return other.do("POST", "/v1/hits", hit).status == step.want })
		for range 20 {
			other.want(step.want, "POST", "/v1/hits", hit)
			n.want(step.want, "POST", "/v1/hits", hit)
		}
	}
}

// By a test clock a hit a microsecond before ends_at passes, and one at ends_at does not, on every
// way and node, without a write of the customer. free lets usage go on.
func TestEndsAtTheMicrosecond(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n := endsNode(t, url)
	other := newNodeOn(t, url)
	n.setClock("2026-01-10T00:00:00Z")
	for _, key := range []string{"acme", "other", "free"} {
		n.made2(key, `,"billing_anchor":"2026-01-01T00:00:00","test_clock":"c1"`)
	}
	if got := n.bill(200, "acme", `{"ends_at":"2026-01-20T00:00:00Z"}`).json["after_end"]; got != "block" {
		t.Error("an account that is new:", got)
	}
	n.bill(200, "free", `{"ends_at":"2026-01-20T00:00:00Z","after_end":"free"}`)
	if got := n.bill(200, "free", `{"ends_at":"2026-01-20T00:00:00Z"}`).json["after_end"]; got != "free" {
		t.Error("left out:", got)
	}
	n.bill(422, "free", `{"after_end":"never"}`)
	n.setClock("2026-01-19T23:59:59.999999Z")
	tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	for _, node := range []*node{n, other} {
		for what, a := range asked {
			got := node.do("POST", a.path, strings.ReplaceAll(a.body, `"new`, `"before`))
			if got.status != 200 && got.status != 201 || strings.Contains(got.text, `"allowed":false`) {
				t.Errorf("before the end, %s: %s", what, got.text)
			}
		}
	}
	if got := n.want(200, "GET", "/v1/customers/acme/quota", ""); got.json["ends_at"] != "2026-01-20T00:00:00Z" || got.json["ended"] != nil {
		t.Error(got.text)
	}
	n.setClock("2026-01-20T00:00:00Z")
	for _, node := range []*node{n, other} {
		node.barred("ended")
		node.want(200, "POST", "/v1/hits", `{"customer":"free","meter":"requests"}`)
	}
	if got := n.want(200, "GET", "/v1/customers/acme/quota", ""); got.json["ended"] != true {
		t.Error(got.text)
	}
	if n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag") != tag {
		t.Error("somebody has written the customer: the test says nothing")
	}
	n.setClock("2026-01-19T00:00:00Z") // set back: counters may stand later, and their hits are of then
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	n.setClock("2026-01-25T00:00:00Z")
	n.barred("ended")
	n.bill(200, "acme", `{"ends_at":"2026-01-25T00:00:00.000001Z"}`) // lifted, to end once more
	if got := n.usedOf("acme"); got != 0.0 {
		t.Error("a new chain begins with", got)
	}
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	n.setClock("2026-01-25T00:00:00.000001Z")
	n.barred("ended")
	n.bill(200, "acme", `{"after_end":"free","ends_at":"2026-01-25T00:00:00.000001Z"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	n.bill(200, "acme", `{"after_end":"block","ends_at":"2026-01-25T00:00:00.000001Z"}`)
	n.barred("ended")
	n.bill(200, "acme", `{}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
}

// In real time every hit that is admitted was before the end, whatever node admitted it; a refusal
// does not outlive the end's being moved.
func TestEndsInRealTime(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n := endsNode(t, url)
	nodes := []*node{n, newNodeOn(t, url)}
	n.made2("acme", "")
	n.bill(200, "acme", fmt.Sprintf(`{"ends_at":%q}`, n.nowOf().Add(time.Hour).UTC().Format(time.RFC3339Nano))) // it is moved
	ends := n.nowOf().Add(30 * time.Minute).UTC().Truncate(time.Microsecond)
	n.bill(200, "acme", fmt.Sprintf(`{"ends_at":%q}`, ends.Format(time.RFC3339Nano)))
	check(t, nodes[1].server.Catalog.CatchUp(t.Context(), n.server.Catalog.Applied()))
	admitted, refused := 0, 0
	for refused < 20 {
		if admitted == 20 {
			n.leap(ends.Add(-200 * time.Millisecond))
		}
		id := fmt.Sprint(admitted + refused)
		for i, body := range []string{`{"customer":"acme","meter":"requests"}`, `{"customer":"acme","meter":"others","id":"` + id + `"}`} {
			switch got := nodes[(admitted+refused)%2].do("POST", "/v1/hits", body); {
			case got.status == 403 && got.json["type"] == "/problems/ended" && !n.nowOf().Before(ends.Add(-inexact)):
				refused++
			case got.status == 200:
				at, err := time.Parse(time.RFC3339Nano, got.json["at"].(string))
				check(t, err)
				if admitted++; !at.Before(ends) {
					t.Fatalf("hit %d at %v, the end is %v", i, at, ends)
				}
			default:
				t.Fatalf("hit %d: %s", i, got.text)
			}
		}
	}
	t.Logf("%d admitted before the end", admitted)
	n.bill(200, "acme", `{"ends_at":null}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	nodes[1].heeds("the end is lifted", n, func() bool {
		return nodes[1].do("POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`).status == 200
	})
}
