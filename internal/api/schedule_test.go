package api

import (
	"fmt"
	"strings"
	"testing"

	"quotad/internal/api/hits"
)

// A schedule is acme, on a test clock, whose billing periods are looked at.
type schedule struct{ *node }

// clock sets the clock.
func (s schedule) clock(now string) {
	s.t.Helper()
	if got := s.do("PUT", "/v1/test-clocks/c", `{"now":"`+now+`"}`); got.status >= 300 {
		s.t.Fatal(got.text)
	}
}

// put writes acme with these members.
func (s schedule) put(fields string) {
	s.t.Helper()
	tag := s.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	if !strings.Contains(fields, "timezone") {
		fields += `,"timezone":"Europe/Berlin"`
	}
	s.want(200, "PUT", "/v1/customers/acme", `{"name":"Acme",`+fields+`}`, "If-Match", tag)
}

// hit charges units, or is refused.
func (s schedule) hit(status int, cost int) {
	s.t.Helper()
	s.want(status, "POST", hits.Pattern, fmt.Sprintf(`{"customer":"acme","meter":"requests","cost":%d}`, cost))
}

// period fails unless the running period is this one, of the usage and of the limit.
func (s schedule) period(start, end string, used, left float64) {
	s.t.Helper()
	got := s.want(200, "GET", "/v1/customers/acme/quota", "")
	meter, limit := got.json["meters"].([]any)[0].(map[string]any), got.limits()["period"]
	if meter["period_start"] != start || meter["period_end"] != end || meter["used"] != used || limit["remaining"] != left || used > 0 &&
		limit["reset_at"] != end {
		s.t.Errorf("period %v to %v with %v used, %v left until %v; want %s to %s, %v and %v", meter["period_start"], meter["period_end"],
			meter["used"], limit["remaining"], limit["reset_at"], start, end, used, left)
	}
}

// TestPeriodsFollowAChange: another plan's limits count at once; its interval, and another
// anchor, from the next period on, or with change now from then on. Limits by billing
// period and the usage of a period go by the same boundaries.
func TestPeriodsFollowAChange(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	s := schedule{n}
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	for name, interval := range map[string]string{"monthly": "month", "weekly": "week"} {
		n.want(201, "PUT", "/v1/plans/"+name, fmt.Sprintf(`{"name":"P","currency":"USD","interval":%q,"limits":[
			{"name":"period","meter":"requests","algorithm":"fixed_window","limit":10,"window":"billing_period"},
			{"name":%q,"meter":"requests","algorithm":"allocation","limit":1000}]}`, interval, name))
	}
	s.clock("2026-03-10T12:00:00Z")
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"monthly","timezone":"Europe/Berlin","billing_anchor":"2026-01-31T00:00:00","test_clock":"c"}`)
	s.hit(200, 4)
	s.period("2026-03-10T12:00:00Z", "2026-03-30T22:00:00Z", 4, 6) // it begins with the customer

	s.put(`"plan":"weekly"`) // its limits at once, its weeks from the next period on
	if _, there := n.want(200, "GET", "/v1/customers/acme/quota", "").limits()["weekly"]; !there {
		t.Error("the other plan's limits do not count")
	}
	s.period("2026-03-10T12:00:00Z", "2026-03-30T22:00:00Z", 4, 6) // it begins with the customer
	s.hit(200, 6)
	s.hit(429, 1)
	s.clock("2026-03-30T21:59:59.999999Z")
	s.hit(429, 1)
	s.clock("2026-03-30T22:00:00Z")
	s.period("2026-03-30T22:00:00Z", "2026-04-03T22:00:00Z", 0, 10) // weeks from Saturday, January 31
	s.hit(200, 3)
	s.clock("2026-04-04T00:00:00Z")
	s.period("2026-04-03T22:00:00Z", "2026-04-10T22:00:00Z", 0, 10)
	s.hit(200, 5)

	s.put(`"plan":"monthly","billing_anchor":"2026-01-15T00:00:00"`)
	s.put(`"plan":"monthly","billing_anchor":"2026-01-20T00:00:00"`) // in place of what had not begun
	s.period("2026-04-03T22:00:00Z", "2026-04-10T22:00:00Z", 5, 5)
	s.clock("2026-04-11T00:00:00Z")
	s.period("2026-04-10T22:00:00Z", "2026-04-19T22:00:00Z", 0, 10)
	s.hit(200, 2)

	s.clock("2026-04-12T06:30:00.000001Z")
	s.hit(200, 1)
	s.put(`"plan":"weekly","change":"now"`) // just after what was used at that instant
	s.period("2026-04-10T22:00:00Z", "2026-04-12T06:30:00.000002Z", 3, 7)
	s.clock("2026-04-12T06:30:00.000002Z")
	s.period("2026-04-12T06:30:00.000002Z", "2026-04-13T22:00:00Z", 0, 10)
	s.hit(200, 7)
	s.period("2026-04-12T06:30:00.000002Z", "2026-04-13T22:00:00Z", 7, 3)
	s.put(`"plan":"weekly","change":"now"`) // which changes nothing
	s.period("2026-04-12T06:30:00.000002Z", "2026-04-13T22:00:00Z", 7, 3)
	s.put(`"plan":"weekly","timezone":"America/New_York"`)
	s.period("2026-04-12T06:30:00.000002Z", "2026-04-13T22:00:00Z", 7, 3)
	s.clock("2026-04-13T22:00:00Z")
	s.period("2026-04-13T22:00:00Z", "2026-04-14T04:00:00Z", 0, 10) // weeks from Tuesday, January 20, there
	s.hit(200, 1)
	s.clock("2026-04-14T04:00:00Z")
	s.period("2026-04-14T04:00:00Z", "2026-04-21T04:00:00Z", 0, 10)
	s.clock("2026-04-15T00:00:00Z") // a full hour, in which something was used already
	s.hit(200, 2)
	s.put(`"plan":"monthly","timezone":"America/New_York","change":"now"`)
	s.period("2026-04-14T04:00:00Z", "2026-04-15T00:00:00.000001Z", 2, 8)
	s.clock("2026-04-15T00:00:00.000001Z")
	s.period("2026-04-15T00:00:00.000001Z", "2026-04-20T04:00:00Z", 0, 10)
	s.put(`"plan":"weekly","timezone":"America/New_York","change":"now"`) // at the period's start
	s.period("2026-04-15T00:00:00.000001Z", "2026-04-21T04:00:00Z", 0, 10)
	s.hit(200, 10)
	s.hit(429, 1)
	n.want(428, "PUT", "/v1/plans/weekly", `{"name":"P","currency":"USD","interval":"month"}`)
	if got := n.want(422, "PUT", "/v1/plans/weekly", `{"name":"P","currency":"USD","interval":"month"}`, "If-Match", "*"); !strings.Contains(got.text,
		"must stay week") {
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
