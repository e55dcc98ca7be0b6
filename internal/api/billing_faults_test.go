package api

import (
	"fmt"
	"strings"
	"testing"

	"quotad/internal/testkit/pgtest"
)

// stored is a digest of all that billing and configuration have stored.
func (n *node) stored() string {
	n.t.Helper()
	var parts []string
	for _, table := range []string{
		"plans", "plan_versions", "meters", "customers", "customer_terms", "customer_prices", "sellers", "billing_accounts", "open_periods", "periods",
		"invoices", "invoice_lines", "line_adjustments", "charges", "credits", "credit_entries", "adjustments", "change_number", "audit",
	} {
		parts = append(parts, fmt.Sprintf("(SELECT coalesce(md5(string_agg(r::text, '|' ORDER BY r::text)), '') FROM %s r)", table))
	}
	return pgtest.Query[string](n.t, n.database, "SELECT concat_ws(' ', "+strings.Join(parts, ", ")+")")
}

// A wrong is a request that is refused: with 422 and the fields at fault, or with another status.
type wrong struct{ method, path, body, want string }

// refused sends wrong requests, each of which must change nothing.
func (n *node) refused(all []wrong) {
	n.t.Helper()
	before := n.stored()
	for _, c := range all {
		if got := strings.TrimSpace(n.faultOf(c.method, c.path, c.body)); got != c.want {
			n.t.Errorf("%s %s %.200s: %s, want %s", c.method, c.path, c.body, got, c.want)
		}
		if after := n.stored(); after != before {
			n.t.Errorf("%s %s %.200s: something was written", c.method, c.path, c.body)
			before = after
		}
	}
}

// priceFaults are prices that no plan and no customer may have, and the member at fault.
var priceFaults = map[string]string{
	`"model":"flat"`:                                                          "model",
	`"model":"per_unit"`:                                                      "unit_price",
	`"model":"per_unit","unit_price":"-1"`:                                    "unit_price",
	`"model":"per_unit","unit_price":"1e3"`:                                   "unit_price",
	`"model":"per_unit","unit_price":"0.1234567890123"`:                       "unit_price",
	`"model":"per_unit","unit_price":"1","included":-1`:                       "included",
	`"model":"per_unit","unit_price":"1","package_size":5`:                    "package_size",
	`"model":"package","package_price":"1"`:                                   "package_size",
	`"model":"package","package_price":"1","package_size":0`:                  "package_size",
	`"model":"per_unit","unit_price":"1","minimum_minor":5,"maximum_minor":4`: "minimum_minor",
	`"model":"graduated"`:                                                     "tiers",
	`"model":"graduated","tiers":[{"up_to":5,"unit_price":"1"},{"up_to":5,"unit_price":"1"},{"up_to":null,"unit_price":"1"}]`: "tiers[1].up_to",
	`"model":"volume","tiers":[{"up_to":5,"unit_price":"1"}]`:                                                                 "tiers[0].up_to",
	`"model":"volume","tiers":[{"up_to":null,"unit_price":"1"},{"up_to":null,"unit_price":"1"}]`:                              "tiers[0].up_to",
	`"model":"volume","tiers":[{"up_to":null,"unit_price":"x"}]`:                                                              "tiers[0].unit_price",
	`"model":"volume","tiers":[{"up_to":null,"unit_price":"1","flat_price":"-1"}]`:                                            "tiers[0].flat_price",
}

