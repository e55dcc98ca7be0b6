package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"quotad/internal/api/request"
	"quotad/internal/api/respond"
)

func TestHitAdmittedThenRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly + `,{"name":"burst","meter":"requests","algorithm":"token_bucket","limit":100,"window":"1m","burst":10}`)
	got := n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":4}`)
	if got.json["allowed"] != true || got.json["cost"] != 4.0 || got.json["replayed"] != false || got.json["retry_after_ms"] != 0.0 {
		t.Errorf("admitted: %s", got.text)
	}
	limits := got.json["limits"].([]any)
	if len(limits) != 2 || limits[0].(map[string]any)["remaining"] != 1.0 || limits[1].(map[string]any)["used"] != 4.0 {
		t.Errorf("limits: %s", got.text)
	}
	policies, err := httpsfv.UnmarshalList(got.header.Values("RateLimit-Policy"))
	check(t, err)
	if w, _ := policies[0].(httpsfv.Item).Params.Get("w"); len(policies) != 2 || w != int64(3600) {
		t.Errorf("RateLimit-Policy: %v", got.header["Ratelimit-Policy"])
	}
	if got.header.Get("X-RateLimit-Limit") != "5" || got.header.Get("X-RateLimit-Remaining") != "1" || got.header.Get("Retry-After") != "" {
		t.Errorf("headers: %v", got.header)
	}
	for _, path := range []string{"/v1/hits", "/v1/hits", "/v1/hits?deny_status=429"} {
		got = n.want(429, "POST", path, `{"customer":"acme","meter":"requests","cost":2}`)
		if got.json["type"] != respond.QuotaExceeded || got.json["allowed"] != false || fmt.Sprint(got.json["violated-policies"]) != "[hourly]" {
			t.Errorf("refused: %s", got.text)
		}
		if got.header.Get("Retry-After") == "" || got.header.Get("Content-Type") != "application/problem+json" || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("headers of a refusal: %v", got.header)
		}
	}
	if got.json["as_of"] == nil {
		t.Errorf("the third refusal does not come from memory: %s", got.text)
	}
	for status, query := range map[int]string{200: "200", 403: "403"} {
		got = n.want(status, "POST", "/v1/hits?deny_status="+query, `{"customer":"acme","meter":"requests","cost":2}`)
		if got.json["allowed"] != false || got.json["status"] != float64(status) || got.header.Get("Retry-After") == "" {
			t.Errorf("deny_status: %s", got.text)
		}
	}
	got = n.want(429, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":6}`)
	if got.json["retry_after_ms"] != nil || got.header.Get("Retry-After") != "" || !strings.Contains(got.text, "never admits more than 5 at once") {
		t.Errorf("never: %s %v", got.text, got.header)
	}
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
}

func TestLooksChargeNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	for _, body := range []string{`{"customer":"acme","meter":"requests","cost":0}`, `{"customer":"acme","meter":"requests","cost":5,"dry_run":true}`} {
		for range 2 {
			if got := n.want(200, "POST", "/v1/hits", body); got.json["limits"].([]any)[0].(map[string]any)["remaining"] != 5.0 {
				t.Errorf("a look charged: %s", got.text)
			}
		}
	}
	n.want(429, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":6,"dry_run":true}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":5}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":0}`)
}

