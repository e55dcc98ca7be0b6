package api

import (
	"slices"
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

// A clock stands still, also at a full hour. What was used or adjusted at that very instant is before a cut
// there: it is usage of the period that ends, at its price. The new one begins a microsecond later.
func TestCutAtTheInstantOfHits(t *testing.T) {
	t.Parallel()
	hit := func(n *node) { n.use(200, 10) }
	adjust := func(n *node) {
		n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":10,"reason":"r","id":"a"}`)
	}
	for _, c := range []struct {
		name, at string
		do       func(n *node)
		starts   string
		units    float64
	}{
		{"a hit at a full hour", "2026-01-16T00:00:00Z", hit, "2026-01-16T00:00:00.000001Z", 17},
		{"a hit within an hour", "2026-01-16T00:20:00Z", hit, "2026-01-16T00:20:00.000001Z", 17},
		{"an adjustment at a full hour", "2026-01-16T00:00:00Z", adjust, "2026-01-16T00:00:00.000001Z", 17},
		{"an adjustment within an hour", "2026-01-16T00:20:00Z", adjust, "2026-01-16T00:20:00.000001Z", 17},
		{"nothing at that instant", "2026-01-16T00:20:00Z", func(*node) {}, "2026-01-16T00:20:00Z", 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := cutNode(t)
			n.setTo("2026-01-10T05:30:00Z")
			n.use(200, 7)
			n.setTo(c.at)
			c.do(n)
			foreseen := n.want(200, "POST", "/v1/customers/acme/preview", `{"plan":"dear","change":"now"}`).json["at"]
			n.onto(200, "dear", `,"change":"now"`)
			n.scheduled(201, `{"plan":"pro","when":"period_end"}`) // it waits for the end of the new period
			n.onto(200, "dear", `,"timezone":"Europe/Berlin","change":"now"`)
			n.onto(200, "dear", `,"change":"now"`)
			n.setTo("2026-01-16T00:30:00Z")
			n.on("dear", "pro 1 2026-02-01T00:00:00Z")
			n.use(429, 31) // its limit by billing period begins again
			n.use(200, 30)
			if got, want := n.runs("acme"), strings.TrimSuffix(c.starts, ":00Z")+" 2026-02-01 30 1"; got != want {
				t.Errorf("the new period: %s, want %s", got, want)
			}
			draft := n.billed("2026-01-16T00:30:10Z", "draft")
			if draft["period_end"] != c.starts || foreseen != c.starts || draft["lines"].([]any)[1].(map[string]any)["quantity"] != c.units {
				t.Errorf("the period before: %v, foreseen to end at %v", draft, foreseen)
			}
			n.agreed("after the cut")
		})
	}
}

// A cut at the very start of a period makes no period. What was used there already is before the cut: it
// is a period of a microsecond.
func TestCutAtTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		units int
		ends  []string
		total float64
	}{
		"of nothing": {0, []string{"2026-02-01T00:00:00Z"}, 3100},
		"after hits": {10, []string{"2026-01-01T00:00:00.000001Z", "2026-02-01T00:00:00Z"}, 3100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := cutNode(t)
			if c.units > 0 {
				n.use(200, c.units)
			}
			n.onto(200, "dear", `,"change":"now"`)
			n.settled("2026-02-01T00:00:10Z")
			var ends []string
			for _, i := range n.want(200, "GET", "/v1/customers/acme/invoices", "").items() {
				ends = append(ends, i["period_end"].(string))
				want := c.total
				if i["period_end"] != "2026-02-01T00:00:00Z" {
					want = float64(c.units) // each is a cent
				}
				if i["subtotal_minor"] != want {
					t.Errorf("%v", i)
				}
			}
			if slices.Sort(ends); !slices.Equal(ends, c.ends) {
				t.Errorf("periods end at %v, want %v", ends, c.ends)
			}
			n.agreed("after the cut")
		})
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
