package api

import (
	"strconv"
	"strings"
	"testing"
)

// cutNode is a billedNode with a dear plan, and customer acme on pro with a limit by billing period.
func cutNode(t *testing.T) *node {
	t.Helper()
	n := billedNode(t)
	n.want(201, "PUT", "/v1/plans/dear", `{"name":"D","currency":"USD","interval":"month","base_price_minor":3100,
		"prices":[{"meter":"requests","model":"per_unit","unit_price":"0.05"}],
		"limits":[{"name":"most","meter":"requests","algorithm":"fixed_window","limit":30,"window":"billing_period"}]}`)
	n.made("acme")
	return n
}

// onto puts acme onto a plan. more is further members.
func (n *node) onto(status int, plan, more string) reply {
	n.t.Helper()
	tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	return n.want(status, "PUT", "/v1/customers/acme", `{"name":"C","plan":"`+plan+`","billing_anchor":"2026-01-01T00:00:00"`+more+`}`, "If-Match", tag)
}

func (n *node) use(status, cost int) {
	n.t.Helper()
	n.want(status, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":`+strconv.Itoa(cost)+`}`)
}

// A clock stands still at a full hour. What was used at that very instant is after a cut there: it
// is usage of the new period, at its price, and its limits by billing period count it.
func TestCutAtTheInstantOfHits(t *testing.T) {
	t.Parallel()
	n := cutNode(t)
	n.setTo("2026-01-10T05:30:00Z")
	n.use(200, 7)
	n.setTo("2026-01-16T00:00:00Z")
	n.use(200, 10)
	n.onto(200, "dear", `,"change":"now"`)
	if got := n.runs("acme"); got != "2026-01-16 2026-02-01 10 1" {
		t.Error("the new period:", got)
	}
	quota := n.want(200, "GET", "/v1/customers/acme/quota", "")
	if got := quota.json["meters"].([]any)[0].(map[string]any)["amount_minor"]; got != 50.0 {
		t.Error("the new price:", got)
	}
	if got := quota.limits()["most"]; got["used"] != 10.0 || got["remaining"] != 20.0 {
		t.Error("the limit:", got)
	}
	n.use(429, 21)
	n.use(200, 20)
	draft := n.billed("2026-01-16T00:00:10Z", "draft")
	if draft["period_end"] != "2026-01-16T00:00:00Z" || draft["lines"].([]any)[1].(map[string]any)["quantity"] != 7.0 {
		t.Errorf("the period before: %v", draft)
	}
	n.agreed("after the cut")
}

// A cut at the very start of a period makes no period, also when units were used there already.
func TestCutAtTheStartBehindHits(t *testing.T) {
	t.Parallel()
	n := cutNode(t)
	n.use(200, 10)
	n.onto(200, "dear", `,"change":"now"`)
	if got := n.runs("acme"); got != "2026-01-01 2026-02-01 10 1" {
		t.Error(got)
	}
	draft := n.billed("2026-02-01T00:00:10Z", "draft")
	if draft["period_start"] != "2026-01-01T00:00:00Z" || draft["total_minor"] != 3150.0 {
		t.Errorf("%v", draft)
	}
	if items := n.want(200, "GET", "/v1/customers/acme/invoices", "").json["items"].([]any); len(items) != 1 {
		t.Errorf("%d invoices", len(items))
	}
}

// Archiving at the instant of a hit, at a full hour, bills that hit: no other period would.
func TestArchivedAtTheInstantOfHits(t *testing.T) {
	t.Parallel()
	n := cutNode(t)
	n.setTo("2026-01-16T00:00:00Z")
	n.use(200, 10)
	n.want(204, "DELETE", "/v1/customers/acme", "")
	draft := n.billed("2026-01-16T00:00:11Z", "draft")
	if draft["period_end"] != "2026-01-16T00:00:00.000001Z" || draft["lines"].([]any)[1].(map[string]any)["quantity"] != 10.0 {
		t.Errorf("%v", draft)
	}
}

// Change now, back to what the running period is on, ends nothing: what waited waits no longer.
func TestBackToTheRunningTermsCutsNothing(t *testing.T) {
	t.Parallel()
	n := cutNode(t)
	n.setTo("2026-01-10T05:30:00Z")
	n.use(200, 7)
	for _, waits := range []string{
		`,"timezone":"Europe/Berlin"`, `,"plan_version":1,"change":"limits_now"`, `,"change":"limits_now"`,
	} {
		plan := "pro"
		if waits == `,"change":"limits_now"` {
			plan = "dear"
		}
		n.onto(200, plan, waits)
		n.onto(200, "pro", `,"change":"now"`)
		if got := n.runs("acme"); got != "2026-01-01 2026-02-01 7 1" {
			t.Errorf("back from %s: %s", waits, got)
		}
	}
	n.want(200, "PUT", "/v1/customers/acme", `{"name":"C","plan":"pro","billing_anchor":"2026-01-15T00:00:00"}`,
		"If-Match", n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag"))
	n.onto(200, "pro", `,"change":"now"`)
	n.setTo("2026-02-01T00:00:10Z")
	n.until("acme", "2026-02-01T00:00:00Z")
	if got := n.runs("acme"); got != "2026-02-01 2026-03-01 0 1" {
		t.Error("the period after:", got)
	}
	n.want(201, "PUT", "/v1/customers/acme/prices/requests", `{"model":"per_unit","unit_price":"0.07"}`)
	n.onto(200, "pro", `,"change":"now"`) // its own price waits, and begins
	if got := n.runs("acme"); !strings.HasPrefix(got, "2026-02-01T00:00:10Z ") {
		t.Error("a price of its own:", got)
	}
}
