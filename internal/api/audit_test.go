package api

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/testkit"
)

// written is a request of a route that changes something, which succeeds.
type written struct {
	route, method, path, body, target string
	headers                           []string
}

// writes are requests of all routes that are audited, in an order in which they succeed. They
// make the meter, the plan and the customer that the later ones need.
func (n *node) writes() []written {
	const acme = "/v1/customers/acme"
	return []written{
		{"meters.put", "PUT", "/v1/meters/requests", `{"unit":"request"}`, "meters/requests", nil},
		{"plans.put", "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":2000,"limits":[` + hourly + `],
			"prices":[{"meter":"requests","model":"per_unit","unit_price":"0.01"}]}`, "plans/pro", nil},
		{"plans.put", "PUT", "/v1/plans/free", `{"name":"Free","currency":"USD","interval":"month","limits":[],"prices":[]}`, "plans/free", nil},
		{"drafts.put", "PUT", "/v1/plans/pro/draft", `{"name":"Pro, perhaps"}`, "plans/pro/draft", nil},
		{"drafts.delete", "DELETE", "/v1/plans/pro/draft", "", "plans/pro/draft", nil},
		{"testClocks.put", "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-10T12:00:00Z"}`, "test-clocks/clock", nil},
		{"customers.put", "PUT", acme, `{"name":"Ada Lovelace","plan":"pro","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`, "customers/acme", nil},
		{"sellers.put", "PUT", "/v1/sellers/default", `{"name":"Us"}`, "sellers/default", nil},
		{"billing.put", "PUT", acme + "/billing", `{"buyer":{"name":"Ada Lovelace"}}`, "customers/acme/billing", nil},
		{"prices.put", "PUT", acme + "/prices/requests", `{"model":"per_unit","unit_price":"0.02"}`, "customers/acme/prices/requests", nil},
		{"caps.put", "PUT", acme + "/caps/requests", `{"amount_minor":5000}`, "customers/acme/caps/requests", nil},
		{"caps.delete", "DELETE", acme + "/caps/requests", "", "customers/acme/caps/requests", nil},
		{"prices.delete", "DELETE", acme + "/prices/requests", "", "customers/acme/prices/requests", nil},
		{"overrides.put", "PUT", acme + "/overrides/hourly", `{"limit":7}`, "customers/acme/overrides/hourly", nil},
		{"portalSessions.create", "POST", "/v1/portal-sessions", `{"customer":"acme"}`, "customers/acme/portal-sessions", nil},
		{"customers.suspend", "PUT", acme + "/suspension", `{"reason":"Ada did not pay"}`, "customers/acme/suspension", nil},
		{"customers.resume", "DELETE", acme + "/suspension", "", "customers/acme/suspension", nil},
		{"scheduledChange.put", "PUT", acme + "/scheduled-change", `{"plan":"pro"}`, "customers/acme/scheduled-change", nil},
		{"scheduledChange.delete", "DELETE", acme + "/scheduled-change", "", "customers/acme/scheduled-change", nil},
		{"planRequests.create", "POST", acme + "/plan-requests", `{"plan":"free"}`, "customers/acme/plan-requests", nil},
		{"overrides.delete", "DELETE", acme + "/overrides/hourly", "", "customers/acme/overrides/hourly", nil},
		{"charges.create", "POST", acme + "/charges", `{"description":"Setup of Ada","amount_minor":500,"currency":"USD","id":"setup"}`, "customers/acme/charges/setup", nil},
		{"credits.grant", "POST", acme + "/credits", `{"amount_minor":10,"currency":"USD","id":"welcome"}`, "customers/acme/credits/welcome", nil},
		{"adjustments.create", "POST", acme + "/adjustments", `{"meter":"requests","cost":3,"reason":"Ada asked","id":"adjusted"}`, "customers/acme/adjustments/adjusted", nil},
		{"imports.create", "POST", "/v1/imports", usageLine("i", 1, "2026-01-10T11:00:00Z"), "imports", []string{"Content-Type", "application/x-ndjson"}},
		{"keys.create", "POST", "/v1/keys", `{"name":"k","scope":"read"}`, "keys/{id}", nil},
		{"keys.revoke", "DELETE", "/v1/keys/{id}", "", "keys/{id}", nil},
		{"invoices.finalize", "POST", "/v1/invoices/{draft}/finalize", "", "invoices/{draft}", nil},
		{"invoices.void", "POST", "/v1/invoices/{draft}/void", `{"reason":"Ada said","reissue":true}`, "invoices/{draft}", nil},
		{"invoices.finalize", "POST", "/v1/invoices/{again}/finalize", "", "invoices/{again}", nil},
		{"invoices.pay", "POST", "/v1/invoices/{again}/pay", `{"reference":"Ada's transfer"}`, "invoices/{again}", nil},
		{"invoices.reversePayment", "POST", "/v1/invoices/{again}/payments/1/reverse", `{"reason":"Ada's debit bounced","id":"b"}`, "invoices/{again}", nil},
		{"credits.grant", "POST", acme + "/credits", `{"amount_minor":20,"currency":"USD","id":"later"}`, "customers/acme/credits/later", nil},
		{"invoices.applyCredits", "POST", "/v1/invoices/{again}/apply-credits", "", "invoices/{again}", nil},
		{"credits.grant", "POST", acme + "/credits", `{"amount_minor":20,"currency":"USD","id":"wrong"}`, "customers/acme/credits/wrong", nil},
		{"credits.withdraw", "POST", acme + "/credits/wrong/withdraw", `{"reason":"Ada has it twice","id":"w"}`, "customers/acme/credits/wrong", nil},
		{
			"invoices.createCreditNote", "POST", "/v1/invoices/{again}/credit-notes", `{"lines":[{"n":1,"amount_minor":1}],"reason":"x","to":"outside","id":"n"}`,
			"invoices/{again}", nil,
		},
		{"webhooks.create", "POST", "/v1/webhooks", `{"url":"http://127.0.0.1:9/x","types":["webhook.disabled"]}`, "webhooks/{hook}", nil},
		{"webhooks.rotateSecret", "POST", "/v1/webhooks/{hook}/rotate", "", "webhooks/{hook}", nil},
		{"webhooks.test", "POST", "/v1/webhooks/{hook}/test", "", "webhooks/{hook}", nil},
		{"webhooks.replay", "POST", "/v1/webhooks/{hook}/replay", `{"from":"2026-01-10T12:00:00Z"}`, "webhooks/{hook}", nil},
		{"webhooks.delete", "DELETE", "/v1/webhooks/{hook}", "", "webhooks/{hook}", nil},
		{"customers.archive", "DELETE", acme, "", "customers/acme", nil},
	}
}

