package api

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

const (
	bucket  = `{"name":"rate","meter":"requests","algorithm":"token_bucket","limit":10,"window":"1h","burst":20}`
	oneHit  = `{"customer":"acme","meter":"requests"}`
	ofAcme  = "/v1/customers/acme/overrides"
	ofLimit = ofAcme + "/hourly"
)

func hitOf(cost int) string {
	return fmt.Sprintf(`{"customer":"acme","meter":"requests","cost":%d}`, cost)
}

// items are those of a list.
func (r reply) items() (all []map[string]any) {
	for _, item := range r.json["items"].([]any) {
		all = append(all, item.(map[string]any))
	}
	return all
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly + "," + bucket)
	etag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	got := n.want(201, "PUT", ofLimit, `{"limit":8}`)
	if got.text != `{"name":"hourly","limit":8,"expires_at":null,"in_force":true}` {
		t.Errorf("made: %s", got.text)
	}
	got = n.want(200, "PUT", ofLimit, `{"limit":9,"expires_at":"2036-01-31T12:00:00.1234567+01:00"}`)
	if got.text != `{"name":"hourly","limit":9,"expires_at":"2036-01-31T11:00:00.123456Z","in_force":true}` {
		t.Errorf("replaced: %s", got.text)
	}
	if now := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag"); now == etag {
		t.Errorf("the customer's ETag is still %s", now)
	}
	n.want(201, "PUT", ofAcme+"/rate", `{"limit":5,"burst":7,"expires_at":null}`)
	got = n.want(200, "GET", ofAcme, "", "Authorization", n.key("read"))
	if items := got.items(); len(items) != 2 || items[0]["name"] != "hourly" || items[1]["name"] != "rate" || items[1]["burst"] != 7.0 ||
		got.json["next_cursor"] != nil {
		t.Errorf("list: %s", got.text)
	}
	if got = n.want(200, "GET", ofAcme+"?limit=1", ""); len(got.items()) != 1 || got.json["next_cursor"] == nil {
		t.Errorf("a page: %s", got.text)
	}
	got = n.want(200, "GET", "/v1/customers/acme/quota", "")
	for i, want := range []float64{9, 5} {
		if limit := got.json["limits"].([]any)[i].(map[string]any); limit["limit"] != want {
			t.Errorf("limit %d: %v", i, limit)
		}
	}
	n.want(204, "DELETE", ofLimit, "")
	if got = n.want(404, "DELETE", ofLimit, ""); !strings.Contains(got.json["detail"].(string), "GET "+ofAcme+" lists them") {
		t.Errorf("deleted twice: %s", got.text)
	}
	n.want(204, "DELETE", ofAcme+"/rate", "")
	if got = n.want(200, "GET", ofAcme, ""); got.text != `{"items":[],"next_cursor":null}` {
		t.Errorf("an empty list: %s", got.text)
	}
}

