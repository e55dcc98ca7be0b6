package api

import (
	"strings"
	"testing"
)

// TestWindowStart: the quota answer says when each running window began, by the customer's
// calendar. The clocks of Berlin go forward on 2026-03-29, so this day has 23 hours, its week 167,
// and its month 743.
func TestWindowStart(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	const fixed = `,"meter":"requests","algorithm":"fixed_window","limit":100,`
	n.onClock("2026-02-15T12:00:00Z", `{"name":"day"`+fixed+`"window":"calendar_day"},{"name":"week"`+fixed+`"window":"calendar_week"},
		{"name":"month"`+fixed+`"window":"calendar_month"},{"name":"year"`+fixed+`"window":"calendar_year"},
		{"name":"period"`+fixed+`"window":"billing_period"},{"name":"twohours"`+fixed+`"window":"2h"},
		{"name":"first"`+fixed+`"window":"7d","align":"first_hit"},{"name":"ip"`+fixed+`"window":"calendar_month","per":"ip"},
		{"name":"sliding","meter":"requests","algorithm":"sliding_window","limit":100,"window":"1d"},
		{"name":"log","meter":"requests","algorithm":"sliding_log","limit":100,"window":"1d"},
		{"name":"bucket","meter":"requests","algorithm":"token_bucket","limit":100,"window":"1d"},
		{"name":"seats","meter":"requests","algorithm":"allocation","limit":100},
		{"name":"together","meter":"requests","algorithm":"concurrency","limit":100,"ttl":"1h"}`)
	check := func(want map[string]any) {
		t.Helper()
		got := n.want(200, "GET", "/v1/customers/timed/quota", "")
		for i := range got.json["limits"].([]any) {
			l := got.limit(i)
			start, said := l["window_start"]
			if !said || start != want[l["name"].(string)] {
				t.Errorf("%v of %v began at %v, want %v", l["name"], got.json["at"], start, want[l["name"].(string)])
			}
		}
		if meter := got.json["meters"].([]any)[0].(map[string]any); meter["period_start"] != want["period"] {
			t.Errorf("the period began at %v, want %v", meter["period_start"], want["period"])
		}
	}
	n.setClock("2026-03-29T12:00:00Z")
	if got := n.hitAt(200, 1, "2026-03-29T12:00:00Z"); strings.Contains(got.text, "window_start") {
		t.Errorf("a hit says it, too: %s", got.text)
	}
	want := map[string]any{
		"day": "2026-03-28T23:00:00Z", "week": "2026-03-22T23:00:00Z", "month": "2026-02-28T23:00:00Z", "year": "2025-12-31T23:00:00Z",
		"period": "2026-02-27T23:00:00Z", "twohours": "2026-03-29T12:00:00Z", "first": "2026-03-29T12:00:00Z", "ip": "2026-02-28T23:00:00Z",
		"sliding": "2026-03-29T00:00:00Z",
	}
	check(want)
	n.setClock("2026-03-31T10:30:00Z")
	want = map[string]any{
		"day": "2026-03-30T22:00:00Z", "week": "2026-03-29T22:00:00Z", "month": "2026-02-28T23:00:00Z", "year": "2025-12-31T23:00:00Z",
		"period": "2026-03-30T22:00:00Z", "twohours": "2026-03-31T10:00:00Z", "first": "2026-03-29T12:00:00Z", "ip": "2026-02-28T23:00:00Z",
		"sliding": "2026-03-31T00:00:00Z",
	}
	check(want)
	n.setClock("2026-04-06T00:00:00Z") // the first window is over, and no hit has begun another
	want["day"], want["week"], want["month"] = "2026-04-05T22:00:00Z", "2026-04-05T22:00:00Z", "2026-03-31T22:00:00Z"
	want["ip"], want["twohours"], want["sliding"], want["first"] = want["month"], "2026-04-06T00:00:00Z", "2026-04-06T00:00:00Z", nil
	check(want)
}
