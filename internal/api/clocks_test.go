package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// setClock sets the clock c1.
func (n *node) setClock(now string) {
	n.t.Helper()
	if got := n.do("PUT", "/v1/test-clocks/c1", fmt.Sprintf(`{"now":%q}`, now)); got.status != 200 && got.status != 201 || got.json["now"] != now {
		n.t.Fatalf("clock: %d %s", got.status, got.text)
	}
}

// onClock makes meter requests, a plan of the limits, and customer timed on it, in
// Berlin, by the clock c1.
func (n *node) onClock(now, limits string) {
	n.t.Helper()
	n.setClock(now)
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	n.want(201, "PUT", "/v1/plans/pro",
		`{"name":"Pro","currency":"USD","interval":"month","base_price_minor":0,"prices":[],"meters":["requests"],"limits":[`+limits+`]}`)
	got := n.want(201, "PUT", "/v1/customers/timed",
		`{"name":"T","plan":"pro","timezone":"Europe/Berlin","test_clock":"c1","billing_anchor":"2026-01-31T00:00:00"}`)
	if got.json["test_clock"] != "c1" {
		n.t.Fatalf("%s", got.text)
	}
}

// hitAt sends a hit of customer timed and holds its instant and its clock.
func (n *node) hitAt(status int, cost int, at string) reply {
	n.t.Helper()
	got := n.want(status, "POST", "/v1/hits", fmt.Sprintf(`{"customer":"timed","meter":"requests","cost":%d}`, cost))
	if got.json["at"] != at || got.json["test_clock"] != "c1" {
		n.t.Errorf("%s: at %v by clock %v, want %s", got.text, got.json["at"], got.json["test_clock"], at)
	}
	return got
}

func (r reply) limit(i int) map[string]any {
	return r.json["limits"].([]any)[i].(map[string]any)
}

func TestTestClockRoutes(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/c1", `{"now":"2026-01-31T12:00:00+01:00"}`)
	n.want(200, "PUT", "/v1/test-clocks/c1", `{"now":"1970-01-01T00:00:00Z"}`)
	n.want(200, "PUT", "/v1/test-clocks/c1", `{"now":"2026-01-31T12:00:00.0000019Z"}`)
	if got := n.want(200, "GET", "/v1/test-clocks/c1", ""); got.json["key"] != "c1" || got.json["now"] != "2026-01-31T12:00:00.000001Z" {
		t.Errorf("%s", got.text)
	}
	n.want(201, "PUT", "/v1/test-clocks/c0", `{"now":"9000-01-01T00:00:00Z"}`)
	got := n.want(200, "GET", "/v1/test-clocks?limit=1", "")
	if items := got.json["items"].([]any); len(items) != 1 || items[0].(map[string]any)["key"] != "c0" || got.json["next_cursor"] == nil {
		t.Errorf("%s", got.text)
	}
	if got := n.want(404, "GET", "/v1/test-clocks/none", ""); !strings.Contains(got.text, "PUT /v1/test-clocks/none") {
		t.Errorf("%s", got.text)
	}
	for _, body := range []string{
		`{}`, `{"now":""}`, `{"now":null}`, `{"now":5}`, `{"now":"soon"}`, `{"now":"2026-01-31"}`,
		`{"now":"1969-12-31T23:59:59.999999Z"}`, `{"now":"9000-01-01T00:00:00.000001Z"}`, `{"now":"2026-01-31T12:00:00Z","more":1}`,
	} {
		if got := n.want(422, "PUT", "/v1/test-clocks/c1", body); !strings.Contains(got.text, "now") && !strings.Contains(got.text, "more") {
			t.Errorf("%s: %s", body, got.text)
		}
	}
	n.want(400, "PUT", "/v1/test-clocks/c1", `{`)
	n.want(422, "PUT", "/v1/test-clocks/a%20b", `{"now":"2026-01-31T12:00:00Z"}`)
	for _, scope := range []string{"backend", "read"} {
		n.want(403, "PUT", "/v1/test-clocks/c1", `{"now":"2026-01-31T12:00:00Z"}`, "Authorization", n.key(scope))
		n.want(403, "GET", "/v1/test-clocks", "", "Authorization", n.key(scope))
	}
}

