package main

import (
	"fmt"
	"strings"
	"testing"
)

// The portal shows what the period will cost beside what it costs, line by line, with the numbers of
// the upcoming invoice.
func TestCostIsProjected(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	for _, meter := range []string{"requests", "exports"} {
		n.do("PUT", "/v1/meters/"+meter, fmt.Sprintf(`{"name":"%s%s","unit":"u"}`, strings.ToUpper(meter[:1]), meter[1:])).is(201)
	}
	n.do("PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":1000,"minimum_minor":3000,"prices":[
		{"meter":"requests","model":"per_unit","unit_price":"0.01","included":100},{"meter":"exports","model":"per_unit","unit_price":"0.10"}]}`).is(201)
	n.do("PUT", "/v1/test-clocks/c", `{"now":"2026-01-01T00:00:00Z"}`).is(201)
	n.do("PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","timezone":"UTC","billing_anchor":"2026-01-01T00:00:00","test_clock":"c"}`).is(201)
	n.do("PUT", "/v1/customers/acme/billing", `{"taxes":[{"name":"VAT","percent":"10","inclusive":false}]}`).is(200)
	n.do("POST", "/v1/customers/acme/credits", `{"amount_minor":300,"currency":"USD","id":"k"}`).is(201)
	for meter, cost := range map[string]int{"requests": 1100, "exports": 10} {
		n.do("POST", "/v1/hits", fmt.Sprintf(`{"customer":"acme","meter":%q,"cost":%d}`, meter, cost)).is(200)
	}
	b := n.browser().enter(n, "acme")
	young := b.get("/portal").is(200)
	if strings.Contains(young.text, "rojected") || !strings.Contains(young.text, "Due so far") {
		t.Errorf("a projection of no time:\n%s", young.text)
	}
	n.do("PUT", "/v1/test-clocks/c", `{"now":"2026-01-11T00:00:00Z"}`).is(200)
	page := b.get("/portal").is(200)
	cost, _ := between(page.text, `id="cost"`, "</article>")
	// 10 of 31 days have passed: 3,410 requests and 31 exports. So far the minimum adds 9.00.
	for _, row := range [][3]string{
		{"Base price, Pro", "$10.00", "$10.00"},
		{"Requests", "$10.00", "$33.10"},
		{"Exports", "$1.00", "$3.10"},
		{"Difference to the minimum price, Pro", "$9.00", "$0.00"},
		{"VAT", "$3.00", "$4.62"},
		{"Credits", "−$3.00", "−$3.00"},
		{">Due<", "$30.00", "$47.82"},
	} {
		line, there := between(cost, row[0], "</tr>")
		if !there || !strings.Contains(line, `<td class="n">`+row[1]+`</td><td class="n muted">`+row[2]+`</td>`) {
			t.Errorf("%s: %s", row[0], line)
		}
	}
	for _, word := range []string{`<p class="money">$30.00</p>`, "about <strong>$47.82</strong>", "Projected is an estimate"} {
		if !strings.Contains(cost, word) {
			t.Errorf("it does not say %q:\n%s", word, cost)
		}
	}
	asked := n.do("GET", "/v1/customers/acme/invoices/upcoming?projection=true", "").is(200)
	asked.has("amount_due_minor", 3000).has("projection.amount_due_minor", 4782)
	n.signedIn(testAdminKey).get("/admin/customers/acme/billing").is(200).says("about <strong>$47.82</strong>")
}