// Each fault gets its problem, and nothing is charged by any of them.
func TestHitFaults(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(201, "PUT", "/v1/meters/other", `{"unit":"x"}`)
	long := strings.Repeat("x", 201)
	faults := []struct {
		status      int
		field, body string
	}{
		{400, "", ``},
		{400, "", ` `},
		{400, "", `{`},
		{400, "", `{"customer":"acme"`},
		{400, "", `nonsense`},
		{400, "", "\x00"},
		{400, "", `{"customer":"acme","meter":"requests"} {}`},
		{400, "", `{"customer":"acme","meter":"requests"}x`},
		{400, "", "{\"customer\":\"\xff\",\"meter\":\"requests\"}"},
		{400, "", "{\"customer\":\"a\x00b\",\"meter\":\"requests\"}"},
		{400, "", `{"customer":"acme","meter":"requests","cost":"x",}`},
		{400, "", `{"customer":"acme","customer":"b",`},
		{400, "", `{"customer":"acme","meter":"requests","cost":01}`},
		{400, "", `{"customer":"acme","meter":"requests","cost":NaN}`},
		{422, "", `[]`},
		{422, "", `null`},
		{422, "", `"x"`},
		{422, "", `1`},
		{422, "customer", `{}`},
		{422, "customer", `{"customer":"","meter":"requests"}`},
		{422, "customer", `{"customer":7,"meter":"requests"}`},
		{422, "customer", `{"customer":null,"meter":"requests"}`},
		{422, "customer", `{"customer":"acme","customer":"acme","meter":"requests"}`},
		{422, "customer", `{"customer":"a\u0000b","meter":"requests"}`},
		{422, "customer", `{"customer":"a\nb","meter":"requests"}`},
		{422, "customer", `{"customer":"..","meter":"requests"}`},
		{422, "customer", `{"customer":"é","meter":"requests"}`},
		{422, "customer", `{"customer":"` + long + `","meter":"requests"}`},
		{422, "customer", `{"customer":"a/b","meter":"requests"}`},
		{422, "meter", `{"customer":"acme"}`},
		{422, "meter", `{"customer":"acme","meter":"a b"}`},
		{422, "meter", `{"customer":"acme","meter":["requests"]}`},
		{422, "meter", `{"customer":"acme","meter":"` + long + `"}`},
		{422, "cost", `{"customer":"acme","meter":"requests","cost":-1}`},
		{422, "cost", `{"customer":"acme","meter":"requests","cost":1.5}`},
		{422, "cost", `{"customer":"acme","meter":"requests","cost":1e3}`},
		{422, "cost", `{"customer":"acme","meter":"requests","cost":1000000000000000}`},
		{422, "cost", `{"customer":"acme","meter":"requests","cost":9223372036854775808}`},
		{422, "cost", `{"customer":"acme","meter":"requests","cost":"1"}`},
		{422, "cost", `{"customer":"acme","meter":"requests","cost":null}`},
		{422, "cost", `{"customer":"acme","meter":"requests","cost":1e400}`},
		{422, "cost", `{"customer":"acme","meter":"requests","cost":[1]}`},
		{422, "dry_run", `{"customer":"acme","meter":"requests","dry_run":1}`},
		{422, "Cost", `{"customer":"acme","meter":"requests","Cost":1}`},
		{422, "costs", `{"customer":"acme","meter":"requests","costs":1}`},
		{422, "id", `{"customer":"acme","meter":"requests","id":""}`},
		{422, "id", `{"customer":"acme","meter":"requests","id":7}`},
		{422, "id", `{"customer":"acme","meter":"requests","id":null}`},
		{422, "id", `{"customer":"acme","meter":"requests","id":"a\u0000b"}`},
		{422, "id", `{"customer":"acme","meter":"requests","id":"a\u0085b"}`},
		{422, "id", `{"customer":"acme","meter":"requests","id":"` + strings.Repeat("x", 256) + `"}`},
		{422, "attributes.a b", `{"customer":"acme","meter":"requests","attributes":{"a b":"x"}}`},
		{422, "attributes.1 a", `{"customer":"acme","meter":"requests","attributes":{"3 c":"x","5 e":"x","1 a":"x","4 d":"x","2 b":"x"}}`},
		{422, "attributes.ip", `{"customer":"acme","meter":"requests","attributes":{"ip":1}}`},
		{422, "attributes.ip", `{"customer":"acme","meter":"requests","attributes":{"ip":"a\u0000b"}}`},
		{422, "attributes.ip", `{"customer":"acme","meter":"requests","attributes":{"ip":"` + long + `"}}`},
		{404, "", `{"customer":"nobody","meter":"requests"}`},
		{404, "", `{"customer":"acme","meter":"nothing"}`},
		{403, "", `{"customer":"acme","meter":"other"}`},
		{413, "", `{"customer":"acme","meter":"requests","id":"` + strings.Repeat("x", request.MaxBody) + `"}`},
	}
	for _, f := range faults {
		name := f.body
		if len(name) > 80 {
			name = name[:80]
		}
		t.Run(fmt.Sprintf("%d %q", f.status, name), func(t *testing.T) {
			got := n.do("POST", "/v1/hits", f.body, "Content-Type", "application/json")
			if got.status != f.status || got.header.Get("Content-Type") != "application/problem+json" {
				t.Fatalf("status %d, want %d: %s", got.status, f.status, got.text)
			}
			if f.status == 422 {
				if at := got.json["errors"].([]any)[0].(map[string]any)["field"]; at != f.field {
					t.Errorf("field %q, want %q: %s", at, f.field, got.text)
				}
			}
		})
	}
	if got := n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":5}`); got.json["allowed"] != true {
		t.Errorf("a fault charged: %s", got.text)
	}
}