func TestWrongPrices(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	plan := func(more string) string {
		return `{"name":"P","currency":"USD","interval":"month","base_price_minor":1,` + more + `}`
	}
	all := []wrong{
		{"PUT", "/v1/plans/new", plan(`"prices":[{"meter":"nothing","model":"per_unit","unit_price":"1"}]`), "422 prices[0].meter"},
		{
			"PUT", "/v1/plans/new", plan(`"prices":[{"meter":"requests","model":"per_unit","unit_price":"1"},{"meter":"requests","model":"per_unit","unit_price":"1"}]`),
			"422 prices[1].meter",
		},
		{"PUT", "/v1/plans/new", plan(`"base_in":"sometimes"`), "422 base_in"},
		{"PUT", "/v1/plans/new", plan(`"minimum_minor":-1`), "422 minimum_minor"},
		{"PUT", "/v1/plans/new", plan(`"tax":1`), "422 tax"},
		{"PUT", "/v1/plans/new", `{"name":"P","currency":"USD","interval":"month","base_price_minor":-1}`, "422 base_price_minor"},
		{"PUT", "/v1/plans/new", `{"name":"P","currency":"USD","interval":"fortnight","base_price_minor":1}`, "422 interval"},
		{"PUT", "/v1/plans/new", `{"name":"P","currency":"USD","interval":"month","interval_count":0,"base_price_minor":1}`, "422 interval_count"},
		{"PUT", "/v1/customers/acme/prices/nothing", `{"model":"per_unit","unit_price":"1"}`, "422 meter"},
		{"PUT", "/v1/customers/nobody/prices/requests", `{"model":"per_unit","unit_price":"1"}`, "404"},
		{"DELETE", "/v1/customers/acme/prices/requests", "", "404"},
		{"PUT", "/v1/customers/acme/prices/requests", `{"meter":"requests","model":"per_unit","unit_price":"1"}`, "422 meter"},
	}
	for _, currency := range []string{"XXX", "XAU", "usd", "EURO", ""} {
		all = append(all, wrong{"PUT", "/v1/plans/new", `{"name":"P","currency":"` + currency + `","interval":"month","base_price_minor":1}`, "422 currency"})
	}
	for price, field := range priceFaults {
		all = append(all, wrong{"PUT", "/v1/plans/new", plan(`"prices":[{"meter":"requests",` + price + `}]`), "422 prices[0]." + field},
			wrong{"PUT", "/v1/customers/acme/prices/requests", "{" + price + "}", "422 " + field})
	}
	n.refused(all)
	tag := n.want(200, "GET", "/v1/plans/pro", "").header.Get("ETag")
	for _, body := range []string{
		`{"name":"P","currency":"EUR","interval":"month","base_price_minor":1}`, `{"name":"P","currency":"USD","interval":"year","base_price_minor":1}`,
	} {
		if got := n.want(422, "PUT", "/v1/plans/pro", body, "If-Match", tag); len(got.json["errors"].([]any)) != 1 {
			t.Errorf("%s: %s", body, got.text)
		}
	}
}

