package api

import (
	"fmt"
	"strings"
	"testing"

	"quotad/internal/testkit/pgtest"
)

const ofScheduled = "/v1/customers/acme/scheduled-change"

// scheduledNode has plans of one limit each, with and without base prices in advance.
func scheduledNode(t *testing.T, url string) *node {
	t.Helper()
	n := newNodeOn(t, url)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-10T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/meters/calls", `{"unit":"call"}`)
	for key, p := range map[string]string{
		"small":  `"currency":"USD","interval":"month","base_price_minor":1000,"base_in":"advance"|10|0.01`,
		"large":  `"currency":"USD","interval":"month","base_price_minor":5000,"base_in":"advance"|100|0.02`,
		"yearly": `"currency":"USD","interval":"month","base_price_minor":12000,"base_in":"advance","base_every":12|10|0.01`,
		"weekly": `"currency":"USD","interval":"week","base_price_minor":700,"base_in":"advance"|100|0.02`,
		"daily":  `"currency":"USD","interval":"day","base_price_minor":100|10|0.01`,
		"free":   `"currency":"USD","interval":"day","base_price_minor":0|100|0`,
		"euro":   `"currency":"EUR","interval":"month","base_price_minor":5000|100|0.02`,
	} {
		of := strings.Split(p, "|")
		n.want(201, "PUT", "/v1/plans/"+key, `{"name":"P",`+of[0]+`,"limits":[
			{"name":"day","meter":"calls","algorithm":"fixed_window","limit":`+of[1]+`,"window":"calendar_month"},
			{"name":"pace","meter":"calls","algorithm":"token_bucket","limit":`+of[1]+`,"window":"10h","burst":1000}],
			"prices":[{"meter":"calls","model":"per_unit","unit_price":"`+of[2]+`"}]}`)
	}
	return n
}

// joins makes the customer on the clock, since January 1, 2026.
func (n *node) joins(plan string) {
	n.t.Helper()
	n.want(201, "PUT", "/v1/customers/"+n.customer, `{"name":"C","plan":"`+plan+`","billing_anchor":"2026-01-01T00:00:00","test_clock":"`+n.testClock+`"}`)
}

// ofScheduled is the path of the change that waits for the customer.
func (n *node) ofScheduled() string { return "/v1/customers/" + n.customer + "/scheduled-change" }

func (n *node) scheduled(status int, body string) reply {
	n.t.Helper()
	return n.want(status, "PUT", n.ofScheduled(), body)
}

// call charges units, and holds that the limits are those of a plan.
func (n *node) call(status, cost, limit int) reply {
	n.t.Helper()
	got := n.want(status, "POST", "/v1/hits", fmt.Sprintf(`{"customer":"acme","meter":"calls","cost":%d}`, cost))
	if have := got.json["limits"].([]any)[0].(map[string]any)["limit"]; have != float64(limit) {
		n.t.Errorf("judged by a limit of %v, not %d: %s", have, limit, got.text)
	}
	return got
}

// on holds the plan that the customer is on, and what waits, in the customer and in its quota.
func (n *node) on(plan, waits string) {
	n.t.Helper()
	for _, path := range []string{"/v1/customers/" + n.customer, "/v1/customers/" + n.customer + "/quota"} {
		got, at := n.want(200, "GET", path, ""), ""
		if s, ok := got.json["scheduled_change"].(map[string]any); ok {
			at = fmt.Sprintf("%v %v %v", s["plan"], s["plan_version"], s["at"])
		}
		if got.json["plan"] != plan || at != waits {
			n.t.Errorf("%s: on %v, waits %q; want %s, %q", path, got.json["plan"], at, plan, waits)
		}
	}
}

