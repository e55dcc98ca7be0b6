package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// yearlyNode has customer acme since January 1, 2026, on a plan that is billed each month. Other plans
// are there for it. A call costs 5.
func yearlyNode(t *testing.T, plan string) *node {
	t.Helper()
	n := newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/meters/calls", `{"unit":"call"}`)
	for key, base := range map[string]string{
		"yearly":  `120000,"base_in":"advance","base_every":12`,
		"larger":  `240000,"base_in":"advance","base_every":12`,
		"least":   `120000,"base_in":"advance","base_every":12,"minimum_minor":15000`,
		"monthly": `10000,"base_in":"advance"`,
		"arrears": `10000`,
	} {
		n.want(201, "PUT", "/v1/plans/"+key, `{"name":"P","currency":"USD","interval":"month","base_price_minor":`+base+`,
			"prices":[{"meter":"calls","model":"per_unit","unit_price":"0.05"}]}`)
	}
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"C","plan":"`+plan+`","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"calls","cost":100}`)
	return n
}

// put puts acme onto a plan. change is "now" or "limits_now".
func (n *node) put(plan, change string) {
	n.t.Helper()
	tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	n.want(200, "PUT", "/v1/customers/acme", `{"name":"C","plan":"`+plan+`","billing_anchor":"2026-01-01T00:00:00","change":"`+change+`"}`, "If-Match", tag)
}