func TestWrongMoney(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	n.setTo("2026-01-05T00:00:00Z")
	const charges, credits, adjustments = "/v1/customers/acme/charges", "/v1/customers/acme/credits", "/v1/customers/acme/adjustments"
	long := strings.Repeat("x", 501)
	var all []wrong
	add := func(path, want string, bodies ...string) {
		for _, body := range bodies {
			all = append(all, wrong{"POST", path, body, want})
		}
	}
	charge := func(description, amount, currency, id string) string {
		return fmt.Sprintf(`{"description":%q,"amount_minor":%s,"currency":%q,"id":%q}`, description, amount, currency, id)
	}
	add(charges, "422 amount_minor", charge("x", "0", "USD", "a"), charge("x", "1000000000000000", "USD", "a"),
		charge("x", "-1000000000000000", "USD", "a"), charge("x", "1.5", "USD", "a"), charge("x", `"1"`, "USD", "a"))
	add(charges, "422 currency", charge("x", "1", "EUR", "a"), charge("x", "1", "XXX", "a"), charge("x", "1", "XAU", "a"), charge("x", "1", "", "a"))
	add(charges, "422 description", charge("", "1", "USD", "a"), charge(long, "1", "USD", "a"), strings.Replace(charge("a~", "1", "USD", "a"), "~", `\u0001`, 1))
	add(charges, "422 id", charge("x", "1", "USD", ""), charge("x", "1", "USD", strings.Repeat("x", 256)))
	add(charges, "422 amount_minor currency id description", `{}`)
	add(charges, "422 tax", `{"description":"x","amount_minor":1,"currency":"USD","id":"a","tax":1}`)
	add("/v1/customers/nobody/charges", "404", charge("x", "1", "USD", "a"))

	credit := func(amount, more string) string {
		return `{"amount_minor":` + amount + `,"currency":"USD","id":"a"` + more + `}`
	}
	add(credits, "422 amount_minor", credit("0", ""), credit("-1", ""), credit("1000000000000000", ""))
	add(credits, "422 kind", credit("1", `,"kind":"carried"`), credit("1", `,"kind":"other"`))
	add(credits, "422 priority", credit("1", `,"priority":101`), credit("1", `,"priority":-1`))
	add(credits, "422 expires_at", credit("1", `,"expires_at":"2026-01-05T00:00:00Z"`), credit("1", `,"expires_at":"soon"`))
	add(credits, "422 id", `{"amount_minor":1,"currency":"USD","id":"carried:1"}`, `{"amount_minor":1,"currency":"USD"}`)
	add(credits, "422 currency", `{"amount_minor":1,"currency":"EUR","id":"a"}`, `{"amount_minor":1,"currency":"XYZ","id":"a"}`)
	add("/v1/customers/nobody/credits", "404", credit("1", ""))

	adjustment := func(cost, more string) string {
		return `{"meter":"requests","cost":` + cost + `,"reason":"x","id":"a"` + more + `}`
	}
	add(adjustments, "422 cost", adjustment("0", ""), adjustment("1000000000000000", ""), `{"meter":"requests","reason":"x","id":"a"}`)
	add(adjustments, "422 at", adjustment("1", `,"at":"2026-01-05T00:00:01Z"`), adjustment("1", `,"at":"2025-12-31T23:59:59Z"`),
		adjustment("1", `,"at":"yesterday"`))
	add(adjustments, "422 reason", `{"meter":"requests","cost":1,"id":"a"}`, `{"meter":"requests","cost":1,"id":"a","reason":"`+long+`"}`)
	add(adjustments, "422 id", `{"meter":"requests","cost":1,"reason":"x"}`)
	add(adjustments, "422 meter", `{"cost":1,"reason":"x","id":"a"}`)
	add(adjustments, "404", `{"meter":"nothing","cost":1,"reason":"x","id":"a"}`)

	many := strings.TrimSuffix(strings.Repeat(`"x",`, 21), ",")
	for _, body := range []string{`{"name":""}`, `{"name":"` + strings.Repeat("x", 201) + `"}`} {
		all = append(all, wrong{"PUT", "/v1/sellers/us", body, "422 name"})
	}
	all = append(all,
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","prefix":"` + strings.Repeat("x", 21) + `"}`, "422 prefix"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","prefix":"TEST-x"}`, "422 prefix"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","prefix":"a\u0001"}`, "422 prefix"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","next_number":0}`, "422 next_number"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","next_number":-1}`, "422 next_number"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","next_number":1000000000000000}`, "422 next_number"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","next_number":1.5}`, "422 next_number"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","country":"D\u0007"}`, "422 country"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","registration":"` + strings.Repeat("x", 201) + `"}`, "422 registration"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","email":"nobody"}`, "422 email"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","email":"Us <us@example.com>"}`, "422 email"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","payment":["a\nb"]}`, "422 payment[0]"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","payment":[` + many + `]}`, "422 payment"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","footer":["a","` + strings.Repeat("x", 201) + `"]}`, "422 footer[1]"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","footer":[` + many + `]}`, "422 footer"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","credit_note_prefix":"TEST-x"}`, "422 credit_note_prefix"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","credit_note_prefix":"` + strings.Repeat("x", 21) + `"}`, "422 credit_note_prefix"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","prefix":"A","credit_note_prefix":"A"}`, "422 credit_note_prefix"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","prefix":"A","credit_note_prefix":"A2"}`, "422 credit_note_prefix"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","prefix":"A7","credit_note_prefix":"A"}`, "422 credit_note_prefix"},
		wrong{"PUT", "/v1/sellers/us", `{"name":"x","credit_note_prefix":"7"}`, "422 credit_note_prefix"},
		wrong{"GET", "/v1/sellers/nobody", "", "404"},
	)
	n.refused(all)
	n.want(201, "POST", charges, charge("x", "1", "USD", "a"))
	n.want(201, "POST", credits, credit("1", ""))
	n.refused([]wrong{
		{"POST", charges, charge("y", "1", "USD", "a"), "422"},
		{"POST", credits, credit("2", ""), "422"},
	})
}

// The state of an invoice says what may be done with it. What may not is a 409 that changes
// nothing.
func TestWrongStates(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	for _, key := range []string{"acme", "gone", "anon", "erased"} {
		n.made(key)
	}
	n.setTo("2026-01-10T00:00:00Z")
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":10}`)
	draft := n.billed("2026-02-01T00:00:10Z", "draft")
	one := "/v1/invoices/" + draft["id"].(string)
	noteOf := func(lines, to, id string) string {
		return `{"lines":` + lines + `,"reason":"x","to":"` + to + `","id":"` + id + `"}`
	}
	note := func(lines, to string) string { return noteOf(lines, to, "a") }
	other := func(lines, to string) string { return noteOf(lines, to, "other") }
	const whole = `[{"n":1,"amount_minor":2000}]`
	state := func(path string, want map[string]string) (all []wrong) {
		for what, status := range want {
			body := map[string]string{
				"finalize": "", "pay": `{}`, "void": `{"reason":"x"}`, "reissue": `{"reason":"x","reissue":true}`,
				"credit": other(whole, "credits"), "outside": other(whole, "outside"),
			}[what]
			end := map[string]string{"reissue": "void", "credit": "credit-notes", "outside": "credit-notes"}[what]
			if end == "" {
				end = what
			}
			all = append(all, wrong{"POST", path + "/" + end, body, status})
		}
		return all
	}
	n.refused(state(one, map[string]string{"pay": "409", "void": "409", "reissue": "409", "credit": "409", "outside": "409"}))
	n.want(200, "POST", one+"/finalize", "")
	n.refused(append(state(one, map[string]string{"finalize": "409"}), []wrong{
		{"POST", one + "/void", `{}`, "422 reason"},
		{"POST", one + "/void", `{"reason":"` + strings.Repeat("x", 501) + `"}`, "422 reason"},
		{"POST", one + "/pay", `{"reference":"` + strings.Repeat("x", 501) + `"}`, "422 reference"},
		{"POST", one + "/pay", `{"amount_minor":0}`, "422 amount_minor"},
		{"POST", one + "/pay", `{"amount_minor":-1}`, "422 amount_minor"},
		{"POST", one + "/pay", `{"amount_minor":1000000000000000}`, "422 amount_minor"},
		{"POST", one + "/pay", `{"amount_minor":1.5}`, "422 amount_minor"},
		{"POST", one + "/pay", `{"amount_minor":2101}`, "409"},
		{"POST", one + "/pay", `{"amount_minor":999999999999999}`, "409"},
		{"POST", one + "/pay", `{"id":"` + strings.Repeat("x", 256) + `"}`, "422 id"},
		{"POST", one + "/payments/1/reverse", `{"reason":"x","id":"r"}`, "404"},
		{"POST", one + "/payments/0/reverse", `{"reason":"x","id":"r"}`, "404"},
		{"POST", one + "/payments/x/reverse", `{"reason":"x","id":"r"}`, "404"},
		{"POST", one + "/payments/2147483648/reverse", `{"reason":"x","id":"r"}`, "404"},
		{"POST", one + "/payments/99999999999999999999/reverse", `{"reason":"x","id":"r"}`, "404"},
		{"POST", one + "/payments/1/reverse", `{"id":"r"}`, "422 reason"},
		{"POST", one + "/payments/1/reverse", `{"reason":"x"}`, "422 id"},
		{"POST", one + "/credit-notes", note(`[]`, "outside"), "422 lines"},
		{"POST", one + "/credit-notes", note(`[{"n":9,"amount_minor":1}]`, "outside"), "422 lines[0].n"},
		{"POST", one + "/credit-notes", note(`[{"n":1,"amount_minor":1},{"n":1,"amount_minor":1}]`, "outside"), "422 lines[1].n"},
		{"POST", one + "/credit-notes", note(`[{"n":1,"amount_minor":0}]`, "outside"), "422 lines[0].amount_minor"},
		{"POST", one + "/credit-notes", note(whole, "elsewhere"), "422 to"},
		{"POST", one + "/credit-notes", `{"lines":` + whole + `,"to":"outside","id":"a"}`, "422 reason"},
		{"POST", one + "/credit-notes", `{"lines":` + whole + `,"to":"outside","reason":"x"}`, "422 id"},
		{"POST", one + "/credit-notes", note(`[{"n":1,"amount_minor":2001}]`, "outside"), "409"},
	}...))
	n.want(200, "POST", one+"/pay", `{}`)
	n.refused(state(one, map[string]string{"finalize": "409", "pay": "409", "void": "409", "reissue": "409"}))
	made := n.want(201, "POST", one+"/credit-notes", note(`[{"n":1,"amount_minor":1999}]`, "credits")).json
	n.refused([]wrong{
		{"POST", one + "/credit-notes", note(`[{"n":1,"amount_minor":1}]`, "credits"), "422"}, // the id is used
		{"POST", one + "/credit-notes", `{"lines":[{"n":1,"amount_minor":2}],"reason":"x","to":"credits","id":"b"}`, "409"},
	})
	n.refused(state("/v1/invoices/"+made["id"].(string), map[string]string{"finalize": "409", "pay": "409", "void": "409", "credit": "409", "outside": "409"}))
	n.want(201, "POST", one+"/credit-notes", `{"lines":[{"n":1,"amount_minor":1},{"n":2,"amount_minor":10}],"reason":"x","to":"outside","id":"c"}`)
	n.refused(state(one, map[string]string{"finalize": "409", "pay": "409", "void": "409", "credit": "409", "outside": "409"}))

	page := n.want(200, "GET", "/v1/invoices.csv?test_clock=any&limit=1", "") // the invoice has two notes by now
	next, isLink := strings.CutPrefix(page.header.Get("Link"), "<")
	next, isNext := strings.CutSuffix(next, `>; rel="next"`)
	if !isLink || !isNext || n.want(200, "GET", next, "").text == page.text {
		t.Errorf("the next page is %q", page.header.Get("Link"))
	}

	const nothing = "/v1/invoices/00000000-0000-4000-8000-000000000000"
	n.refused(append(state(nothing, map[string]string{"finalize": "404", "pay": "404", "void": "404", "credit": "404"}), []wrong{
		{"GET", nothing, "", "404"},
		{"GET", "/v1/invoices/nonsense", "", "404"},
		{"GET", nothing + "/lines/1/usage", "", "404"},
		{"GET", one + "/lines/9/usage", "", "404"},
		{"GET", one + "/lines/x/usage", "", "404"},
		{"GET", one + "/lines/01/usage", "", "404"},
		{"GET", one + "/lines/%2B1/usage", "", "404"},
		{"GET", "/v1/invoices?status=open", "", "422 status"},
		{"GET", "/v1/invoices?from=monday", "", "422 from"},
		{"GET", "/v1/invoices?customer=nobody", "", "404"},
		{"GET", "/v1/invoices?test_clock=nobody", "", "404"},
		{"GET", "/v1/invoices?limit=1001", "", "422 limit"},
		{"GET", "/v1/invoices?cursor=x", "", "422 cursor"},
		{"GET", "/v1/invoices.csv?cursor=x", "", "422 cursor"},
		{"GET", "/v1/customers/nobody/invoices", "", "404"},
		{"GET", "/v1/customers/nobody/invoices/upcoming", "", "404"},
		{"GET", "/v1/customers/nobody/credits", "", "404"},
	}...))
}

