package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// operation is one route with a request that it accepts from a key that may.
type operation struct {
	method, path, body string
	scopes             string // beside admin; "-" is no key at all
	refused            int    // the status of what is not there; 0: it is done
}

func operations() []operation {
	usage := "/v1/customers/acme/usage?meter=requests&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z&granularity=hour"
	return []operation{
		{"POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":0}`, "backend", 0},
		{"POST", "/v1/hits/batch", `{"hits":[]}`, "backend", 0},
		{"POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":1,"id":"r"}`, "backend", 0},
		{"POST", "/v1/reservations", `{"customer":"acme","meter":"requests","ttl_ms":60000,"id":"r"}`, "backend", 0},
		{"POST", "/v1/reservations/%s/commit", `{"cost":1}`, "backend", 0},
		{"DELETE", "/v1/reservations/%s", "", "backend", 0},
		{"POST", "/v1/imports", `{"id":"i","customer":"acme","meter":"requests","limit":"hourly","used":1}`, "", 0},
		{"POST", "/v1/customers/acme/adjustments", `{"id":"a","meter":"requests","cost":1,"reason":"x"}`, "", 0},
		{"GET", "/v1/customers/acme/quota", "", "backend read support", 0},
		{"GET", "/v1/customers/acme/reservations?meter=requests&limit=1", "", "backend read support", 0},
		{"GET", usage, "", "backend read support", 0},
		{"PUT", "/v1/meters/%s", `{"unit":"x"}`, "", 0},
		{"GET", "/v1/meters/requests", "", "read support", 0},
		{"GET", "/v1/meters", "", "read support", 0},
		{"PUT", "/v1/plans/%s", planOf(), "", 0},
		{"GET", "/v1/plans/basic", "", "read support", 0},
		{"GET", "/v1/plans", "", "read support", 0},
		{"GET", "/v1/plans/basic/versions", "", "read support", 0},
		{"GET", "/v1/plans/basic/versions/1", "", "read support", 0},
		{"PUT", "/v1/plans/%s/draft", planOf(), "", 0},
		{"GET", "/v1/plans/drafted/draft", "", "read support", 0},
		{"POST", "/v1/plans/drafted/draft/play", `{"meter":"requests","traffic":{"pattern":"steady","window":"1m","steady":1}}`, "", 0},
		{"POST", "/v1/plans/drafted/draft/compare", `{}`, "", 0},
		{"DELETE", "/v1/plans/drafted/draft", "", "", 0},
		{"PUT", "/v1/customers/%s", onPlan, "", 0},
		{"GET", "/v1/customers/acme", "", "read support", 0},
		{"GET", "/v1/customers", "", "read support", 0},
		{"DELETE", "/v1/customers/idle", "", "", 0},
		{"PUT", "/v1/customers/acme/overrides/hourly", `{"limit":100}`, "support", 0},
		{"GET", "/v1/customers/acme/overrides", "", "read support", 0},
		{"DELETE", "/v1/customers/acme/overrides/hourly", "", "support", 0},
		{"POST", "/v1/customers/acme/plan-requests", `{"plan":"basic"}`, "support", 422}, // its own
		{"GET", "/v1/customers/acme/plan-requests", "", "read support", 0},
		{"PUT", "/v1/test-clocks/%s", `{"now":"2026-01-31T12:00:00Z"}`, "", 0},
		{"GET", "/v1/test-clocks/january", "", "", 0},
		{"GET", "/v1/test-clocks", "", "", 0},
		{"POST", "/v1/keys", `{"name":"k","scope":"read"}`, "", 0},
		{"GET", "/v1/keys", "", "", 0},
		{"DELETE", "/v1/keys/%s", "", "", 0},
		{"GET", "/v1/customers/acme/refusals", "", "read support", 0},
		{"GET", "/v1/audit?actor=cli&target=acme", "", "", 0},
		{"GET", "/v1/events?after=0&type=plan.published&customer=acme", "", "read support", 0},
		{"POST", "/v1/webhooks", `{"url":"https://example.com/","types":["webhook.disabled"]}`, "", 0},
		{"GET", "/v1/webhooks", "", "", 0},
		{"DELETE", "/v1/webhooks/wh_none", "", "", 404},
		{"POST", "/v1/webhooks/wh_none/rotate", "", "", 404},
		{"POST", "/v1/webhooks/wh_none/test", "", "", 404},
		{"GET", "/v1/webhooks/wh_none/deliveries", "", "", 404},
		{"POST", "/v1/webhooks/wh_none/replay", `{"from":"2026-01-31T12:00:00Z"}`, "", 404},
		{"GET", "/v1/authorize?meter=requests", "", "backend", 422},
		{"GET", "/livez", "", "- backend read support", 0},
		{"GET", "/readyz", "", "- backend read support", 0},
		{"GET", "/", "", "- backend read support", 0},
		{"GET", "/metrics", "", "read support", 0},
		{"GET", "/openapi.json", "", "- backend read support", 0},
		{"GET", "/docs", "", "- backend read support", 0},
		{"GET", "/problems/invalid", "", "- backend read support", 0},
		{"GET", "/v1/customers/acme/invoices", "", "read support", 0},
		{"GET", "/v1/customers/acme/invoices/upcoming", "", "read support", 0},
		{"GET", "/v1/invoices", "", "read support", 0},
		{"GET", "/v1/invoices.csv", "", "read support", 0},
		{"GET", "/v1/invoices/00000000-0000-4000-8000-000000000000.html", "", "read support", 404},
		{"GET", "/v1/invoices/00000000-0000-4000-8000-000000000000.csv", "", "read support", 404},
		{"GET", "/v1/invoices/00000000-0000-4000-8000-000000000000.pdf", "", "read support", 404},
		{"GET", "/v1/invoices/00000000-0000-4000-8000-000000000000", "", "read support", 404},
		{"GET", "/v1/invoices/00000000-0000-4000-8000-000000000000/lines/1/usage", "", "read support", 404},
		{"POST", "/v1/invoices/00000000-0000-4000-8000-000000000000/finalize", "", "", 404},
		{"POST", "/v1/invoices/00000000-0000-4000-8000-000000000000/pay", `{}`, "", 404},
		{"POST", "/v1/invoices/00000000-0000-4000-8000-000000000000/payments/1/reverse", `{"reason":"x","id":"r"}`, "", 404},
		{"POST", "/v1/invoices/00000000-0000-4000-8000-000000000000/apply-credits", "", "", 404},
		{"POST", "/v1/customers/acme/credits/none/withdraw", `{"reason":"x","id":"w"}`, "", 404},
		{"POST", "/v1/invoices/00000000-0000-4000-8000-000000000000/void", `{"reason":"x"}`, "", 404},
		{
			"POST", "/v1/invoices/00000000-0000-4000-8000-000000000000/credit-notes",
			`{"lines":[{"n":1,"amount_minor":1}],"reason":"x","to":"outside","id":"n"}`, "", 404,
		},
		{"POST", "/v1/customers/acme/charges", `{"description":"x","amount_minor":1,"currency":"USD","id":"c"}`, "", 0},
		{"POST", "/v1/customers/acme/credits", `{"amount_minor":1,"currency":"USD","id":"c"}`, "", 0},
		{"GET", "/v1/customers/acme/credits", "", "read support", 0},
		{"PUT", "/v1/customers/acme/billing", `{}`, "", 0},
		{"GET", "/v1/customers/acme/billing", "", "read support", 0},
		{"PUT", "/v1/customers/acme/prices/requests", `{"model":"per_unit","unit_price":"1"}`, "", 0},
		{"GET", "/v1/customers/acme/prices/requests", "", "read support", 0},
		{"GET", "/v1/customers/acme/prices", "", "read support", 0},
		{"PUT", "/v1/customers/acme/caps/requests", `{"amount_minor":5000}`, "", 0},
		{"GET", "/v1/customers/acme/caps/requests", "", "read support", 0},
		{"GET", "/v1/customers/acme/caps", "", "read support", 0},
		{"DELETE", "/v1/customers/acme/caps/requests", "", "", 0},
		{"DELETE", "/v1/customers/acme/prices/requests", "", "", 0},
		{"PUT", "/v1/sellers/default", `{"name":"Us"}`, "", 0},
		{"GET", "/v1/sellers/default", "", "", 0},
		{"GET", "/v1/sellers", "", "", 0},
		{"POST", "/v1/portal-sessions", `{"customer":"acme"}`, "support", 0},
		{"GET", "/v1/reconcile", "", "", 0},
		{"GET", "/v1/overview", "", "read support", 0},
		{"PUT", "/v1/customers/acme/levels/requests", `{"level":1}`, "backend", 422}, // it counts what passes
		{"PUT", "/v1/customers/acme/suspension", `{"reason":"unpaid"}`, "", 0},
		{"DELETE", "/v1/customers/acme/suspension", "", "", 0},
		{"PUT", "/v1/customers/acme/scheduled-change", `{"plan":"basic"}`, "", 0},
		{"GET", "/v1/customers/acme/scheduled-change", "", "read support", 0},
		{"DELETE", "/v1/customers/acme/scheduled-change", "", "", 0},
		{"POST", "/v1/customers/acme/preview", `{"plan":"basic"}`, "", 0},
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	// Billing would write, ten seconds after a customer was made. Each wrong key is to be looked up.
	n := start(t, "", "--close-delay=1h", "--failed-keys-per-minute=0")
	n.setUp(hourly)
	n.do("PUT", "/v1/customers/idle", onPlan).is(201)
	n.do("PUT", "/v1/test-clocks/january", `{"now":"2026-01-01T00:00:00Z"}`).is(201)
	n.do("PUT", "/v1/plans/drafted/draft", planOf()).is(201)
	keys := map[string]string{"-": "", "wrong": "qk_wrong", "admin": n.key}
	scopes := []string{"-", "wrong", "backend", "read", "support", "admin"}
	for _, scope := range scopes[2:5] {
		_, keys[scope] = n.newKey(scope)
	}
	documented := 0
	for _, item := range documentOf(n).Paths.Map() {
		documented += len(item.Operations())
	}
	if len(operations()) != documented {
		t.Errorf("%d operations are tried, %d are documented", len(operations()), documented)
	}
	is := storing(t, n.databaseURL)
	for _, op := range operations() {
		may := func(scope string) bool {
			return scope == "admin" || strings.Contains(op.scopes, "-") || strings.Contains(op.scopes, scope)
		}
		before := "" // what is stored; not known after somebody wrote
		for _, scope := range scopes {
			path := op.path
			if strings.Contains(path, "%s") {
				name := "new-" + scope
				switch {
				case strings.HasPrefix(path, "/v1/keys/"):
					name, _ = n.newKey("read")
					before = ""
				case strings.HasPrefix(path, "/v1/reservations/"):
					name = n.do("POST", "/v1/reservations", `{"customer":"acme","meter":"requests","ttl_ms":60000}`).is(201).str("id")
					before = ""
				}
				path = fmt.Sprintf(path, name)
			}
			if op.method == "DELETE" && strings.Contains(path, "/overrides/") { // each finds one
				n.do("PUT", path, `{"limit":100}`)
				before = ""
			}
			if before == "" && !may(scope) {
				before = is(t)
			}
			a := n.as(keys[scope]).do(op.method, path, op.body)
			switch {
			case may(scope):
				before = ""
				if op.refused > 0 {
					a.is(op.refused)
				} else if a.status >= 400 {
					t.Errorf("%s with the key %s: %d %s", a.what, scope, a.status, a.raw)
				}
				continue
			case scope == "-" || scope == "wrong":
				a.is(401).has("type", "/problems/unauthorized")
				if !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
					t.Errorf("%s: no challenge", a.what)
				}
			default:
				a.is(403).has("type", "/problems/wrong-scope")
			}
			if after := is(t); after != before {
				t.Errorf("%s with the key %s changed something", a.what, scope)
				before = after
			}
		}
	}
}