func TestBadOverrides(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly + "," + bucket)
	for _, c := range []struct{ limit, body, field string }{
		{"hourly", `{}`, "limit"},
		{"hourly", `{"limit":null}`, "limit"},
		{"hourly", `{"limit":-1}`, "limit"},
		{"hourly", `{"limit":1000000000000000}`, "limit"},
		{"hourly", `{"limit":1.5}`, "limit"},
		{"hourly", `{"limit":"9"}`, "limit"},
		{"hourly", `{"limit":9,"burst":9}`, "burst"},
		{"hourly", `{"limit":9,"window":"1d"}`, "window"},
		{"hourly", `{"limit":9,"expires_at":"2020-01-01T00:00:00Z"}`, "expires_at"},
		{"hourly", `{"limit":9,"expires_at":"tomorrow"}`, "expires_at"},
		{"hourly", `{"limit":9,"expires_at":5}`, "expires_at"},
		{"rate", `{"limit":9,"burst":-1}`, "burst"},
		{"rate", `{"limit":9,"burst":null}`, "burst"},
		{"rate", `{"limit":0,"burst":1}`, "burst"},
		{"rate", `{"limit":999999999999989,"burst":999999999999999}`, "limit"},
		{"a%20b", `{"limit":9}`, "limit"},
	} {
		if got := n.want(422, "PUT", ofAcme+"/"+c.limit, c.body); !strings.Contains(got.text, `"field":"`+c.field+`"`) {
			t.Errorf("%s %s: want a word on %s: %s", c.limit, c.body, c.field, got.text)
		}
	}
	n.want(400, "PUT", ofLimit, `{"limit":`)
	n.want(415, "PUT", ofLimit, `{"limit":9}`, "Content-Type", "text/plain")
	n.want(404, "PUT", "/v1/customers/nobody/overrides/hourly", `{"limit":9}`)
	n.want(404, "GET", "/v1/customers/nobody/overrides", "")
	n.want(404, "DELETE", "/v1/customers/nobody/overrides/hourly", "")
	n.want(422, "PUT", "/v1/customers/%00/overrides/hourly", `{"limit":9}`)
	n.want(422, "GET", ofAcme+"?cursor=nonsense", "")
	got := n.want(404, "PUT", ofAcme+"/daily", `{"limit":9}`)
	if detail := got.json["detail"].(string); !strings.Contains(detail, "version 1 of plan pro, which is in force for it, has hourly, rate.") {
		t.Errorf("no such limit: %s", detail)
	}
	for scope, list := range map[string]int{"backend": 403, "read": 200} {
		key := n.key(scope)
		n.want(403, "PUT", ofLimit, `{"limit":9}`, "Authorization", key)
		n.want(403, "DELETE", ofLimit, "", "Authorization", key)
		n.want(list, "GET", ofAcme, "", "Authorization", key)
	}
	support := n.key("support")
	n.want(201, "PUT", ofLimit, `{"limit":9}`, "Authorization", support)
	n.want(200, "GET", ofAcme, "", "Authorization", support)
	n.want(204, "DELETE", ofLimit, "", "Authorization", support)
	n.want(403, "PUT", "/v1/customers/acme", `{}`, "Authorization", support)
	n.want(401, "PUT", ofLimit, `{"limit":9}`, "Authorization", "-")
	if got = n.want(200, "GET", ofAcme, ""); len(got.items()) != 0 {
		t.Errorf("what was refused is stored: %s", got.text)
	}
	n.want(201, "PUT", ofLimit, `{"limit":9}`)
	n.want(204, "DELETE", "/v1/customers/acme", "")
	n.want(409, "PUT", ofLimit, `{"limit":10}`)
	n.want(409, "DELETE", ofLimit, "")
	n.want(200, "GET", ofAcme, "")
}

// What was used stays used: a raised limit lets in at once what it newly allows, one
// below what is used refuses, on every node.
func TestOverridesAndHits(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n := newNodeOn(t, url)
	n.setUp(strings.Replace(hourly, `"1h"`, `"8760h"`, 1)) // no window ends meanwhile
	other := newNodeOn(t, url)
	counts := func(what string, status int, body string) {
		t.Helper()
		other.heeds(what, n, func() bool { return other.do("POST", "/v1/hits", body).status == status })
	}
	n.want(200, "POST", "/v1/hits", hitOf(5))
	n.want(429, "POST", "/v1/hits", oneHit)
	other.want(429, "POST", "/v1/hits", oneHit) // and remembers it
	n.want(201, "PUT", ofLimit, `{"limit":8}`)
	if got := n.want(200, "POST", "/v1/hits", hitOf(2)); got.header.Get("X-RateLimit-Limit") != "8" || got.header.Get("X-RateLimit-Remaining") != "1" {
		t.Errorf("raised: %s %s", got.text, got.header)
	}
	counts("the raised limit on the other node", 200, oneHit)
	n.want(429, "POST", "/v1/hits", oneHit)
	n.want(200, "PUT", ofLimit, `{"limit":2}`)
	got := n.want(429, "POST", "/v1/hits", oneHit)
	if limit := got.json["limits"].([]any)[0].(map[string]any); limit["limit"] != 2.0 || limit["used"] != 8.0 || limit["remaining"] != 0.0 {
		t.Errorf("lowered: %s", got.text)
	}
	ends := n.nowOf().Add(time.Hour)
	n.want(200, "PUT", ofLimit, `{"limit":1000,"expires_at":"`+ends.UTC().Format(time.RFC3339Nano)+`"}`)
	n.want(200, "POST", "/v1/hits", hitOf(100))
	counts("the raised limit again", 200, hitOf(100))
	n.leap(ends.Add(inexact))
	other.want(429, "POST", "/v1/hits", oneHit) // at once, by each node's clock
	n.want(429, "POST", "/v1/hits", oneHit)
	testkit.Eventually(t, "its row is deleted", func() bool { return len(n.want(200, "GET", ofAcme, "").items()) == 0 })
}