// do sends the request with an id, which it returns. names are the ids that earlier ones made.
func (w *written) send(n *node, names map[string]string) (got reply, id string) {
	n.t.Helper()
	if strings.Contains(w.path, "{draft}") && names["{draft}"] == "" {
		names["{draft}"] = n.billed("2026-02-01T00:00:10Z", "draft")["id"].(string)
	}
	if strings.Contains(w.path, "{again}") && names["{again}"] == "" {
		names["{again}"] = n.want(200, "GET", "/v1/invoices?customer=acme&test_clock=any&status=draft", "").items()[0]["id"].(string)
	}
	id = fmt.Sprint("test-", w.route, len(n.entries("")))
	path := w.path
	for name, value := range names {
		path, w.target = strings.ReplaceAll(path, name, value), strings.ReplaceAll(w.target, name, value)
	}
	got = n.do(w.method, path, w.body, append(w.headers, "X-Request-Id", id)...)
	if got.status >= 300 {
		n.t.Fatalf("%s: %d %s", w.route, got.status, got.text)
	}
	if made, ok := got.json["id"].(string); ok && w.route == "keys.create" {
		names["{id}"], w.target = made, "keys/"+made
	}
	if made, ok := got.json["id"].(string); ok && w.route == "webhooks.create" {
		names["{hook}"], w.target = made, "webhooks/"+made
	}
	return got, id
}

