package api

import (
	"strings"
	"testing"
)

// TestAdjustments: usage is corrected once by each id, in an hour of any period, and limits are
// not concerned. What concerns a period that has ended does not count in the running one.
func TestAdjustments(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(201, "PUT", "/v1/test-clocks/c", `{"now":"2026-01-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/customers/timed", `{"name":"x","plan":"pro","timezone":"UTC","billing_anchor":"2026-01-01T00:00:00","test_clock":"c"}`)
	n.want(200, "PUT", "/v1/test-clocks/c", `{"now":"2026-01-31T12:00:00Z"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"timed","meter":"requests","cost":3}`)
	const path = "/v1/customers/timed/adjustments"
	n.want(200, "PUT", "/v1/customers/timed/billing", `{"starts_at":"2025-12-01T00:00:00Z"}`)
	for i, c := range []struct {
		status int
		body   string
		says   string
	}{
		{201, `{"meter":"requests","cost":10,"reason":"forgotten","id":"a"}`, `"at":"2026-01-31T12:00:00Z"`},
		{200, `{"meter":"requests","cost":10,"reason":"forgotten","id":"a"}`, `"replayed":true`},
		{422, `{"meter":"requests","cost":11,"reason":"forgotten","id":"a"}`, "id-reused"},
		{201, `{"meter":"requests","cost":-20,"reason":"twice","id":"b","at":"2026-01-02T03:04:05Z"}`, `"at":"2026-01-02T03:04:05Z"`},
		{422, `{"meter":"requests","cost":1,"reason":"early","id":"d","at":"2025-11-30T23:59:59Z"}`, "starts_at"},
		{201, `{"meter":"requests","cost":40,"reason":"late","id":"c","at":"2025-12-31T23:59:59Z"}`, `"at":"2025-12-31T23:59:59Z"`},
		{422, `{"meter":"requests","cost":1,"reason":"early","id":"d","at":"2026-01-31T12:00:01Z"}`, "future"},
		{422, `{"meter":"requests","cost":0,"reason":"x","id":"e"}`, "cost"},
		{422, `{"meter":"requests","cost":1,"id":"e"}`, "reason"},
		{422, `{"meter":"requests","cost":1,"reason":"x"}`, "Idempotency-Key"},
		{422, `{"meter":"requests","cost":1,"reason":"x","id":"e","at":"yesterday"}`, "RFC 3339"},
		{404, `{"meter":"nothing","cost":1,"reason":"x","id":"e"}`, "no meter"},
	} {
		if got := n.want(c.status, "POST", path, c.body); !strings.Contains(got.text, c.says) {
			t.Errorf("%d: %s", i, got.text)
		}
	}
	n.want(404, "POST", "/v1/customers/nobody/adjustments", `{"meter":"requests","cost":1,"reason":"x","id":"e"}`)
	got := n.want(200, "GET", "/v1/customers/timed/quota", "").text
	if !strings.Contains(got, `"used":-7,`) || !strings.Contains(got, `"limit":5,"used":3,`) {
		t.Errorf("the quota: %s", got)
	}
	points := n.want(200, "GET", "/v1/customers/timed/usage?meter=requests&granularity=day", "").text
	if !strings.Contains(n.want(200, "GET",
		"/v1/customers/timed/usage?meter=requests&granularity=month&from=2025-12-01T00:00:00Z&to=2026-01-01T00:00:00Z", "").text, `"admitted":40,`) {
		t.Error("an ended period's usage is without its adjustment")
	}
	if !strings.Contains(points, `"start":"2026-01-02T00:00:00Z","admitted":-20,`) || !strings.Contains(points, `"start":"2026-01-31T00:00:00Z","admitted":13,`) {
		t.Errorf("the usage: %s", points)
	}
}
