package main

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
)

// bad is one wrong request and what it is answered: the problem's type without
// /problems/, and for a 422 the fields that errors lists, in any order; (body) is the
// body as a whole.
type bad struct {
	name, method, path, body string
	headers                  []string
	status                   int
	kind                     string
	fields                   string
}

func (b *bad) check(t *testing.T, n *testNode) {
	t.Helper()
	at := *n
	at.t = t
	a := at.do(b.method, b.path, b.body, b.headers...)
	a.is(b.status).has("type", "/problems/"+b.kind).has("status", b.status)
	a.headerIs("Content-Type", "application/problem+json").headerIs("Cache-Control", "no-store")
	if a.str("title") == "" || a.str("detail") == "" {
		t.Errorf("no title or no detail: %s", a.raw)
	}
	if b.status != 422 {
		return
	}
	list, _ := a.at("errors").([]any)
	got := map[string]bool{}
	for i := range list {
		field := a.str(fmt.Sprintf("errors.%d.field", i))
		got[cmp.Or(field, "(body)")] = true
		if a.str(fmt.Sprintf("errors.%d.detail", i)) == "" {
			t.Errorf("an error without detail: %s", a.raw)
		}
	}
	want := strings.Fields(b.fields)
	for _, field := range want {
		if !got[field] {
			t.Errorf("errors do not name %s: %s", field, a.raw)
		}
	}
	if len(got) != len(want) {
		t.Errorf("errors name %v, not %v: %s", got, want, a.raw)
	}
}

// refuseAll runs bad requests and makes sure that none of them charged or stored anything.
func refuseAll(t *testing.T, n *testNode, list []bad) {
	t.Helper()
	is := storing(t, n.databaseURL)
	before := is(t)
	for _, b := range list {
		t.Run(b.name, func(t *testing.T) {
			b.check(t, n)
			if after := is(t); after != before {
				t.Errorf("something was charged or stored.\nbefore:\n%s\nafter:\n%s", before, after)
				before = after
			}
		})
	}
}

var (
	long    = strings.Repeat("x", 201)
	control = `a\u0001b`
)

func hitOf(customer, meter, rest string) string {
	return fmt.Sprintf(`{"customer":"%s","meter":"%s"%s}`, customer, meter, rest)
}