// Every route that changes something leaves an entry of who did it, and under which request; a
// replay and a refusal leave none.
func TestEveryWriteIsAudited(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	ctx := testkit.Context(t)
	keys, err := n.store.ListKeys(ctx, plans.Page{})
	check(t, err)
	admin := keys.Items[0].ID
	tried, names := map[string]bool{}, map[string]string{}
	for _, w := range n.writes() {
		tried[w.route] = true
		before := n.entries("")
		got, id := w.send(n, names)
		if got.header.Get("X-Request-Id") != id {
			t.Errorf("%s: the answer has the id %q", w.route, got.header.Get("X-Request-Id"))
		}
		found := 0
		for _, e := range n.entries("") {
			if e["request_id"] == id {
				found++
				if e["actor"] != admin || e["actor_name"] != "test" || e["target"] != w.target || e["before"] == nil && e["after"] == nil && w.route != "imports.create" {
					t.Errorf("%s: %v", w.route, e)
				}
			}
		}
		if want := map[bool]int{true: 2, false: 1}[w.route == "imports.create"]; found < want || len(n.entries(""))-len(before) < want {
			t.Errorf("%s left %d entries", w.route, found)
		}
	}
	for i, rt := 0, new(Server).routes(); i < len(rt); i++ {
		if rt[i].Audited() && !tried[rt[i].ID] {
			t.Errorf("%s changes something, and this test does not try it", rt[i].ID)
		}
	}
}

func (n *node) entries(query string) (list []map[string]any) {
	n.t.Helper()
	for path := "/v1/audit?limit=7&" + query; ; {
		got := n.want(200, "GET", path, "")
		list = append(list, got.items()...)
		if got.json["next_cursor"] == nil {
			return list
		}
		path = "/v1/audit?limit=7&" + query + "&cursor=" + url.QueryEscape(got.json["next_cursor"].(string))
	}
}