// A hit a microsecond before the end of the period is judged by the old plan, and one at that instant
// by the new one, without a write. What was used stays used, the bucket is refilled by the rate that
// counted, and the invoice of the period holds the new base.
func TestScheduledChange(t *testing.T) {
	t.Parallel()
	n := scheduledNode(t, pgtest.NewDatabase(t))
	n.joins("small")
	tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	n.want(404, "GET", ofScheduled, "")
	n.want(404, "DELETE", ofScheduled, "")
	n.scheduled(201, `{"plan":"free"}`)
	if got := n.scheduled(200, `{"plan":"large"}`); got.text != n.want(200, "GET", ofScheduled, "").text {
		t.Error(got.text)
	}
	if n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag") == tag {
		t.Error("the same entity tag")
	}
	n.on("small", "large 1 2026-02-01T00:00:00Z")
	n.want(204, "DELETE", ofScheduled, "")
	n.on("small", "")
	n.scheduled(201, `{"plan":"large"}`)
	if got := n.want(200, "GET", "/v1/customers/acme/invoices/upcoming", ""); !strings.Contains(got.text, `"amount_minor":5000`) {
		t.Errorf("the coming base is not in %s", got.text)
	}
	n.call(200, 10, 10)
	// The window ends with the month, and so does the plan.
	n.setTo("2026-01-31T23:59:59.999999Z")
	if got := n.call(429, 1, 10); got.json["retry_after_ms"] != 1.0 {
		t.Error(got.text)
	}
	n.on("small", "large 1 2026-02-01T00:00:00Z")
	n.setTo("2026-02-01T00:00:00Z")
	n.on("large", "")
	n.call(200, 90, 100)
	n.want(404, "GET", ofScheduled, "")
	n.setTo("2026-01-31T00:00:00Z") // once done it stays done
	n.on("large", "")
	n.setTo("2026-02-03T00:00:00Z")
	n.want(200, "PUT", "/v1/customers/acme/billing", `{"buyer":{"name":"A"}}`) // it is written into the customer first
	n.on("large", "")
	n.call(200, 10, 100)
	n.call(429, 1, 100)
	n.settled("2026-02-10T00:00:00Z")
	n.sayYearly(
		"2026-01-10 opening, base 2026-01-10/2026-02-01 710", // 22 of 31 days, rounded by the month
		"2026-01-10 period, base 2026-02-01/2026-03-01 5000",
	)
}

// The rate that a bucket is refilled by changes at the instant of the change, before anybody writes
// anything and after that.
func TestScheduledRates(t *testing.T) {
	t.Parallel()
	n := scheduledNode(t, pgtest.NewDatabase(t))
	n.joins("small")
	pace := func() any {
		return n.want(200, "GET", "/v1/customers/acme/quota", "").json["limits"].([]any)[1].(map[string]any)["remaining"]
	}
	n.setTo("2026-01-31T22:00:00Z")
	n.want(201, "PUT", "/v1/customers/acme/overrides/day", `{"limit":100000}`)
	n.scheduled(201, `{"plan":"large"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"calls","cost":1000}`)
	n.setTo("2026-01-31T23:00:00Z")
	n.setTo("2026-02-01T02:00:00Z") // 2 hours at one an hour, 2 at ten an hour
	if got := pace(); got != 22.0 {
		t.Errorf("%v are back, want 22", got)
	}
	n.want(200, "PUT", ofSuspension, `{"reason":"x"}`)
	n.want(204, "DELETE", ofSuspension, "")
	if got := pace(); got != 22.0 {
		t.Errorf("%v are back after the change was written, want 22", got)
	}
	n.setTo("2026-02-01T03:00:00Z")
	if got := pace(); got != 32.0 {
		t.Errorf("%v are back, want 32", got)
	}
}