// basesSaid are acme's invoices that have lines of the base or the minimum: kind, start of the period,
// and these lines.
func (n *node) basesSaid() string {
	n.t.Helper()
	var all []string
	for _, i := range n.want(200, "GET", "/v1/customers/acme/invoices?limit=100", "").json["items"].([]any) {
		i := i.(map[string]any)
		text := fmt.Sprintf("%.10s %s", i["period_start"], i["kind"])
		if i["status"] == "void" {
			text += " void"
		}
		had := len(text)
		for _, l := range i["lines"].([]any) {
			if l := l.(map[string]any); l["kind"] != "usage" {
				text += fmt.Sprintf(", %s %.10s/%.10s %v", l["kind"], l["from"], l["to"], l["amount_minor"])
			}
		}
		if len(text) > had {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func (n *node) sayYearly(want ...string) {
	n.t.Helper()
	if got := n.basesSaid(); got != strings.Join(want, "\n") {
		n.t.Errorf("charged:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	if got := n.want(200, "GET", "/v1/reconcile", ""); got.json["ok"] != true {
		n.t.Errorf("the books do not agree: %s", got.text)
	}
}

// The year 2026 has 365 days, and so have all years from one of its days on. All amounts here were
// worked by hand: the base up to a day is 120,000 × days / 365, rounded.
func TestYearlyBase(t *testing.T) {
	t.Parallel()
	const opening = "2026-01-01 opening, base 2026-01-01/2027-01-01 120000"
	for name, c := range map[string]struct {
		plan string
		do   func(n *node)
		want []string
	}{
		// Only the invoice at the end of the twelve months holds the next base.
		"two years": {"yearly", func(n *node) { n.settled("2028-01-02T00:00:00Z") }, []string{
			opening, "2026-12-01 period, base 2027-01-01/2028-01-01 120000", "2027-12-01 period, base 2028-01-01/2029-01-01 120000",
		}},
		// 31+28+31+30+15 = 135 days: 44,383.56 are used.
		"archived in the fifth month": {"yearly", func(n *node) {
			n.settled("2026-05-16T00:00:00Z")
			n.want(204, "DELETE", "/v1/customers/acme", "")
			n.settled("2026-05-17T00:00:00Z")
		}, []string{opening, "2026-05-01 period, unused 2026-05-16/2027-01-01 -75616"}},
		// Of March 15 of 31 days were used: 4,838.71 of 10,000. The year began with March, and 15 days of it
		// are over: 4,931.51. On June 10 it is 31+30+31+9 = 101 days: 33,205.48. 9 of 30 days are 3,000.
		"month to year and back at once": {"monthly", func(n *node) {
			n.settled("2026-03-16T00:00:00Z")
			n.put("yearly", "now")
			n.settled("2026-06-10T00:00:00Z")
			n.put("monthly", "now")
			n.settled("2026-07-02T00:00:00Z")
		}, []string{
			"2026-01-01 opening, base 2026-01-01/2026-02-01 10000",
			"2026-01-01 period, base 2026-02-01/2026-03-01 10000",
			"2026-02-01 period, base 2026-03-01/2026-04-01 10000",
			"2026-03-01 period, unused 2026-03-16/2026-04-01 -5161, base 2026-03-16/2027-03-01 115068",
			"2026-06-01 period, unused 2026-06-10/2027-03-01 -86795, base 2026-06-10/2026-07-01 7000",
			"2026-06-10 period, base 2026-07-01/2026-08-01 10000",
		}},
		// 31+28 = 59 days: 19,397.26. The new plan waits for the end of February. April has the year from then on.
		"year to month and back with the next period": {"yearly", func(n *node) {
			n.settled("2026-02-10T00:00:00Z")
			n.put("arrears", "limits_now")
			n.settled("2026-03-10T00:00:00Z")
			n.put("yearly", "limits_now")
			n.settled("2026-05-02T00:00:00Z")
		}, []string{
			opening,
			"2026-02-01 period, unused 2026-03-01/2027-01-01 -100603",
			"2026-03-01 period, base 2026-03-01/2026-04-01 10000, base 2026-04-01/2027-04-01 120000",
		}},
		// January's part of the base is 10,191.78, its usage 500. February's base is 9,205.48 up to day 59.
		"the minimum": {"least", func(n *node) { n.settled("2026-03-02T00:00:00Z") }, []string{
			"2026-01-01 opening, base 2026-01-01/2027-01-01 120000",
			"2026-01-01 period, minimum 2026-01-01/2026-02-01 4308",
			"2026-02-01 period, minimum 2026-02-01/2026-03-01 5795",
		}},
		// The trial cuts the twelve months: 45 days, 14,794.52.
		"a trial": {"yearly", func(n *node) {
			n.bill(200, "acme", `{"trial_ends_at":"2026-02-15T00:00:00Z"}`)
			n.settled("2027-01-02T00:00:00Z")
		}, []string{
			"2026-02-01 period, base 2026-02-15/2027-01-01 105205",
			"2026-12-01 period, base 2027-01-01/2028-01-01 120000",
		}},
		// A new version counts from the next twelve months on. It is one for all, so usage is priced by it.
		"a new version": {"yearly", func(n *node) {
			n.settled("2026-03-05T00:00:00Z")
			n.newBase("240000")
			n.settled("2027-01-02T00:00:00Z")
		}, []string{opening, "2026-12-01 period, base 2027-01-01/2028-01-01 240000"}},
		// At once it ends them: 31+28+31+9 = 99 days, 32,547.95; 9 of 365 days of the new one are 5,917.81.
		"a new version at once": {"yearly", func(n *node) {
			n.settled("2026-03-05T00:00:00Z")
			n.newBase("240000")
			n.settled("2026-04-10T00:00:00Z")
			n.put("yearly", "now")
			n.put("yearly", "now") // it changes nothing
			n.settled("2026-06-02T00:00:00Z")
		}, []string{opening, "2026-04-01 period, unused 2026-04-10/2027-01-01 -87452, base 2026-04-10/2027-04-01 234082"}},
		// The year begins with February. 28+31+30+31+14 = 134 days of it are over on June 15: 44,054.79. The rest
		// is charged with March. Then May 16 ends both: 104 days, 34,191.78.
		"ends that move": {"monthly", func(n *node) {
			n.put("yearly", "limits_now")
			n.bill(200, "acme", `{"ends_at":"2026-06-15T00:00:00Z"}`)
			n.settled("2026-03-05T00:00:00Z")
			n.bill(200, "acme", `{}`)
			n.settled("2026-04-05T00:00:00Z")
			n.bill(200, "acme", `{"ends_at":"2026-05-16T00:00:00Z"}`)
			n.settled("2026-06-16T00:00:00Z")
		}, []string{
			"2026-01-01 opening, base 2026-01-01/2026-02-01 10000",
			"2026-01-01 period, base 2026-02-01/2026-06-15 44055",
			"2026-03-01 period, base 2026-06-15/2027-02-01 75945",
			"2026-05-01 period, unused 2026-05-16/2026-06-15 -9863, unused 2026-06-15/2027-02-01 -75945",
		}},
		// A change at the start of a month whose month before is closed: its own invoice gives the rest back and
		// charges the new base. 31+30+15 = 76 days of that are used in the end: 49,972.60 of 240,000.
		"at the start of a month": {"yearly", func(n *node) {
			n.settled("2026-03-01T00:00:20Z")
			n.setTo("2026-03-01T00:00:00Z")
			n.put("larger", "now")
			n.settled("2026-05-16T00:00:00Z")
			n.want(204, "DELETE", "/v1/customers/acme", "")
			n.settled("2026-05-17T00:00:00Z")
		}, []string{
			opening,
			"2026-03-01 period, base 2026-03-01/2027-03-01 240000, unused 2026-03-01/2027-01-01 -100603",
			"2026-05-01 period, unused 2026-05-16/2027-03-01 -190027",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := yearlyNode(t, c.plan)
			c.do(n)
			n.sayYearly(c.want...)
		})
	}
}

// Billing may end with the months that the running base price is for. Then nothing is given back.
func TestEndsWithTheBase(t *testing.T) {
	t.Parallel()
	n := yearlyNode(t, "yearly")
	n.settled("2026-05-16T00:00:00Z")
	if got := n.bill(200, "acme", `{"ends_at":"base_end"}`).json["ends_at"]; got != "2027-01-01T00:00:00Z" {
		t.Errorf("the end of the base is %v", got)
	}
	if got := n.bill(200, "acme", `{"ends_at":"period_end"}`).json["ends_at"]; got != "2026-06-01T00:00:00Z" {
		t.Errorf("the end of the period is %v", got)
	}
	n.bill(200, "acme", `{"ends_at":"base_end"}`)
	n.settled("2027-02-01T00:00:00Z")
	n.sayYearly("2026-01-01 opening, base 2026-01-01/2027-01-01 120000")
	if got := n.want(422, "PUT", "/v1/customers/acme/billing", `{"ends_at":"year_end"}`, "If-Match", "*"); !strings.Contains(got.text, `"field":"ends_at"`) {
		t.Error(got.text)
	}
}

// newBase writes a version of plan yearly with another base price.
func (n *node) newBase(minor string) {
	n.t.Helper()
	tag := n.want(200, "GET", "/v1/plans/yearly", "").header.Get("ETag")
	n.want(201, "PUT", "/v1/plans/yearly", `{"name":"P","currency":"USD","interval":"month","base_price_minor":`+minor+`,"base_in":"advance","base_every":12,
		"prices":[{"meter":"calls","model":"per_unit","unit_price":"0.06"}]}`, "If-Match", tag)
}

// What was given back of a base once is not given back again: L = 120,000, U = 75,616 or less, N.
func TestYearlyBaseIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	n := yearlyNode(t, "yearly")
	n.settled("2026-01-02T00:00:00Z")
	opening := "/v1/invoices/" + n.invoicesOf("acme")[0]
	note := func(status int, minor, id string) {
		n.t.Helper()
		n.want(status, "POST", opening+"/credit-notes", `{"lines":[{"n":1,"amount_minor":`+minor+`}],"reason":"r","to":"outside","id":"`+id+`"}`)
	}
	note(201, "50000", "a")
	n.settled("2026-05-16T00:00:00Z")
	n.want(204, "DELETE", "/v1/customers/acme", "")
	n.settled("2026-05-17T00:00:00Z") // 70,000 are left, which is less than 75,616
	n.sayYearly("2026-01-01 credit_note, base 2026-01-01/2027-01-01 -50000", "2026-01-01 opening, base 2026-01-01/2027-01-01 120000",
		"2026-05-01 period, unused 2026-05-16/2027-01-01 -70000")
	note(409, "1", "b")
	n.want(409, "POST", opening+"/void", `{"reason":"r"}`)
}

// An invoice that became void gives nothing back; what it gave back goes on to its reissue or to the
// next invoice. What it held is written off.
func TestYearlyBaseOfVoidInvoices(t *testing.T) {
	t.Parallel()
	t.Run("the opening", func(t *testing.T) {
		t.Parallel()
		n := yearlyNode(t, "yearly")
		n.settled("2026-02-02T00:00:00Z")
		n.want(200, "POST", "/v1/invoices/"+n.invoicesOf("acme")[0]+"/void", `{"reason":"r"}`)
		n.settled("2026-05-16T00:00:00Z")
		n.put("monthly", "now") // 15 of 31 days are over: 4,838.71
		n.settled("2026-05-17T00:00:00Z")
		n.sayYearly("2026-01-01 opening void, base 2026-01-01/2027-01-01 120000", "2026-05-01 period, base 2026-05-16/2026-06-01 5161")
	})
	t.Run("the one that charged the rest", func(t *testing.T) { // see TestYearlyBase, ends that move
		t.Parallel()
		n := yearlyNode(t, "monthly")
		n.put("yearly", "limits_now")
		n.bill(200, "acme", `{"ends_at":"2026-06-15T00:00:00Z"}`)
		n.settled("2026-03-05T00:00:00Z")
		n.bill(200, "acme", `{}`)
		n.settled("2026-04-02T00:00:00Z")
		all := n.invoicesOf("acme")
		n.want(200, "POST", "/v1/invoices/"+all[len(all)-1]+"/void", `{"reason":"r"}`)
		n.settled("2026-05-02T00:00:00Z")
		n.bill(200, "acme", `{"ends_at":"2026-05-16T00:00:00Z"}`)
		n.settled("2026-05-17T00:00:00Z")
		n.sayYearly("2026-01-01 opening, base 2026-01-01/2026-02-01 10000",
			"2026-01-01 period, base 2026-02-01/2026-06-15 44055",
			"2026-03-01 period void, base 2026-06-15/2027-02-01 75945",
			"2026-05-01 period, unused 2026-05-16/2026-06-15 -9863")
	})
	t.Run("the one that gave back", func(t *testing.T) {
		t.Parallel()
		n := yearlyNode(t, "yearly")
		n.settled("2026-05-10T00:00:00Z")
		n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"calls","cost":2000000}`) // so that something is due
		n.settled("2026-05-16T00:00:00Z")
		n.put("arrears", "now") // 135 days, see above
		n.settled("2026-05-17T00:00:00Z")
		gave := n.invoicesOf("acme")
		n.want(200, "POST", "/v1/invoices/"+gave[len(gave)-1]+"/void", `{"reason":"r"}`)
		n.settled("2026-06-02T00:00:00Z") // 16 of 31 days of May: 5,161.29
		n.sayYearly("2026-01-01 opening, base 2026-01-01/2027-01-01 120000",
			"2026-05-01 period void, unused 2026-05-16/2027-01-01 -75616",
			"2026-05-16 period, base 2026-05-16/2026-06-01 5161, unused 2026-05-16/2027-01-01 -75616")
	})
}

func TestWrongBaseEvery(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/meters/calls", `{"unit":"call"}`)
	plan := func(more string) string {
		return `{"name":"P","currency":"USD","interval":"month","base_price_minor":1,` + more + `}`
	}
	for _, more := range []string{
		`"base_every":2`, `"base_in":"arrears","base_every":12`, `"base_in":"advance","base_every":0`, `"base_in":"advance","base_every":121`,
		`"base_in":"advance","base_every":-1`, `"base_in":"advance","base_every":1.5`, `"base_in":"advance","base_every":"12"`, `"base_every":9223372036854775808`,
	} {
		if got := n.want(422, "PUT", "/v1/plans/p", plan(more)); !strings.Contains(got.text, `"field":"base_every"`) {
			t.Errorf("%s: %s", more, got.text)
		}
	}
	n.want(404, "GET", "/v1/plans/p", "")
	n.want(201, "PUT", "/v1/plans/p", plan(`"base_in":"advance","base_every":120`))
	n.want(200, "PUT", "/v1/plans/p", plan(`"base_in":"advance","base_every":120`), "If-Match", n.want(200, "GET", "/v1/plans/p", "").header.Get("ETag"))
	if got := n.want(200, "GET", "/v1/plans/p", "").json["base_every"]; fmt.Sprint(got) != "120" {
		t.Errorf("base_every is %v", got)
	}
}
