package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// operation is one route with a request that it accepts from a key that may.
type operation struct {
	method, path, body string
	scopes             string // beside admin; "-" is no key at all
}

func operations() []operation {
	usage := "/v1/customers/acme/usage?meter=requests&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z&granularity=hour"
	return []operation{
		{"POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":0}`, "backend"},
		{"POST", "/v1/hits/batch", `{"hits":[]}`, "backend"},
		{"POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":1,"id":"r"}`, "backend"},
		{"POST", "/v1/reservations", `{"customer":"acme","meter":"requests","ttl_ms":60000,"id":"r"}`, "backend"},
		{"POST", "/v1/reservations/%s/commit", `{"cost":1}`, "backend"},
		{"DELETE", "/v1/reservations/%s", "", "backend"},
		{"POST", "/v1/imports", `{"id":"i","customer":"acme","meter":"requests","limit":"hourly","used":1}`, ""},
		{"POST", "/v1/customers/acme/adjustments", `{"id":"a","meter":"requests","cost":1,"reason":"x"}`, ""},
		{"GET", "/v1/customers/acme/quota", "", "backend read"},
		{"GET", usage, "", "backend read"},
		{"PUT", "/v1/meters/%s", `{"unit":"x"}`, ""},
		{"GET", "/v1/meters/requests", "", "read"},
		{"GET", "/v1/meters", "", "read"},
		{"PUT", "/v1/plans/%s", planOf(), ""},
		{"GET", "/v1/plans/basic", "", "read"},
		{"GET", "/v1/plans", "", "read"},
		{"GET", "/v1/plans/basic/versions", "", "read"},
		{"GET", "/v1/plans/basic/versions/1", "", "read"},
		{"PUT", "/v1/customers/%s", onPlan, ""},
		{"GET", "/v1/customers/acme", "", "read"},
		{"GET", "/v1/customers", "", "read"},
		{"DELETE", "/v1/customers/idle", "", ""},
		{"PUT", "/v1/customers/acme/overrides/hourly", `{"limit":100}`, ""},
		{"GET", "/v1/customers/acme/overrides", "", "read"},
		{"DELETE", "/v1/customers/acme/overrides/hourly", "", ""},
		{"PUT", "/v1/test-clocks/%s", `{"now":"2026-01-31T12:00:00Z"}`, ""},
		{"GET", "/v1/test-clocks/january", "", ""},
		{"GET", "/v1/test-clocks", "", ""},
		{"POST", "/v1/keys", `{"name":"k","scope":"read"}`, ""},
		{"GET", "/v1/keys", "", ""},
		{"DELETE", "/v1/keys/%s", "", ""},
		{"GET", "/livez", "", "- backend read"},
		{"GET", "/readyz", "", "- backend read"},
		{"GET", "/", "", "- backend read"},
		{"GET", "/metrics", "", "read"},
		{"GET", "/openapi.json", "", "- backend read"},
		{"GET", "/docs", "", "- backend read"},
		{"GET", "/problems/invalid", "", "- backend read"},
	}
}

func TestScopes(t *testing.T) {
	n := start(t, "")
	n.setUp(hourly)
	n.do("PUT", "/v1/customers/idle", onPlan).is(201)
	n.do("PUT", "/v1/test-clocks/january", `{"now":"2026-01-01T00:00:00Z"}`).is(201)
	keys := map[string]string{"-": "", "wrong": "qk_wrong", "admin": n.key}
	for _, scope := range []string{"backend", "read"} {
		_, keys[scope] = n.newKey(scope)
	}
	documented := 0
	for _, item := range documentOf(n).Paths.Map() {
		documented += len(item.Operations())
	}
	if len(operations()) != documented {
		t.Errorf("%d operations are tried, %d are documented", len(operations()), documented)
	}
	for _, op := range operations() {
		for scope, key := range keys {
			path := op.path
			if strings.Contains(path, "%s") {
				name := "new-" + scope
				switch {
				case strings.HasPrefix(path, "/v1/keys/"):
					name, _ = n.newKey("read")
				case strings.HasPrefix(path, "/v1/reservations/"):
					name = n.do("POST", "/v1/reservations", `{"customer":"acme","meter":"requests","ttl_ms":60000}`).is(201).str("id")
				}
				path = fmt.Sprintf(path, name)
			}
			before := ""
			may := scope == "admin" || strings.Contains(op.scopes, "-") || strings.Contains(op.scopes, scope)
			if !may {
				before = stored(t, n.databaseURL)
			}
			a := n.as(key).do(op.method, path, op.body)
			switch {
			case may:
				if a.status >= 400 {
					t.Errorf("%s with the key %s: %d %s", a.what, scope, a.status, a.raw)
				}
			case scope == "-" || scope == "wrong":
				a.is(401).has("type", "/problems/unauthorized")
				if !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
					t.Errorf("%s: no challenge", a.what)
				}
			default:
				a.is(403).has("type", "/problems/wrong-scope")
			}
			if !may && stored(t, n.databaseURL) != before {
				t.Errorf("%s with the key %s changed something", a.what, scope)
			}
		}
	}
}

func TestKeysAreListedRevokedAndExpire(t *testing.T) {
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
	eventually(t, 5*time.Second, "the key expires", func() bool {
		return n.as(soon).do("GET", "/v1/plans", "").status == 401
	})
	for _, secret := range []string{secret, soon, testAdminKey} {
		if strings.Contains(n.log.String()+n.out.String(), secret) {
			t.Error("a secret was printed or logged")
		}
	}
}