// What moves the end of the period moves the change along, and what takes its place takes it away.
func TestScheduledChangeMoves(t *testing.T) {
	t.Parallel()
	shared := scheduledNode(t, pgtest.NewDatabase(t))
	for _, c := range []struct {
		name, plan, body string
		do               func(n *node)
		want             string // what waits after that
	}{
		{"nothing", "small", `{"plan":"large"}`, func(*node) {}, "large 1 2026-02-01T00:00:00Z"},
		{"of a year", "yearly", `{"plan":"large"}`, func(*node) {}, "large 1 2027-01-01T00:00:00Z"},
		{"of a month", "yearly", `{"plan":"large","when":"period_end"}`, func(*node) {}, "large 1 2026-02-01T00:00:00Z"},
		{"no base", "small", `{"plan":"large","when":"base_end"}`, func(*node) {}, "large 1 2026-02-01T00:00:00Z"},
		{
			"another day", "yearly", `{"plan":"large"}`, func(n *node) { n.writes2(`"plan":"yearly","billing_anchor":"2026-01-05T00:00:00"`) },
			"large 1 2026-02-01T00:00:00Z",
		},
		{
			"at once", "small", `{"plan":"large"}`, func(n *node) { n.writes2(`"plan":"small","billing_anchor":"2026-01-05T00:00:00","change":"now"`) },
			"large 1 2026-02-05T00:00:00Z",
		},
		{
			"a trial", "small", `{"plan":"large"}`, func(n *node) { n.bill(200, n.customer, `{"trial_ends_at":"2026-01-20T00:00:00Z"}`) },
			"large 1 2026-01-20T00:00:00Z",
		},
		{
			"a name", "small", `{"plan":"large"}`, func(n *node) { n.writes2(`"plan":"small","billing_anchor":"2026-01-01T00:00:00"`) },
			"large 1 2026-02-01T00:00:00Z",
		},
		{
			"a later end", "small", `{"plan":"large"}`, func(n *node) { n.bill(200, n.customer, `{"ends_at":"2026-02-01T00:00:00.000001Z"}`) },
			"large 1 2026-02-01T00:00:00Z",
		},
		{"an end", "small", `{"plan":"large"}`, func(n *node) { n.bill(200, n.customer, `{"ends_at":"2026-02-01T00:00:00Z"}`) }, ""},
		{"its end", "small", `{"plan":"large"}`, func(n *node) { n.bill(200, n.customer, `{"ends_at":"period_end"}`) }, ""},
		{"another", "small", `{"plan":"large"}`, func(n *node) { n.writes2(`"plan":"free","change":"limits_now"`) }, ""},
		{"a pin", "small", `{"plan":"large"}`, func(n *node) { n.writes2(`"plan":"small","plan_version":1,"change":"limits_now"`) }, ""},
		// These two write versions 2 and 3 of the plan, so they come last.
		{"pinned", "small", `{"plan":"large","plan_version":1}`, func(n *node) { n.version("large") }, "large 1 2026-02-01T00:00:00Z"},
		{"for all", "small", `{"plan":"large"}`, func(n *node) { n.version("large") }, "large 3 2026-02-01T00:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := *shared
			n.t, n.customer, n.testClock = t, strings.ReplaceAll(c.name, " ", "-"), strings.ReplaceAll(c.name, " ", "-")
			n.want(201, "PUT", "/v1/test-clocks/"+n.testClock, `{"now":"2026-01-10T00:00:00Z"}`)
			n.joins(c.plan)
			n.scheduled(201, c.body)
			c.do(&n)
			plan := n.want(200, "GET", "/v1/customers/"+n.customer, "").json["plan"].(string)
			n.on(plan, c.want)
			if c.want == "" {
				n.want(404, "GET", n.ofScheduled(), "")
			}
			after := "2026-03-03T00:00:00Z" // all that may wait is over, and a daily plan has closed two months
			if c.plan == "yearly" {
				after = "2027-01-03T00:00:00Z"
			}
			n.settled(after)
			if c.want != "" {
				n.on("large", "")
			}
		})
	}
	if got := shared.want(200, "GET", "/v1/reconcile", ""); got.json["ok"] != true {
		t.Error(got.text)
	}
}