func TestKeysAreListedRevokedAndExpire(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	id, secret := n.newKey("backend")
	expires := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)
	soon := n.do("POST", "/v1/keys", fmt.Sprintf(`{"name":"soon","scope":"read","expires_at":%q}`, expires)).is(201).str("secret")
	n.as(soon).do("GET", "/v1/plans", "").is(200)

	list := n.do("GET", "/v1/keys", "").is(200)
	if strings.Contains(string(list.raw), secret) || strings.Contains(string(list.raw), "secret") {
		t.Errorf("the list gives secrets away: %s", list.raw)
	}
	if !strings.Contains(string(list.raw), id) {
		t.Errorf("the new key is not listed: %s", list.raw)
	}
	if all := stored(t, n.databaseURL); strings.Contains(all, secret) || strings.Contains(all, testAdminKey) {
		t.Error("a secret is stored")
	}
	n.as(secret).do("POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`).is(200)
	n.do("DELETE", "/v1/keys/"+id, "").is(204)
	// On the node that was asked it counts at once.
	n.as(secret).do("POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`).is(401)
	if strings.Contains(string(n.do("GET", "/v1/keys", "").raw), id) {
		t.Error("the revoked key is still listed")
	}
	testkit.Eventually(t, "the key expires", func() bool {
		return n.as(soon).do("GET", "/v1/plans", "").status == 401
	})
	for _, secret := range []string{secret, soon, testAdminKey} {
		if strings.Contains(n.log.String()+n.out.String(), secret) {
			t.Error("a secret was printed or logged")
		}
	}
}