func TestBadHits(t *testing.T) {
	t.Parallel()
	awayFromHoursEnd(t)
	n := start(t, "")
	n.setUp(hourly, daily)
	n.do("PUT", "/v1/meters/other", `{"unit":"thing"}`).is(201)
	n.hit(1).is(200) // so that there is a counter that could be touched
	on := func(name, body string, status int, kind, fields string, headers ...string) bad {
		return bad{name, "POST", "/v1/hits", body, headers, status, kind, fields}
	}
	invalid := func(name, rest, fields string) bad {
		return on(name, hitOf("acme", "requests", rest), 422, "invalid", fields)
	}
	refuseAll(t, n, []bad{
		on("no JSON", `{"customer":`, 400, "not-json", ""),
		on("empty", ` `, 400, "not-json", ""),
		on("two values", hitOf("acme", "requests", "")+"{}", 400, "not-json", ""),
		on("not UTF-8", "{\"customer\":\"a\xff\",\"meter\":\"requests\"}", 400, "not-json", ""),
		on("an array", `[]`, 422, "invalid", "(body)"),
		on("null", `null`, 422, "invalid", "(body)"),
		invalid("unknown field", `,"coast":2`, "coast"),
		invalid("a field twice", `,"cost":1,"cost":2`, "cost"),
		on("a wrong type", `{"customer":7,"meter":"requests"}`, 422, "invalid", "customer"),
		invalid("cost as text", `,"cost":"2"`, "cost"),
		invalid("cost null", `,"cost":null`, "cost"),
		invalid("negative cost", `,"cost":-1`, "cost"),
		invalid("fractional cost", `,"cost":1.5`, "cost"),
		invalid("cost with an exponent", `,"cost":1e3`, "cost"),
		invalid("huge cost", `,"cost":1000000000000000`, "cost"),
		invalid("cost beyond 64 bits", `,"cost":99999999999999999999999`, "cost"),
		invalid("attributes of a wrong type", `,"attributes":{"ip":7}`, "attributes.ip"),
		invalid("dry_run of a wrong type", `,"dry_run":1`, "dry_run"),
		invalid("an id of nothing", `,"id":""`, "id"),
		invalid("a long id", `,"id":"`+strings.Repeat("x", 256)+`"`, "id"),
		invalid("control characters in an id", `,"id":"`+control+`"`, "id"),
		on("Idempotency-Key that does not end", hitOf("acme", "requests", ""), 422, "invalid", "Idempotency-Key", `Idempotency-Key: "x`),
		on("two ids", hitOf("acme", "requests", `,"id":"x"`), 422, "invalid", "id", "Idempotency-Key: y"),
		on("no customer and no meter", `{}`, 422, "invalid", "customer meter"),
		on("empty names", hitOf("", "", ""), 422, "invalid", "customer meter"),
		on("long names", hitOf(long, long, ""), 422, "invalid", "customer meter"),
		on("control characters", hitOf(control, control, ""), 422, "invalid", "customer meter"),
		on("a slash", hitOf("a/b", "a/b", ""), 422, "invalid", "customer meter"),
		on("dots", hitOf("..", "requests", ""), 422, "invalid", "customer"),
		on("no ASCII", hitOf("Ümlaut", "mätre", ""), 422, "invalid", "customer meter"),
		on("unknown customer", hitOf("nobody", "requests", ""), 404, "not-found", ""),
		on("unknown meter", hitOf("acme", "nothing", ""), 404, "not-found", ""),
		on("meter not in plan", hitOf("acme", "other", ""), 403, "not-in-plan", ""),
		on("no content type", hitOf("acme", "requests", ""), 415, "unsupported-media-type", "", "Content-Type: "),
		on("another content type", hitOf("acme", "requests", ""), 415, "unsupported-media-type", "", "Content-Type: text/plain"),
		on("a content encoding", hitOf("acme", "requests", ""), 415, "unsupported-media-type", "", "Content-Encoding: gzip"),
		on("over 64 KiB", hitOf("acme", "requests", `,"attributes":{"a":"`+strings.Repeat("x", 64<<10)+`"}`), 413, "too-large", ""),
		{"deny_status", "POST", "/v1/hits?deny_status=500", hitOf("acme", "requests", ""), nil, 422, "invalid", "deny_status"},
		{"unknown parameter", "POST", "/v1/hits?denystatus=200", hitOf("acme", "requests", ""), nil, 422, "invalid", "denystatus"},
		on("no key", hitOf("acme", "requests", ""), 401, "unauthorized", "", "Authorization: "),
		on("a wrong key", hitOf("acme", "requests", ""), 401, "unauthorized", "", "Authorization: Bearer qk_wrong"),
		on("a key of another scheme", hitOf("acme", "requests", ""), 401, "unauthorized", "", "Authorization: Basic cXVvdGFkOng="),
		{"batch of nothing", "POST", "/v1/hits/batch", `{}`, nil, 422, "invalid", "hits"},
		{"atomic of a wrong type", "POST", "/v1/hits/batch", `{"hits":[],"atomic":1}`, nil, 422, "invalid", "atomic"},
		{"atomic batch of nobody", "POST", "/v1/hits/batch", `{"hits":[` + hitOf("acme", "requests", "") + `,` + hitOf("nobody", "requests", "") +
			`],"atomic":true}`, nil, 422, "invalid", "hits[1].customer"},
		{"atomic batch with a wrong hit", "POST", "/v1/hits/batch", `{"hits":[` + hitOf("acme", "requests", "") + `,` +
			hitOf("acme", "requests", `,"cost":-1`) + `],"atomic":true}`, nil, 422, "invalid", "hits[1].cost"},
		{"refund without an id", "POST", "/v1/refunds", hitOf("acme", "requests", `,"cost":1`), nil, 422, "invalid", "id"},
		{"refund of nothing", "POST", "/v1/refunds", hitOf("acme", "requests", `,"cost":0,"id":"r"`), nil, 422, "invalid", "cost"},
		{"refund of nobody", "POST", "/v1/refunds", hitOf("nobody", "requests", `,"cost":1,"id":"r"`), nil, 404, "not-found", ""},
		{"reservation without an end", "POST", "/v1/reservations", hitOf("acme", "requests", ""), nil, 422, "invalid", "ttl_ms"},
		{"reservation of over a day", "POST", "/v1/reservations", hitOf("acme", "requests", `,"ttl_ms":86400001`), nil, 422, "invalid", "ttl_ms"},
		{"reservation of nothing", "POST", "/v1/reservations", hitOf("acme", "requests", `,"ttl_ms":1000,"cost":0`), nil, 422, "invalid", "cost"},
		{"commit of no reservation", "POST", "/v1/reservations/rsv_x/commit", `{"cost":1}`, nil, 404, "not-found", ""},
		{"commit of nothing", "POST", "/v1/reservations/rsv_x/commit", `{}`, nil, 422, "invalid", "cost"},
		{"release of no reservation", "DELETE", "/v1/reservations/rsv_x", "", nil, 404, "not-found", ""},
		{"batch of too many", "POST", "/v1/hits/batch", `{"hits":[` + strings.Repeat("{},", 1000) + `{}]}`, nil, 422, "invalid", "hits"},
		{"batch over 1 MiB", "POST", "/v1/hits/batch", `{"hits":["` + strings.Repeat("x", 1<<20) + `"]}`, nil, 413, "too-large", ""},
	})
	n.hit(0).has("limits.0.used", 1).has("limits.1.used", 1)
}