// version writes another version of a plan, for all.
func (n *node) version(plan string) {
	n.t.Helper()
	got := n.want(200, "GET", "/v1/plans/"+plan, "")
	n.want(201, "PUT", "/v1/plans/"+plan, `{"name":"After `+fmt.Sprint(got.json["version"])+`","currency":"USD","interval":"month","base_price_minor":6000,"base_in":"advance","apply_to":"all",
		"limits":[{"name":"day","meter":"calls","algorithm":"fixed_window","limit":100,"window":"calendar_month"}],
		"prices":[{"meter":"calls","model":"per_unit","unit_price":"0.02"}]}`, "If-Match", got.header.Get("ETag"))
}

// writes2 writes the customer with its entity tag.
func (n *node) writes2(members string) {
	n.t.Helper()
	path := "/v1/customers/" + n.customer
	n.want(200, "PUT", path, `{"name":"D",`+members+`}`, "If-Match", n.want(200, "GET", path, "").header.Get("ETag"))
}

// A plan with another interval: the periods of the old plan end with the change, and those of the new
// one begin there.
func TestScheduledInterval(t *testing.T) {
	t.Parallel()
	n := scheduledNode(t, pgtest.NewDatabase(t))
	n.joins("small")
	n.scheduled(201, `{"plan":"weekly"}`)
	n.scheduled(200, `{"plan":"weekly"}`) // it replaces itself
	n.want(204, "DELETE", ofScheduled, "")
	if got := n.runs("acme"); got != "2026-01-10 2026-02-01 0 1" {
		t.Error(got)
	}
	var former int
	check(t, n.server.Store.Pool().QueryRow(t.Context(), `SELECT jsonb_array_length(former_periods) FROM customers`).Scan(&former))
	if former > 0 {
		t.Error("former periods of the change that was dropped are left")
	}
	n.scheduled(201, `{"plan":"weekly"}`)
	if got := n.runs("acme"); got != "2026-01-10 2026-02-01 0 1" {
		t.Error(got)
	}
	// A week of the anchor's begins on January 29, so the first one lasts until February 5: 4 of 7 days.
	n.setTo("2026-02-01T00:00:00Z")
	if got := n.runs("acme"); got != "2026-02-01 2026-02-05 0 1" {
		t.Error(got)
	}
	n.settled("2026-02-13T00:00:00Z")
	n.sayYearly(
		"2026-01-10 opening, base 2026-01-10/2026-02-01 710", // 22 of 31 days, rounded by the month
		"2026-01-10 period, base 2026-02-01/2026-02-05 400",
		"2026-02-01 period, base 2026-02-05/2026-02-12 700",
		"2026-02-05 period, base 2026-02-12/2026-02-19 700",
	)
}

func TestScheduledFaults(t *testing.T) {
	t.Parallel()
	n := scheduledNode(t, pgtest.NewDatabase(t))
	n.joins("small")
	for body, field := range map[string]string{
		`{}`:                                    "plan",
		`{"plan":"nothing"}`:                    "plan",
		`{"plan":"a b"}`:                        "plan",
		`{"plan":"large","plan_version":2}`:     "plan_version",
		`{"plan":"large","plan_version":0}`:     "plan_version",
		`{"plan":"large","when":"tomorrow"}`:    "when",
		`{"plan":"large","change":"now"}`:       "change",
		`{"plan":"large","when":"period_end",}`: "",
	} {
		got := n.do("PUT", ofScheduled, body)
		if field == "" {
			if got.status != 400 {
				t.Errorf("%s: %d", body, got.status)
			}
			continue
		}
		if got.status != 422 || got.json["errors"].([]any)[0].(map[string]any)["field"] != field {
			t.Errorf("%s: %d %s, want 422 about %s", body, got.status, got.text, field)
		}
	}
	n.want(404, "PUT", "/v1/customers/nobody/scheduled-change", `{"plan":"large"}`)
	n.want(409, "PUT", ofScheduled, `{"plan":"euro"}`)
	n.setTo("2026-01-31T23:59:58.000001Z")
	n.want(409, "PUT", ofScheduled, `{"plan":"large"}`) // too soon
	n.setTo("2026-01-31T23:59:58Z")
	n.scheduled(201, `{"plan":"large"}`)
	n.bill(200, "acme", `{"ends_at":"2026-02-01T00:00:00Z"}`)
	n.want(409, "PUT", ofScheduled, `{"plan":"large"}`) // billing ends by then
	n.setTo("2026-02-02T00:00:00Z")
	n.want(409, "PUT", ofScheduled, `{"plan":"large"}`) // no period runs
	n.on("small", "")
	n.want(204, "DELETE", "/v1/customers/acme", "")
	n.want(409, "PUT", ofScheduled, `{"plan":"large"}`)
	n.want(409, "DELETE", ofScheduled, "")
}