func TestHitHeadersAndQueryFaults(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	const body = `{"customer":"acme","meter":"requests"}`
	for _, f := range []struct {
		status  int
		path    string
		headers []string
	}{
		{415, "/v1/hits", []string{"Content-Type", "-"}},
		{415, "/v1/hits", []string{"Content-Type", "text/plain"}},
		{415, "/v1/hits", []string{"Content-Type", "application/json; charset=latin1"}},
		{415, "/v1/hits", []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{415, "/v1/hits", []string{"Content-Encoding", "gzip"}},
		{415, "/v1/hits", []string{"Content-Type", ";"}},
		{200, "/v1/hits", []string{"Content-Type", "application/json; charset=UTF-8"}},
		{200, "/v1/hits", []string{"Content-Type", "Application/JSON"}},
		{401, "/v1/hits", []string{"Authorization", "-"}},
		{401, "/v1/hits", []string{"Authorization", "Bearer"}},
		{401, "/v1/hits", []string{"Authorization", "Bearer wrong"}},
		{401, "/v1/hits", []string{"Authorization", "Basic dTpw"}},
		{401, "/v1/hits", []string{"Authorization", "Bearer " + strings.Repeat("x", 5000)}},
		{200, "/v1/hits", []string{"Authorization", "bearer " + adminSecret}},
		{422, "/v1/hits", []string{"Idempotency-Key", ``}},
		{422, "/v1/hits", []string{"Idempotency-Key", `"abc`}},
		{422, "/v1/hits/batch", []string{"Idempotency-Key", `"abc" x`}},
		{422, "/v1/refunds", []string{"Idempotency-Key", `""`}},
		{422, "/v1/reservations", []string{"Idempotency-Key", strings.Repeat("x", 256)}},
		{422, "/v1/hits?deny_status=404", nil},
		{422, "/v1/hits?deny_status=", nil},
		{422, "/v1/hits?deny_status=200&deny_status=200", nil},
		{422, "/v1/hits?denystatus=200", nil},
		{422, "/v1/hits?%zz", nil},
		{422, "/v1/hits/batch?deny_status=200", nil},
		{404, "/v1/hit", nil},
		{404, "/v1/hits/", nil},
	} {
		got := n.do("POST", f.path, body, f.headers...)
		if got.status != f.status {
			t.Errorf("%s %v: status %d, want %d: %s", f.path, f.headers, got.status, f.status, got.text)
		}
		if challenge := got.header.Get("WWW-Authenticate"); (f.status == 401) != (challenge != "") {
			t.Errorf("%s %v: WWW-Authenticate is %q", f.path, f.headers, challenge)
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	keys := map[string]string{"backend": n.key("backend"), "read": n.key("read"), "admin": n.key("admin")}
	for _, c := range []struct{ method, path, body, scopes string }{
		{"POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":0}`, "admin backend"},
		{"POST", "/v1/hits/batch", `{"hits":[]}`, "admin backend"},
		{"POST", "/v1/hits/batch", `{"hits":[],"atomic":true}`, "admin backend"},
		{"GET", "/v1/customers/acme/quota", "", "admin backend read"},
		{"GET", "/v1/customers/acme/usage?meter=requests", "", "admin backend read"},
		{"GET", "/v1/customers/acme", "", "admin read"},
		{"GET", "/v1/customers", "", "admin read"},
		{"GET", "/v1/plans", "", "admin read"},
		{"GET", "/v1/plans/pro/versions/1", "", "admin read"},
		{"GET", "/v1/meters", "", "admin read"},
		{"GET", "/v1/keys", "", "admin"},
		{"PUT", "/v1/meters/requests", `{"unit":"request"}`, "admin"},
	} {
		for scope, key := range keys {
			want := 403
			if strings.Contains(c.scopes, scope) {
				want = 200
			}
			if got := n.do(c.method, c.path, c.body, "Authorization", key); got.status != want {
				t.Errorf("%s %s with a key of scope %s: %d, want %d", c.method, c.path, scope, got.status, want)
			}
		}
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	got := n.want(200, "POST", "/v1/hits/batch", `{"hits":[
		{"customer":"acme","meter":"requests","cost":3},
		{"customer":"acme","meter":"requests","cost":3},
		{"customer":"nobody","meter":"requests"},
		{"customer":"acme","meter":"requests","cost":-1},
		{"customer":"acme","meter":"requests","cost":null},
		{"customer":"acme","meter":"requests","kost":1},
		{"customer":"acme","meter":"requests","cost":9,"dry_run":true},
		7,
		{"customer":"acme","meter":"requests","cost":2},
		{"customer":"acme","meter":"requests","cost":1}],"atomic":false}`)
	var statuses []any
	for _, r := range got.json["results"].([]any) {
		statuses = append(statuses, r.(map[string]any)["status"])
	}
	if have, want := fmt.Sprint(statuses), "[<nil> 429 404 422 422 422 429 422 <nil> 429]"; have != want {
		t.Errorf("statuses %s, want %s: %s", have, want, got.text)
	}
	many := `{"hits":[` + strings.Repeat(`{"customer":"acme","meter":"requests"},`, 1000) + `{"customer":"acme","meter":"requests"}]}`
	for _, f := range []struct {
		status      int
		field, body string
	}{
		{422, "hits", `{}`},
		{422, "hits", `{"hits":null}`},
		{422, "hits", many},
		{422, "hits", `{"hits":{}}`},
		{422, "atomic", `{"hits":[],"atomic":null}`},
		{422, "atomic", `{"hits":[],"atomic":1}`},
		{422, "hit", `{"hit":[]}`},
		{400, "", `{"hits":[`},
		{413, "", `{"hits":["` + strings.Repeat("x", request.MaxBatchBody) + `"]}`},
		{200, "", `{"hits":[]}`},
	} {
		got := n.do("POST", "/v1/hits/batch", f.body)
		if got.status != f.status {
			t.Errorf("%.60s: status %d, want %d: %s", f.body, got.status, f.status, got.text)
		} else if f.status == 422 {
			if at := got.json["errors"].([]any)[0].(map[string]any)["field"]; at != f.field {
				t.Errorf("%.60s: field %q, want %q", f.body, at, f.field)
			}
		}
	}
}

// seats, a calendar's window and one from the first hit, beside each other: what each says
// of its window, its reset and the wait for it.
func TestEachAlgorithmAnswers(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(`{"name":"seats","meter":"requests","algorithm":"allocation","limit":3},
		{"name":"monthly","meter":"requests","algorithm":"fixed_window","limit":10,"window":"calendar_month"},
		{"name":"period","meter":"requests","algorithm":"fixed_window","limit":10,"window":"billing_period"},
		{"name":"first","meter":"requests","algorithm":"fixed_window","limit":10,"window":"90m","align":"first_hit"},
		{"name":"sliding","meter":"requests","algorithm":"sliding_window","limit":10,"window":"1h"}`)
	limits := func(r reply) (all []map[string]any) {
		for _, l := range r.json["limits"].([]any) {
			all = append(all, l.(map[string]any))
		}
		return all
	}
	windows := []any{nil, "calendar_month", "billing_period", "90m", "1h"}
	look := n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":0}`)
	for i, l := range limits(look) {
		if l["window"] != windows[i] || l["reset_at"] != look.json["at"] || l["used"] != 0.0 {
			t.Errorf("untouched: %v", l)
		}
	}
	if h := look.header["X-Ratelimit-Reset"]; len(h) != 1 || h[0] != "0" {
		t.Errorf("X-RateLimit-Reset of untouched seats: %v", h)
	}
	admitted := n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":3}`)
	refused := n.want(429, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	standing := n.want(200, "GET", "/v1/customers/acme/quota", "")
	for _, r := range []reply{admitted, refused, standing} {
		for i, l := range limits(r) {
			if l["window"] != windows[i] || l["used"] != 3.0 || (l["reset_at"] == nil) != (i == 0) {
				t.Errorf("used: %v", l)
			}
		}
	}
	if refused.json["retry_after_ms"] != nil || refused.header.Get("Retry-After") != "" || fmt.Sprint(refused.json["violated-policies"]) != "[seats]" {
		t.Errorf("refused: %s", refused.text)
	}
	for _, r := range []reply{admitted, refused} {
		if r.header.Get("X-RateLimit-Remaining") != "0" || r.header.Get("X-RateLimit-Limit") != "3" || r.header.Get("X-RateLimit-Reset") != "" {
			t.Errorf("headers: %v", r.header)
		}
		states, err := httpsfv.UnmarshalList(r.header.Values("RateLimit"))
		check(t, err)
		policies, err := httpsfv.UnmarshalList(r.header.Values("RateLimit-Policy"))
		check(t, err)
		for i, w := range []any{nil, nil, nil, int64(5400), int64(3600)} {
			left, timed := states[i].(httpsfv.Item).Params.Get("t")
			if got, _ := policies[i].(httpsfv.Item).Params.Get("w"); got != w || timed != (i > 0) {
				t.Errorf("policy %d: w=%v t=%v, want w=%v", i, got, left, w)
			}
		}
	}
	// The first hit began its window when it came.
	at, err := time.Parse(time.RFC3339Nano, admitted.json["at"].(string))
	check(t, err)
	if reset := limits(refused)[3]["reset_at"]; reset != at.Add(90*time.Minute).Format(time.RFC3339Nano) {
		t.Errorf("a window of 90m from %v ends %v", at, reset)
	}
}

// A plan says of each limit what it has, and nothing else.
func TestPlansOfEachAlgorithm(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(`{"name":"seats","meter":"requests","algorithm":"allocation","limit":3},
		{"name":"monthly","meter":"requests","algorithm":"fixed_window","limit":10,"window":"calendar_month"},
		{"name":"first","meter":"requests","algorithm":"fixed_window","limit":10,"window":"90m","align":"first_hit"},
		{"name":"clock","meter":"requests","algorithm":"fixed_window","limit":10,"window":"90m"},
		{"name":"sliding","meter":"requests","algorithm":"sliding_window","limit":10,"window":"1h"}`)
	got := n.want(200, "GET", "/v1/plans/pro", "")
	want := `"limits":[{"meter":"requests","name":"seats","algorithm":"allocation","limit":3,"mode":"hard","on_outage":"allow"},` +
		`{"meter":"requests","name":"monthly","algorithm":"fixed_window","limit":10,"window":"calendar_month","mode":"hard","on_outage":"allow"},` +
		`{"meter":"requests","name":"first","algorithm":"fixed_window","limit":10,"window":"90m","align":"first_hit","mode":"hard","on_outage":"allow"},` +
		`{"meter":"requests","name":"clock","algorithm":"fixed_window","limit":10,"window":"90m","align":"clock","mode":"hard","on_outage":"allow"},` +
		`{"meter":"requests","name":"sliding","algorithm":"sliding_window","limit":10,"window":"1h","mode":"hard","on_outage":"allow"}]`
	if !strings.Contains(got.text, want) {
		t.Errorf("got  %s\nwant %s", got.text, want)
	}
	// What was read can be written again, and means the same.
	begin, end := strings.Index(got.text, `"limits":[`), strings.Index(got.text, `,"prices"`)
	n.want(201, "PUT", "/v1/plans/again", `{"name":"Again","currency":"USD","interval":"month","base_price_minor":0,`+got.text[begin:end]+`}`)
	if again := n.want(200, "GET", "/v1/plans/again", ""); !strings.Contains(again.text, want) {
		t.Errorf("again: %s", again.text)
	}
}