// Overrides of a customer on a test clock are marked with it, as all that is about it.
func TestOverridesOnATestClock(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.onClock("2026-01-31T12:00:00Z", hourly)
	const path = "/v1/customers/timed/overrides"
	for _, status := range []int{201, 200} {
		if got := n.want(status, "PUT", path+"/hourly", `{"limit":8}`); got.json["test_clock"] != "c1" {
			t.Errorf("written: %s", got.text)
		}
	}
	if got := n.want(200, "GET", path, ""); got.items()[0]["test_clock"] != "c1" {
		t.Errorf("listed: %s", got.text)
	}
}

func TestOverriddenBurst(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(bucket)
	path := ofAcme + "/rate"
	n.want(200, "POST", "/v1/hits", hitOf(20))
	n.want(429, "POST", "/v1/hits", oneHit)
	n.want(201, "PUT", path, `{"limit":10,"burst":50}`)
	n.want(200, "POST", "/v1/hits", hitOf(30)) // 20 of the 50 were used
	n.want(429, "POST", "/v1/hits", oneHit)
	n.want(200, "PUT", path, `{"limit":40}`) // and so is the burst
	got := n.want(429, "POST", "/v1/hits", oneHit)
	if !strings.Contains(got.header.Get("RateLimit-Policy"), "q=40;") {
		t.Errorf("without a burst: %s", got.header.Get("RateLimit-Policy"))
	}
	n.want(204, "DELETE", path, "")
	if got = n.want(429, "POST", "/v1/hits", oneHit); !strings.Contains(got.header.Get("RateLimit-Policy"), "q=20;") {
		t.Errorf("the plan's own: %s", got.header.Get("RateLimit-Policy"))
	}
}

// A hit that was resolved before an override and comes late does not overrule it.
func TestAHitFromBeforeAnOverride(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	resolve := func() *model.Target {
		t.Helper()
		target, err := n.server.Catalog.Resolve(t.Context(), "acme", "requests", 0)
		check(t, err)
		return target
	}
	held := resolve()
	for _, change := range []func(){
		func() { n.want(201, "PUT", ofLimit, `{"limit":2}`) },
		func() { n.want(200, "PUT", ofLimit, `{"limit":3}`) },
		func() { n.want(204, "DELETE", ofLimit, "") },
	} {
		change()
		n.want(200, "POST", "/v1/hits", oneHit)
		_, err := n.server.Engine.From("").Decide(t.Context(), held, 1)
		if stale, ok := errors.AsType[*model.StaleError](err); !ok || stale.Change <= held.Change {
			t.Fatalf("a target of change %d was judged: %v", held.Change, err)
		}
		held = resolve()
	}
}