func TestBadPlans(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	on := func(name, body, fields string) bad {
		return bad{name, "PUT", "/v1/plans/new", body, nil, 422, "invalid", fields}
	}
	limit := func(name, limit, fields string) bad { return on(name, planOf(limit), fields) }
	window := func(window string) bad {
		return limit("window "+window, fmt.Sprintf(`{"name":"l","meter":"requests","algorithm":"fixed_window","limit":1,"window":%q}`, window), "limits[0].window")
	}
	bucket := func(name, rest, fields string) bad {
		return limit(name, `{"name":"l","meter":"requests","algorithm":"token_bucket",`+rest+`}`, fields)
	}
	refuseAll(t, n, []bad{
		{"no JSON", "PUT", "/v1/plans/new", `{`, nil, 400, "not-json", ""},
		on("unknown field", strings.Replace(planOf(), `"name"`, `"colour":"red","name"`, 1), "colour"),
		on("unknown field of a limit", planOf(strings.Replace(hourly, `"name"`, `"colour":"red","name"`, 1)), "limits[0].colour"),
		on("nothing at all", `{}`, "name currency interval"),
		on("no name", strings.Replace(planOf(), `"Plan"`, `""`, 1), "name"),
		on("a name of control characters", strings.Replace(planOf(), `Plan`, `a\u0000b`, 1), "name"),
		on("unknown currency", strings.Replace(planOf(), `USD`, `QQQ`, 1), "currency"),
		on("unknown interval", strings.Replace(planOf(), `month`, `decade`, 1), "interval"),
		on("a negative price", strings.Replace(planOf(), `"base_price_minor":0`, `"base_price_minor":-1`, 1), "base_price_minor"),
		on("a negative minimum", strings.Replace(planOf(), `"base_price_minor":0`, `"minimum_minor":-1`, 1), "minimum_minor"),
		on("a base in between", strings.Replace(planOf(), `"base_price_minor":0`, `"base_in":"between"`, 1), "base_in"),
		on("a base for two months, in arrears", strings.Replace(planOf(), `"base_price_minor":0`, `"base_every":2`, 1), "base_every"),
		on("a base for no month", strings.Replace(planOf(), `"base_price_minor":0`, `"base_in":"advance","base_every":0`, 1), "base_every"),
		on("gold", strings.Replace(planOf(), `"USD"`, `"XAU"`, 1), "currency"),
		on("a fractional price", strings.Replace(planOf(), `"base_price_minor":0`, `"base_price_minor":0.5`, 1), "base_price_minor"),
		window("0s"), window("-1h"), window("1y"), window(""), window("1.5h"), window("h"), window("1h30m"), window("99999999999d"),
		limit("limit as text", strings.Replace(hourly, "5000", `"5000"`, 1), "limits[0].limit"),
		limit("negative limit", strings.Replace(hourly, "5000", `-1`, 1), "limits[0].limit"),
		limit("huge limit", strings.Replace(hourly, "5000", `1000000000000000`, 1), "limits[0].limit"),
		limit("unknown algorithm", strings.Replace(hourly, "fixed_window", `leaky`, 1), "limits[0].algorithm"),
		limit("a name with a slash", strings.Replace(hourly, `"hourly"`, `"a/b"`, 1), "limits[0].name"),
		limit("burst of a fixed window", strings.Replace(hourly, `5000`, `5000,"burst":7`, 1), "limits[0].burst"),
		bucket("negative burst", `"limit":10,"burst":-1,"window":"1h"`, "limits[0].burst"),
		bucket("closed, with a burst", `"limit":0,"burst":5,"window":"1h"`, "limits[0].burst"),
		// 10¹⁵−1 units in parts of a window that shares no divisor with the limit.
		bucket("cannot be held", `"limit":999999999999999,"window":"365d"`, "limits[0].limit"),
		on("two limits of one name", planOf(hourly, hourly), "limits[1].name"),
		on("an undeclared meter", planOf(strings.Replace(hourly, "requests", "nothing", 1)), "limits[0].meter"),
		on("an undeclared meter of the plan", strings.Replace(planOf(), `"prices"`, `"meters":["nothing"],"prices"`, 1), "meters[0]"),
		{"a name with a space in the path", "PUT", "/v1/plans/a%20b", planOf(), nil, 422, "invalid", "key"},
		{"a long name in the path", "PUT", "/v1/plans/" + long, planOf(), nil, 422, "invalid", "key"},
		{"an existing plan without If-Match", "PUT", "/v1/plans/basic", planOf(), nil, 428, "precondition-required", ""},
		{"a stale If-Match", "PUT", "/v1/plans/basic", planOf(), []string{`If-Match: "7"`}, 412, "precondition-failed", ""},
		{"a plan that is not there, with If-Match", "PUT", "/v1/plans/new", planOf(), []string{`If-Match: "1"`}, 412, "precondition-failed", ""},
		{"an If-Match that is none", "PUT", "/v1/plans/basic", planOf(), []string{`If-Match: 1`}, 422, "invalid", "If-Match"},
		{"over 64 KiB", "PUT", "/v1/plans/new", planOf(strings.Repeat(hourly+",", 1000) + hourly), nil, 413, "too-large", ""},
		{"unknown plan", "GET", "/v1/plans/nothing", "", nil, 404, "not-found", ""},
		{"unknown version", "GET", "/v1/plans/basic/versions/9", "", nil, 404, "not-found", ""},
		{"a page of too many", "GET", "/v1/plans?limit=1001", "", nil, 422, "invalid", "limit"},
		{"a cursor that is none", "GET", "/v1/plans?cursor=zzz", "", nil, 422, "invalid", "cursor"},
	})
}