func TestCustomersOnATestClock(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.setClock("2026-01-31T12:00:00Z")
	const on = `{"name":"x","plan":"pro","timezone":"UTC","test_clock":"c1"}`
	if got := n.want(201, "PUT", "/v1/customers/timed", on); got.json["test_clock"] != "c1" || got.json["billing_anchor"] != "2026-01-31T12:00:00" ||
		got.json["anonymous"] != false {
		t.Errorf("%s", got.text)
	}
	if got := n.want(200, "PUT", "/v1/customers/timed", `{"name":"x","plan":"pro","timezone":"UTC"}`, "If-Match", "*"); got.json["test_clock"] != "c1" {
		t.Errorf("left out: %s", got.text)
	}
	n.want(200, "PUT", "/v1/customers/timed", on, "If-Match", "*")
	if got := n.want(200, "GET", "/v1/customers/acme", ""); got.json["test_clock"] != nil {
		t.Errorf("%s", got.text)
	}
	for what, got := range map[string]reply{
		"from real time": n.want(422, "PUT", "/v1/customers/acme", on, "If-Match", "*"),
		"no such clock":  n.want(422, "PUT", "/v1/customers/new", strings.Replace(on, "c1", "c2", 1)),
		"null":           n.want(422, "PUT", "/v1/customers/timed", strings.Replace(on, `"c1"`, "null", 1), "If-Match", "*"),
		"empty":          n.want(422, "PUT", "/v1/customers/new", strings.Replace(on, "c1", "", 1)),
	} {
		if !strings.Contains(got.text, `"field":"test_clock"`) {
			t.Errorf("%s: %s", what, got.text)
		}
	}
}

func TestAFixedWindowOnATestClock(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.onClock("2026-01-31T12:59:59.999999Z", hourly)
	got := n.hitAt(200, 5, "2026-01-31T12:59:59.999999Z")
	if got.limit(0)["reset_at"] != "2026-01-31T13:00:00Z" || got.header.Get("X-RateLimit-Reset") != "1" {
		t.Errorf("%s %v", got.text, got.header)
	}
	for range 2 { // the second from memory
		if got = n.hitAt(429, 1, "2026-01-31T12:59:59.999999Z"); got.json["retry_after_ms"] != 1.0 {
			t.Errorf("%s", got.text)
		}
	}
	n.setClock("2026-01-31T13:00:00Z")
	n.hitAt(200, 1, "2026-01-31T13:00:00Z")
	// Set back: the counter's time stays where it was charged last, and nothing is free.
	n.setClock("2026-01-31T12:00:00Z")
	n.hitAt(200, 4, "2026-01-31T13:00:00Z")
	n.hitAt(429, 1, "2026-01-31T13:00:00Z")
	n.hitAt(200, 0, "2026-01-31T13:00:00Z")
	n.setClock("2031-05-01T00:00:00Z")
	n.hitAt(200, 5, "2031-05-01T00:00:00Z")
	got = n.want(200, "POST", "/v1/hits/batch", `{"hits":[{"customer":"timed","meter":"requests"},{"customer":"timed","meter":"requests","dry_run":true}]}`)
	if strings.Count(got.text, `"test_clock":"c1"`) != 2 || strings.Count(got.text, `"at":"2031-05-01T00:00:00Z"`) != 2 {
		t.Errorf("%s", got.text)
	}
}

func TestATokenBucketRefillsByTheTestClock(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.onClock("2026-01-31T12:00:00Z", `{"name":"bucket","meter":"requests","algorithm":"token_bucket","limit":60,"window":"1h","burst":10}`)
	n.hitAt(200, 10, "2026-01-31T12:00:00Z")
	if got := n.hitAt(429, 1, "2026-01-31T12:00:00Z"); got.json["retry_after_ms"] != 60000.0 || got.header.Get("Retry-After") != "60" {
		t.Errorf("%s", got.text)
	}
	n.setClock("2026-01-31T12:02:59Z")
	n.hitAt(429, 3, "2026-01-31T12:02:59Z")
	n.hitAt(200, 2, "2026-01-31T12:02:59Z")
	n.setClock("2026-01-31T12:03:00Z")
	n.hitAt(200, 1, "2026-01-31T12:03:00Z")
}

func TestACalendarMonthEndsByTheTestClock(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.onClock("2026-01-31T22:59:59Z", `{"name":"monthly","meter":"requests","algorithm":"fixed_window","limit":5,"window":"calendar_month"}`)
	if got := n.hitAt(200, 5, "2026-01-31T22:59:59Z"); got.limit(0)["reset_at"] != "2026-01-31T23:00:00Z" {
		t.Errorf("%s", got.text)
	}
	n.hitAt(429, 1, "2026-01-31T22:59:59Z")
	n.setClock("2026-01-31T23:00:00Z") // midnight in Berlin
	if got := n.hitAt(200, 1, "2026-01-31T23:00:00Z"); got.limit(0)["reset_at"] != "2026-02-28T23:00:00Z" {
		t.Errorf("%s", got.text)
	}
}