func TestCustomersFeatures(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly) // features sso, seats 5, ratio 1.5, tier
	const exact = `"ratio":900719925474099.000000000001,"seats":999999999999999,"sso":false`
	put := func(status int, features string) reply {
		t.Helper()
		return n.want(status, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","timezone":"UTC"`+features+`}`, "If-Match", "*")
	}
	if got := put(200, `,"features":{`+exact+`}`); !strings.Contains(got.text, `"features":{`+exact+`}`) {
		t.Errorf("written: %s", got.text)
	}
	if got := n.want(200, "GET", "/v1/customers/acme", ""); !strings.Contains(got.text, `"features":{`+exact+`}`) {
		t.Errorf("shown: %s", got.text)
	}
	if got := n.want(200, "GET", "/v1/customers/acme/quota", ""); !strings.Contains(got.text, `"features":{`+exact+`,"tier":"gold"}`) {
		t.Errorf("merged: %s", got.text)
	}
	for field, features := range map[string]string{
		"features":   `{"a b":1}`,
		"features.a": `{"a":[]}`,
		"features.b": `{"b":null}`,
		"features.c": `{"c":1e400}`,
		"features.d": `{"d":"\u0000"}`,
		"features.e": `{"e":1,"e":2}`,
	} {
		if got := put(422, `,"features":`+features); !strings.Contains(got.text, `"field":"`+field+`"`) {
			t.Errorf("%s: %s", features, got.text)
		}
	}
	put(422, `,"features":7`)
	if got := put(200, ""); !strings.Contains(got.text, `"features":{}`) {
		t.Errorf("left out: %s", got.text)
	}
	if got := n.want(200, "GET", "/v1/customers/acme/quota", ""); !strings.Contains(got.text, `"features":{"ratio":1.5,"seats":5,"sso":true,"tier":"gold"}`) {
		t.Errorf("the plan's: %s", got.text)
	}
}

func TestErase(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	const body = `{"name":"Jane","plan":"pro","timezone":"UTC","metadata":{"mail":"j"},"features":{"sso":false}}`
	n.want(201, "PUT", "/v1/customers/jane%40x", body)
	n.want(201, "PUT", "/v1/customers/jane%40x/overrides/hourly", `{"limit":8}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"jane@x","meter":"requests","cost":3}`)
	n.want(422, "DELETE", "/v1/customers/jane%40x?erase=1", "")
	n.want(204, "DELETE", "/v1/customers/jane%40x?erase=false", "")
	got := n.want(200, "DELETE", "/v1/customers/jane%40x?erase=true", "")
	key, _ := got.json["key"].(string)
	if !strings.HasPrefix(key, "erased:") || got.json["name"] != "" || got.json["erased_at"] == nil || got.json["archived_at"] == nil ||
		!strings.Contains(got.text, `"metadata":{}`) || !strings.Contains(got.text, `"features":{}`) || got.header.Get("ETag") == "" {
		t.Errorf("erased: %s", got.text)
	}
	path := "/v1/customers/" + key
	if usage := n.want(200, "GET", path+"/usage?meter=requests", ""); !strings.Contains(usage.text, `"admitted":3`) {
		t.Errorf("usage: %s", usage.text)
	}
	n.want(200, "GET", path, "")
	if list := n.want(200, "GET", path+"/overrides", ""); len(list.items()) != 0 {
		t.Errorf("overrides: %s", list.text)
	}
	if again := n.want(200, "DELETE", path+"?erase=true", ""); again.text != got.text {
		t.Errorf("again: %s", again.text)
	}
	n.want(404, "POST", "/v1/hits", `{"customer":"jane@x","meter":"requests"}`)
	n.want(404, "POST", "/v1/hits", `{"customer":"`+key+`","meter":"requests"}`)
	n.want(404, "GET", path+"/quota", "")
	for _, gone := range []string{"", "/usage?meter=requests", "/quota", "/overrides"} {
		n.want(404, "GET", "/v1/customers/jane%40x"+gone, "")
	}
	n.want(404, "DELETE", "/v1/customers/jane%40x?erase=true", "")
	if got = n.want(422, "PUT", "/v1/customers/erased:99", body); !strings.Contains(got.text, `"field":"key"`) {
		t.Errorf("a reserved key: %s", got.text)
	}
	n.want(201, "PUT", "/v1/customers/jane%40x", body)
	if usage := n.want(200, "GET", "/v1/customers/jane%40x/usage?meter=requests", ""); strings.Contains(usage.text, `"admitted":3`) {
		t.Errorf("the next customer has the usage of the one before: %s", usage.text)
	}
	n.want(403, "DELETE", "/v1/customers/jane%40x?erase=true", "", "Authorization", n.key("backend"))
}
