package api

import (
	"fmt"
	"reflect"
	"testing"

	"quotad/internal/testkit"
)

// heldCase is what a customer held in January, and what its invoice says of that.
type heldCase struct {
	price   string // of seats, in JSON, without its meter
	archive string // the instant of archiving; "" for none
	sets    []heldSet
	amount  float64
	exact   string
	applied any
}

type heldSet struct {
	at    string
	level int
}

// Each case was worked by hand, from the contract, before it was run. January has 31 days, 44,640 minutes.
func TestLevelsByHand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]heldCase{
		// 2 seats for 10 days and 5 for 21: (20 + 105)/31 = 4.032258064… A seat costs 12.00:
		// 4.032258 × 1200 = 4838.7096, so 48.39.
		"average": {
			`"model":"per_unit","unit_price":"12"`, "",
			[]heldSet{{"2026-01-01T00:00:00Z", 2}, {"2026-01-11T00:00:00Z", 5}},
			4839, "4.032258", nil,
		},
		// 3 at the very start, when 1 was set before at the same instant; 9 for a microsecond on the 5th, and
		// then 2. The most is 9; 9 × 1.00 = 9.00.
		"peak within a microsecond": {
			`"model":"per_unit","unit_price":"1","level_by":"peak"`, "",
			[]heldSet{{"2026-01-01T00:00:00Z", 20}, {"2026-01-01T00:00:00Z", 3}, {"2026-01-05T00:00:00.000001Z", 9}, {"2026-01-05T00:00:00.000002Z", 2}},
			900, "9.000000", nil,
		},
		// 7 until a microsecond before the end, then 4: 4 are held last. What is set at the end itself is of
		// February. 4 × 2.50 = 10.00.
		"last before the boundary": {
			`"model":"per_unit","unit_price":"2.50","level_by":"last"`, "",
			[]heldSet{{"2026-01-01T00:00:00Z", 7}, {"2026-01-31T23:59:59.999999Z", 4}, {"2026-02-01T00:00:00Z", 50}},
			1000, "4.000000", nil,
		},
		// Archived on the 13th: 12 of 31 days. 10 for 6 days and 3 for 6: 6.5 on the average. 2 are included, whole: 4.5
		// beyond them. Graduated: 3 at 5.00 and 1.5 at 4.00 and 1.00 flat: 15 + 6 + 1 = 22.00. Of that 12/31:
		// 8.516129…, so 8.52.
		"graduated, cut": {
			`"model":"graduated","included":2,"tiers":[{"up_to":3,"unit_price":"5"},{"up_to":null,"unit_price":"4","flat_price":"1"}]`,
			"2026-01-13T00:00:00Z",
			[]heldSet{{"2026-01-01T00:00:00Z", 10}, {"2026-01-07T00:00:00Z", 3}},
			852, "6.500000", nil,
		},
		// Archived on the 11th: 10 of 31 days. 1 for all of them: 0.40, below the whole minimum of 3.10; of that
		// 10/31: 1.00.
		"minimum, cut": {
			`"model":"per_unit","unit_price":"0.40","minimum_minor":310`,
			"2026-01-11T00:00:00Z",
			[]heldSet{{"2026-01-01T00:00:00Z", 1}},
			100, "1.000000", "minimum",
		},
		// A package of 2 costs 3.00. 2 for half of the month and 5 for the other: 3.5, which begin 2 packages: 6.00,
		// above the whole maximum of 5.00.
		"package, at most": {
			`"model":"package","package_size":2,"package_price":"3","maximum_minor":500`, "",
			[]heldSet{{"2026-01-01T00:00:00Z", 2}, {"2026-01-16T12:00:00Z", 5}},
			500, "3.500000", "maximum",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

func (c *heldCase) run(t *testing.T) {
	t.Helper()
	n := billedNode(t)
	n.want(201, "PUT", "/v1/meters/seats", `{"unit":"seat","kind":"level"}`)
	n.want(201, "PUT", "/v1/plans/held", fmt.Sprintf(`{"name":"Held","currency":"USD","interval":"month","prices":[{"meter":"seats",%s}]}`, c.price))
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"C","plan":"held","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	for _, s := range c.sets {
		n.setTo(s.at)
		n.want(200, "PUT", "/v1/customers/acme/levels/seats", fmt.Sprintf(`{"level":%d}`, s.level))
	}
	if c.archive != "" {
		n.setTo(c.archive)
		n.want(204, "DELETE", "/v1/customers/acme", "")
	}
	n.setTo("2026-02-01T00:00:30Z")
	n.setTo("2026-02-01T02:00:00Z")
	n.finalized("acme")
	line := n.want(200, "GET", "/v1/invoices?test_clock=any", "").json["items"].([]any)[0].(map[string]any)["lines"].([]any)[0].(map[string]any)
	if line["amount_minor"] != c.amount || line["level"].(map[string]any)["exact"] != c.exact || line["applied"] != c.applied {
		t.Errorf("the line is %v, want %v for %s", line, c.amount, c.exact)
	}
}

// A level that is set at the very instant of a cut is of the period that begins there. At the instant at which billing
// ends, it is not billed.
func TestLevelSetAtACutAndAtAnEnd(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.want(201, "PUT", "/v1/meters/seats", `{"unit":"seat","kind":"level"}`)
	for _, plan := range []string{"held", "dear"} {
		n.want(201, "PUT", "/v1/plans/"+plan, `{"name":"P","currency":"USD","interval":"month","prices":[{"meter":"seats","model":"per_unit","unit_price":"1","level_by":"peak"}]}`)
	}
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"C","plan":"held","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	set := func(at string, level int) {
		n.setTo(at)
		n.want(200, "PUT", "/v1/customers/acme/levels/seats", fmt.Sprintf(`{"level":%d}`, level))
	}
	set("2026-01-01T00:00:00Z", 1)
	set("2026-01-11T00:00:00Z", 9)
	n.onto(200, "dear", `,"test_clock":"clock","change":"now"`)
	set("2026-01-21T00:00:00Z", 50)
	n.want(204, "DELETE", "/v1/customers/acme", "")
	n.setTo("2026-02-01T02:00:00Z")
	closed := func() []any {
		return n.want(200, "GET", "/v1/invoices?test_clock=any&customer=acme&status=finalized", "").json["items"].([]any)
	}
	testkit.Eventually(t, "both periods are closed", func() bool { return len(closed()) == 2 })
	peaks := map[any]any{}
	for _, i := range closed() {
		line := i.(map[string]any)["lines"].([]any)[0].(map[string]any)
		peaks[i.(map[string]any)["period_start"]] = line["level"].(map[string]any)["exact"]
	}
	want := map[any]any{"2026-01-01T00:00:00Z": "1.000000", "2026-01-11T00:00:00Z": "9.000000"}
	if !reflect.DeepEqual(peaks, want) {
		t.Errorf("the peaks of the periods are %v, want %v", peaks, want)
	}
}