// What changed nothing is no entry: a write of what is there, a replay, a refusal.
func TestWhatChangesNothingIsNotAudited(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	const charge, adjustment = `{"description":"x","amount_minor":1,"currency":"USD","id":"c"}`, `{"meter":"requests","cost":3,"reason":"x","id":"a"}`
	n.want(201, "POST", "/v1/customers/acme/charges", charge)
	n.want(201, "POST", "/v1/customers/acme/adjustments", adjustment)
	before := len(n.entries(""))
	n.want(200, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	n.want(200, "POST", "/v1/customers/acme/charges", charge)
	n.want(200, "POST", "/v1/customers/acme/adjustments", adjustment)
	n.want(404, "DELETE", "/v1/customers/acme/overrides/hourly", "")
	n.want(428, "PUT", "/v1/customers/acme", `{"name":"x","plan":"pro"}`)
	n.want(422, "PUT", "/v1/meters/requests", `{}`)
	n.want(403, "PUT", "/v1/meters/requests", `{"unit":"x"}`, "Authorization", n.key("support"))
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":1,"id":"r"}`)
	if got := len(n.entries("")); got != before+1 { // the key of scope support
		t.Errorf("%d entries more", got-before)
	}
}

func TestAuditIsFiltered(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	support := n.key("support")
	n.want(201, "PUT", "/v1/customers/acme/overrides/hourly", `{"limit":7}`, "Authorization", support, "X-Request-Id", "")
	n.want(200, "PUT", "/v1/customers/acme/overrides/hourly", `{"limit":8}`, "X-Request-Id", strings.Repeat("x", 201))
	n.want(201, "PUT", "/v1/customers/acme2", `{"name":"x","plan":"pro"}`)
	n.want(201, "PUT", "/v1/meters/acme", `{"unit":"x"}`)
	all := n.entries("")
	if len(all) != 8 || all[0]["target"] != "meters/acme" || all[7]["target"] != "meters/requests" {
		t.Fatalf("%d entries: %v", len(all), all)
	}
	changed := all[2]
	if changed["before"].(map[string]any)["limit"] != 7. || changed["after"].(map[string]any)["limit"] != 8. ||
		!strings.HasPrefix(changed["request_id"].(string), "req_") {
		t.Errorf("%v", changed)
	}
	supporter := all[3]["actor"].(string)
	at := func(i int) string { return url.QueryEscape(all[i]["at"].(string)) }
	for query, want := range map[string]int{
		"actor=" + supporter: 1, "actor=nobody": 0, "actor=" + changed["actor"].(string): 7,
		"target=customers/acme": 3, "target=customers/acme/overrides": 2, "target=customers/acme/overrides/hourly": 2, "target=customers/acme/over": 0,
		"target=acme": 4, "target=meters": 0, "target=customers/acm": 0,
		"from=" + at(2): 3, "to=" + at(2): 5, "from=" + at(2) + "&to=" + at(0): 2, "target=customers/acme&from=" + at(2) + "&actor=" + changed["actor"].(string): 1,
	} {
		if got := n.entries(query); len(got) != want {
			t.Errorf("%s: %d entries, want %d: %v", query, len(got), want, got)
		}
	}
	for _, query := range []string{
		"actor=", "target=", "target=%00", "actor=" + strings.Repeat("x", 1001), "from=yesterday", "to=1", "cursor=x",
		"cursor=YXVkaXQvMS4w", "limit=0", "who=x",
	} {
		n.want(422, "GET", "/v1/audit?"+query, "")
	}
	n.want(403, "GET", "/v1/audit", "", "Authorization", support)
}

// Of an erased customer the entries keep who did what kind of thing when, and nothing else. Its
// invoices' entries are scrubbed, too. A secret is in no entry.
func TestAuditForgetsTheErased(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	names, secret := map[string]string{}, ""
	for _, w := range n.writes() {
		got, _ := w.send(n, names)
		if w.route == "keys.create" {
			secret = got.json["secret"].(string)
		}
	}
	before := n.entries("")
	n.want(200, "DELETE", "/v1/customers/acme?erase=true", "")
	after := n.entries("")
	if len(after) != len(before)+1 {
		t.Errorf("%d entries became %d", len(before), len(after))
	}
	text := n.want(200, "GET", "/v1/audit?limit=1000", "").text
	for _, word := range []string{"Ada", "acme", "setup", "welcome", "adjusted", secret} {
		if strings.Contains(text, word) {
			t.Errorf("%q is still there: %s", word, text)
		}
	}
	for i, e := range after[1:] {
		if old := before[i]; e["id"] != old["id"] || e["at"] != old["at"] || e["actor"] != old["actor"] || e["action"] != old["action"] ||
			e["request_id"] != old["request_id"] {
			t.Errorf("%v was %v", e, old)
		}
	}
	of := n.entries("target=" + after[0]["target"].(string))
	if len(of) != 22 || of[0]["action"] != "erase" || of[21]["target"] != after[0]["target"] {
		t.Errorf("%d: %v", len(of), of)
	}
	found := false
	for _, e := range of {
		found = found || e["target"] == after[0]["target"].(string)+"/charges"
	}
	if !found {
		t.Errorf("no charge: %v", of)
	}
	// The next customer of the key has a history of its own.
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"x","plan":"pro"}`)
	if got := n.entries("target=customers/acme"); len(got) != 1 {
		t.Errorf("the next one's: %v", got)
	}
}

// Long things are kept in part.
func TestAuditIsBounded(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/meters/m", `{"unit":"x"}`)
	var limits []string
	for i := range 100 {
		limits = append(limits, fmt.Sprintf(`{"name":"limit-number-%d","meter":"m%d","algorithm":"fixed_window","limit":5,"window":"1h"}`, i, i/20))
		n.do("PUT", fmt.Sprintf("/v1/meters/m%d", i/20), `{"unit":"x"}`)
	}
	n.want(201, "PUT", "/v1/plans/long", `{"name":"Long","currency":"USD","interval":"month","limits":[`+strings.Join(limits, ",")+`]}`)
	e := n.entries("target=plans/long")[0]["after"].(map[string]any)
	if left := e["limits"].(map[string]any)["omitted_bytes"].(float64); left < 8<<10 || e["name"] != "Long" || e["version"] != 1. {
		t.Errorf("%v", e)
	}
	if at, err := time.Parse(time.RFC3339Nano, n.entries("target=plans/long")[0]["at"].(string)); err != nil || at.IsZero() {
		t.Errorf("%v %v", at, err)
	}
}