func TestQuotaAndUsageByTheTestClock(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.onClock("2026-02-27T22:30:00Z", "")
	n.hitAt(200, 3, "2026-02-27T22:30:00Z")
	n.setClock("2026-02-27T23:30:00Z") // the anchor's day of February has begun in Berlin
	n.hitAt(200, 4, "2026-02-27T23:30:00Z")
	meter := func(got reply) map[string]any { return got.json["meters"].([]any)[0].(map[string]any) }
	got := n.want(200, "GET", "/v1/customers/timed/quota", "")
	if m := meter(got); got.json["at"] != "2026-02-27T23:30:00Z" || got.json["test_clock"] != "c1" || m["used"] != 4.0 ||
		m["period_start"] != "2026-02-27T23:00:00Z" || m["period_end"] != "2026-03-30T22:00:00Z" {
		t.Errorf("%s", got.text)
	}
	got = n.want(200, "GET", "/v1/customers/timed/usage?meter=requests&from=2026-02-26T23:00:00Z", "")
	points := got.json["points"].([]any)
	if got.json["test_clock"] != "c1" || len(points) != 2 ||
		fmt.Sprint(points[0], points[1]) != "map[admitted:3 denied:0 start:2026-02-26T23:00:00Z] map[admitted:4 denied:0 start:2026-02-27T23:00:00Z]" {
		t.Errorf("%s", got.text)
	}
	if got = n.want(200, "GET", "/v1/customers/timed/usage?meter=requests", ""); len(got.json["points"].([]any)) != 28 {
		t.Errorf("not the clock's month until now: %s", got.text)
	}
	n.setClock("2026-03-31T00:00:00Z")
	if m := meter(n.want(200, "GET", "/v1/customers/timed/quota", "")); m["used"] != 0.0 || m["period_start"] != "2026-03-30T22:00:00Z" {
		t.Errorf("%v", m)
	}
	n.setClock("2026-02-01T00:00:00Z")
	if m := meter(n.want(200, "GET", "/v1/customers/timed/quota", "")); m["period_start"] != "2026-01-30T23:00:00Z" ||
		m["period_end"] != "2026-02-27T22:30:00Z" || m["used"] != 0.0 { // before the customer was made
		t.Errorf("set back: %v", m)
	}
	// A plan without meters has nothing to read, and the customer's time all the same.
	n.want(201, "PUT", "/v1/plans/empty", `{"name":"E","currency":"USD","interval":"month","base_price_minor":0,"prices":[],"limits":[]}`)
	n.want(201, "PUT", "/v1/customers/bare", `{"name":"B","plan":"empty","timezone":"UTC","test_clock":"c1"}`)
	if got = n.want(200, "GET", "/v1/customers/bare/quota", ""); got.json["at"] != "2026-02-01T00:00:00Z" || got.json["test_clock"] != "c1" {
		t.Errorf("%s", got.text)
	}
}

// A node that has not heard yet that the clock was set does not judge by the old setting
// what was judged by the new one.
func TestAnOlderSettingOfTheTestClockIsStale(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n, other := newNodeOn(t, url), newNodeOn(t, url)
	n.onClock("2026-01-31T12:00:00Z", hourly)
	for i, now := range []string{"2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z", "2026-02-03T00:00:00Z"} {
		testkit.Eventually(t, "the other node knows the customer", func() bool {
			return other.do("POST", "/v1/hits", `{"customer":"timed","meter":"requests","cost":0}`).status == 200
		})
		held, err := n.server.Catalog.Resolve(t.Context(), "timed", "requests", 0)
		check(t, err)
		n.setClock(now)
		n.hitAt(200, 4, now)
		check(t, other.server.Catalog.CatchUp(t.Context(), n.server.Catalog.Applied())) // it has a second for it
		other.hitAt(200, 1, now)
		other.hitAt(429, 1, now)
		for what, judge := range map[string]func(context.Context, *model.Target, int64) (model.Decision,
			error){"charge": n.server.Engine.Decide, "look": n.server.Engine.Look} {
			d, err := judge(t.Context(), held, 1)
			if stale, ok := errors.AsType[*model.StaleError](err); !ok || stale.Change <= held.Change {
				t.Errorf("%d: %s by the older setting: %+v %v", i, what, d, err)
			}
		}
	}
}