// Another plan or pin where either costs anything says when it counts. Else nothing is asked.
func TestChangeMustBeSaid(t *testing.T) {
	t.Parallel()
	n := scheduledNode(t, pgtest.NewDatabase(t))
	n.want(201, "PUT", "/v1/plans/gratis", `{"name":"G","currency":"USD","interval":"month","base_price_minor":0,
		"prices":[{"meter":"calls","model":"graduated","tiers":[{"up_to":5,"unit_price":"0.00","flat_price":"0"},{"unit_price":"0"}]}]}`)
	n.want(201, "PUT", "/v1/plans/least", `{"name":"L","currency":"USD","interval":"month","base_price_minor":0,"minimum_minor":1}`)
	n.want(201, "PUT", "/v1/plans/tiered", `{"name":"T","currency":"USD","interval":"month","base_price_minor":0,
		"prices":[{"meter":"calls","model":"graduated","tiers":[{"up_to":5,"unit_price":"0"},{"unit_price":"0","flat_price":"0.01"}]}]}`)
	tag := ""
	put := func(status int, members string) reply {
		t.Helper()
		got := n.want(200, "GET", "/v1/customers/acme", "")
		tag = got.header.Get("ETag")
		return n.want(status, "PUT", "/v1/customers/acme", `{"name":"C","billing_anchor":"2026-01-01T00:00:00",`+members+`}`, "If-Match", tag)
	}
	refused := func(members string) {
		t.Helper()
		got := put(422, members)
		for _, choice := range []string{`"field":"change"`, `limits_now`, `scheduled-change`, `now`} {
			if !strings.Contains(got.text, choice) {
				t.Errorf("%s: %s lacks %s", members, got.text, choice)
			}
		}
		if is := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag"); is != tag {
			t.Errorf("%s: something was written", members)
		}
	}
	n.joins("free")
	put(200, `"plan":"gratis"`)
	put(200, `"plan":"gratis","plan_version":1`)
	put(200, `"plan":"gratis","plan_version":1,"timezone":"Asia/Tokyo"`)
	for _, costly := range []string{"small", "least", "tiered"} {
		refused(`"plan":"` + costly + `"`)
		put(200, `"plan":"`+costly+`","change":"limits_now"`)
		put(200, `"plan":"`+costly+`"`) // it is on that already
		put(200, `"plan":"`+costly+`","timezone":"Asia/Tokyo"`)
		refused(`"plan":"` + costly + `","plan_version":1`)
		refused(`"plan":"gratis"`)
		put(200, `"plan":"gratis","change":"now"`)
	}
	n.want(201, "PUT", "/v1/customers/acme/prices/calls", `{"model":"per_unit","unit_price":"1"}`)
	refused(`"plan":"free"`)
	n.want(204, "DELETE", "/v1/customers/acme/prices/calls", "")
	put(200, `"plan":"free"`)
	if got := put(422, `"plan":"small","change":"soon"`); !strings.Contains(got.text, `"field":"change"`) {
		t.Error(got.text)
	}
}