// Customers that nobody has named are not billed, and those that are archived no more.
func TestWrongCustomers(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("anon")
	pgtest.Exec(t, n.database, `DELETE FROM open_periods`, `DELETE FROM billing_accounts`,
		`UPDATE customers SET anonymous = true WHERE key = 'anon'`) // as a first hit makes one
	n.made("gone")
	n.want(204, "DELETE", "/v1/customers/gone", "")
	n.settled("2026-02-01T00:00:10Z")
	var all []wrong
	for key, want := range map[string]string{"anon": "409", "gone": "409"} {
		path := "/v1/customers/" + key
		all = append(all, []wrong{
			{"PUT", path + "/billing", `{}`, want},
			{"PUT", path + "/prices/requests", `{"model":"per_unit","unit_price":"1"}`, want},
			{"POST", path + "/charges", `{"description":"x","amount_minor":1,"currency":"USD","id":"a"}`, want},
			{"POST", path + "/credits", `{"amount_minor":1,"currency":"USD","id":"a"}`, want},
		}...)
	}
	for _, path := range []string{"/billing", "/prices", "/credits", "/invoices", "/invoices/upcoming"} {
		all = append(all, wrong{"GET", "/v1/customers/anon" + path, "", "409"})
	}
	all = append(all, wrong{"GET", "/v1/customers/gone/invoices/upcoming", "", "404"},
		wrong{"POST", "/v1/customers/gone/adjustments", `{"meter":"requests","cost":1,"reason":"x","id":"a"}`, "404"})
	n.refused(all)
}

// The 1,001st charge that no invoice has taken is refused.
func TestTooManyCharges(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	pgtest.Exec(t, n.database, `INSERT INTO charges (customer_id, id, description, amount_minor, currency, at, payload)
		SELECT c.id, 'c' || i, 'x', 1, 'USD', 0, 0 FROM customers c, generate_series(1, 1000) i`)
	n.refused([]wrong{{"POST", "/v1/customers/acme/charges", `{"description":"x","amount_minor":1,"currency":"USD","id":"a"}`, "409"}})
}
