package api

import (
	"fmt"
	"strings"
	"testing"
)

// TestPeriodsFollowAChange: another plan's limits count at once; its interval, and another
// anchor, from the next period on, or with change now from then on. Limits by billing
// period and the usage of a period go by the same boundaries.
func TestPeriodsFollowAChange(t *testing.T) {
	n := newNode(t)
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	for name, interval := range map[string]string{"monthly": "month", "weekly": "week"} {
		n.want(201, "PUT", "/v1/plans/"+name, fmt.Sprintf(`{"name":"P","currency":"USD","interval":%q,"limits":[
			{"name":"period","meter":"requests","algorithm":"fixed_window","limit":10,"window":"billing_period"},
			{"name":%q,"meter":"requests","algorithm":"allocation","limit":1000}]}`, interval, name))
	}
	clock := func(now string) {
		t.Helper()
		if got := n.do("PUT", "/v1/test-clocks/c", `{"now":"`+now+`"}`); got.status >= 300 {
			t.Fatal(got.text)
		}
	}
	put := func(fields string) {
		t.Helper()
		tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
		if !strings.Contains(fields, "timezone") {
			fields += `,"timezone":"Europe/Berlin"`
		}
		n.want(200, "PUT", "/v1/customers/acme", `{"name":"Acme",`+fields+`}`, "If-Match", tag)
	}
	hit := func(status int, cost int) {
		t.Helper()
		n.want(status, "POST", hitsPattern, fmt.Sprintf(`{"customer":"acme","meter":"requests","cost":%d}`, cost))
	}
	period := func(start, end string, used, left float64) {
		t.Helper()
		got := n.want(200, "GET", "/v1/customers/acme/quota", "")
		meter, limit := got.json["meters"].([]any)[0].(map[string]any), got.limits()["period"]
		if meter["period_start"] != start || meter["period_end"] != end || meter["used"] != used || limit["remaining"] != left || used > 0 && limit["reset_at"] != end {
			t.Errorf("period %v to %v with %v used, %v left until %v; want %s to %s, %v and %v", meter["period_start"], meter["period_end"],
				meter["used"], limit["remaining"], limit["reset_at"], start, end, used, left)
		}
	}
	clock("2026-03-10T12:00:00Z")
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"monthly","timezone":"Europe/Berlin","billing_anchor":"2026-01-31T00:00:00","test_clock":"c"}`)
	hit(200, 4)
	period("2026-02-27T23:00:00Z", "2026-03-30T22:00:00Z", 4, 6)

	put(`"plan":"weekly"`) // its limits at once, its weeks from the next period on
	if _, there := n.want(200, "GET", "/v1/customers/acme/quota", "").limits()["weekly"]; !there {
		t.Error("the other plan's limits do not count")
	}
	period("2026-02-27T23:00:00Z", "2026-03-30T22:00:00Z", 4, 6)
	hit(200, 6)
	hit(429, 1)
	clock("2026-03-30T21:59:59.999999Z")
	hit(429, 1)
	clock("2026-03-30T22:00:00Z")
	period("2026-03-30T22:00:00Z", "2026-04-03T22:00:00Z", 0, 10) // weeks from Saturday, January 31
	hit(200, 3)
	clock("2026-04-04T00:00:00Z")
	period("2026-04-03T22:00:00Z", "2026-04-10T22:00:00Z", 0, 10)
	hit(200, 5)

	put(`"plan":"monthly","billing_anchor":"2026-01-15T00:00:00"`)
	put(`"plan":"monthly","billing_anchor":"2026-01-20T00:00:00"`) // in place of what had not begun
	period("2026-04-03T22:00:00Z", "2026-04-10T22:00:00Z", 5, 5)
	clock("2026-04-11T00:00:00Z")
	period("2026-04-10T22:00:00Z", "2026-04-19T22:00:00Z", 0, 10)
	hit(200, 2)

	clock("2026-04-12T06:30:00.000001Z")
	hit(200, 1)
	put(`"plan":"weekly","change":"now"`)
	period("2026-04-12T06:30:00.000001Z", "2026-04-13T22:00:00Z", 0, 10)
	hit(200, 7)
	period("2026-04-12T06:30:00.000001Z", "2026-04-13T22:00:00Z", 7, 3)
	put(`"plan":"weekly","change":"now"`) // which changes nothing
	period("2026-04-12T06:30:00.000001Z", "2026-04-13T22:00:00Z", 7, 3)
	put(`"plan":"weekly","timezone":"America/New_York"`)
	period("2026-04-12T06:30:00.000001Z", "2026-04-13T22:00:00Z", 7, 3)
	clock("2026-04-13T22:00:00Z")
	period("2026-04-13T22:00:00Z", "2026-04-14T04:00:00Z", 0, 10) // weeks from Tuesday, January 20, there
	hit(200, 1)
	clock("2026-04-14T04:00:00Z")
	period("2026-04-14T04:00:00Z", "2026-04-21T04:00:00Z", 0, 10)
	clock("2026-04-15T00:00:00Z") // a full hour, in which something was used already
	hit(200, 2)
	put(`"plan":"monthly","timezone":"America/New_York","change":"now"`)
	period("2026-04-14T04:00:00Z", "2026-04-15T00:00:00.000001Z", 2, 8)
	clock("2026-04-15T00:00:00.000001Z")
	period("2026-04-15T00:00:00.000001Z", "2026-04-20T04:00:00Z", 0, 10)
	hit(200, 10)
	hit(429, 1)
	n.want(428, "PUT", "/v1/plans/weekly", `{"name":"P","currency":"USD","interval":"month"}`)
	if got := n.want(422, "PUT", "/v1/plans/weekly", `{"name":"P","currency":"USD","interval":"month"}`, "If-Match", "*"); !strings.Contains(got.text, "must stay week") {
		t.Error(got.text)
	}
	// The whole of it is what was admitted in all.
	points := n.want(200, "GET", "/v1/customers/acme/usage?meter=requests&granularity=month&from=2026-03-01T00:00:00Z", "").json["points"].([]any)
	total := 0.0
	for _, p := range points {
		total += p.(map[string]any)["admitted"].(float64)
	}
	if total != 4+6+3+5+2+1+7+1+2+10 {
		t.Errorf("%v units in all: %v", total, points)
	}
}