func TestBadCustomersMetersAndKeys(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	on := func(name, body, fields string) bad {
		return bad{name, "PUT", "/v1/customers/new", body, nil, 422, "invalid", fields}
	}
	with := func(field, value string) string {
		return strings.Replace(onPlan, `"name"`, fmt.Sprintf(`%q:%s,"name"`, field, value), 1)
	}
	refuseAll(t, n, []bad{
		on("unknown field", with("colour", `"red"`), "colour"),
		on("nothing at all", `{}`, "name plan"),
		on("unknown plan", strings.Replace(onPlan, "basic", "nothing", 1), "plan"),
		on("unknown version", with("plan_version", "9"), "plan_version"),
		on("unknown timezone", strings.Replace(onPlan, "UTC", "Europe/Atlantis", 1), "timezone"),
		on("a timezone that is a path", strings.Replace(onPlan, "UTC", "../etc/passwd", 1), "timezone"),
		on("the machine's timezone", strings.Replace(onPlan, "UTC", "Local", 1), "timezone"),
		on("an anchor that is none", with("billing_anchor", `"2026-02-30T00:00:00"`), "billing_anchor"),
		on("a long name", strings.Replace(onPlan, "Customer", long, 1), "name"),
		on("a name of control characters", strings.Replace(onPlan, "Customer", control, 1), "name"),
		{"a control character in the path", "PUT", "/v1/customers/a%01b", onPlan, nil, 422, "invalid", "key"},
		{"a slash in the path", "PUT", "/v1/customers/a%2Fb", onPlan, nil, 422, "invalid", "key"},
		{"a long name in the path", "PUT", "/v1/customers/" + long, onPlan, nil, 422, "invalid", "key"},
		{"an existing customer without If-Match", "PUT", "/v1/customers/acme", onPlan, nil, 428, "precondition-required", ""},
		{"a stale If-Match", "PUT", "/v1/customers/acme", onPlan, []string{`If-Match: "0"`}, 412, "precondition-failed", ""},
		{"unknown customer", "GET", "/v1/customers/nobody", "", nil, 404, "not-found", ""},
		{"quota of an unknown customer", "GET", "/v1/customers/nobody/quota", "", nil, 404, "not-found", ""},
		{
			"usage of an unknown meter", "GET", "/v1/customers/acme/usage?meter=nothing&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z&granularity=hour",
			"", nil, 404, "not-found", "",
		},
		{"archiving an unknown customer", "DELETE", "/v1/customers/nobody", "", nil, 404, "not-found", ""},
		{"a meter without unit", "PUT", "/v1/meters/new", `{}`, nil, 422, "invalid", "unit"},
		{"a meter of a bad name", "PUT", "/v1/meters/a%2Fb", `{"unit":"x"}`, nil, 422, "invalid", "key"},
		{"a long unit", "PUT", "/v1/meters/new", `{"unit":"` + long + `"}`, nil, 422, "invalid", "unit"},
		{"unknown meter", "GET", "/v1/meters/nothing", "", nil, 404, "not-found", ""},
		{"a key without name and scope", "POST", "/v1/keys", `{}`, nil, 422, "invalid", "name scope"},
		{"a key of an unknown scope", "POST", "/v1/keys", `{"name":"k","scope":"root"}`, nil, 422, "invalid", "scope"},
		{"a key of the past", "POST", "/v1/keys", `{"name":"k","scope":"read","expires_at":"2001-01-01T00:00:00Z"}`, nil, 422, "invalid", "expires_at"},
		{"revoking an unknown key", "DELETE", "/v1/keys/key_nothing", "", nil, 404, "not-found", ""},
		{"usage of no meter", "GET", "/v1/customers/acme/usage", "", nil, 422, "invalid", "meter"},
		{"usage from no time", "GET", "/v1/customers/acme/usage?meter=requests&from=yesterday", "", nil, 422, "invalid", "from"},
		{
			"usage backwards", "GET", "/v1/customers/acme/usage?meter=requests&from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z&granularity=hour", "", nil,
			422, "invalid", "from",
		},
		{
			"usage of too many points", "GET", "/v1/customers/acme/usage?meter=requests&from=2016-01-01T00:00:00Z&to=2026-01-01T00:00:00Z&granularity=hour",
			"", nil, 422, "invalid", "granularity",
		},
	})
}
