package api

import (
	"fmt"
	"testing"
)

const projectedPath = "/v1/customers/timed/invoices/upcoming"

// projecting makes a customer in January of a test clock, with all that an invoice may hold.
func (n *node) projecting() {
	n.t.Helper()
	for _, meter := range []string{"requests", "exports", "tokens"} {
		n.want(201, "PUT", "/v1/meters/"+meter, `{"unit":"u"}`)
	}
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":2000,"minimum_minor":4000,"prices":[
		{"meter":"requests","model":"per_unit","unit_price":"0.01","included":100},
		{"meter":"exports","model":"package","package_size":10,"package_price":"1.50"},
		{"meter":"tokens","model":"graduated","tiers":[{"up_to":1000,"unit_price":"0.002","flat_price":"1"},{"up_to":null,"unit_price":"0.001"}],"maximum_minor":350}]}`)
	n.clock("2026-01-01T00:00:00Z")
	n.want(201, "PUT", "/v1/customers/timed", `{"name":"x","plan":"pro","timezone":"UTC","billing_anchor":"2026-01-01T00:00:00","test_clock":"c"}`)
	n.want(200, "PUT", "/v1/customers/timed/billing", `{"taxes":[{"name":"VAT","percent":"19","inclusive":false}]}`)
	n.want(201, "POST", "/v1/customers/timed/charges", `{"description":"Setup","amount_minor":500,"currency":"USD","id":"s"}`)
	n.want(201, "POST", "/v1/customers/timed/credits", `{"amount_minor":300,"currency":"USD","id":"k"}`)
	n.clock("2026-01-03T09:00:00Z")
	for meter, cost := range map[string]int{"requests": 70, "exports": 7, "tokens": 1001} {
		n.want(200, "POST", "/v1/hits", fmt.Sprintf(`{"customer":"timed","meter":%q,"cost":%d}`, meter, cost))
	}
}

// shown are the lines of an answer for people: kind, meter, quantity and amount.
func shown(of any) string {
	text := ""
	for _, each := range of.(map[string]any)["lines"].([]any) {
		l := each.(map[string]any)
		text += fmt.Sprintf("%v %v %v %v; ", l["kind"], l["meter"], l["quantity"], l["amount_minor"])
	}
	return text
}

func comesTo(of any) string {
	i := of.(map[string]any)
	return fmt.Sprintf("%v + %v = %v - %v = %v", i["subtotal_minor"], i["tax_minor"], i["total_minor"], i["credits_minor"], i["amount_due_minor"])
}

// On the 11th of January, 10 of 31 days have passed, and so 3.1 times the usage is expected.
func TestProjection(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.projecting()
	n.clock("2026-01-11T00:00:00Z")
	plain := n.want(200, "GET", projectedPath, "")
	if _, there := plain.json["projection"]; there {
		t.Errorf("nobody asked for a projection: %s", plain.text)
	}
	got := n.want(200, "GET", projectedPath+"?projection=true", "")
	if shown(got.json) != shown(plain.json) || comesTo(got.json) != comesTo(plain.json) {
		t.Errorf("so far: %s, and without a projection %s", got.text, plain.text)
	}
	// tokens: 2.00 + 1.00 flat for the first 1,000, and 0.001 for one more.
	if is, want := shown(got.json), "base <nil> 0 2000; usage requests 70 0; usage exports 7 150; usage tokens 1001 300; minimum <nil> 0 1550; charge <nil> 0 500; "; is != want {
		t.Errorf("so far\n%s, not\n%s", is, want)
	}
	// 70·3.1 = 217, of which 117 cost 1.17. 7·3.1 = 21.7, which is 22 and three packages.
	// 1001·3.1 = 3103.1: 3.00 and 2.10, of which 3.50 is the most.
	projection := got.json["projection"]
	if is, want := shown(projection), "base <nil> 0 2000; usage requests 217 117; usage exports 22 450; usage tokens 3103 350; minimum <nil> 0 1083; charge <nil> 0 500; "; is != want {
		t.Errorf("projected\n%s, not\n%s", is, want)
	}
	if is, want := comesTo(projection), "4500 + 855 = 5355 - 300 = 5055"; is != want {
		t.Errorf("projected %s, not %s", is, want)
	}
	// More usage at the same instant: 1,070·3.1 = 3,317, and the minimum is passed.
	n.want(200, "POST", "/v1/hits", `{"customer":"timed","meter":"requests","cost":1000}`)
	projection = n.want(200, "GET", projectedPath+"?projection=true", "").json["projection"]
	if is, want := shown(projection), "base <nil> 0 2000; usage requests 3317 3217; usage exports 22 450; usage tokens 3103 350; charge <nil> 0 500; "; is != want {
		t.Errorf("projected\n%s, not\n%s", is, want)
	}
	// The last instant of the period leaves what there is.
	n.clock("2026-01-31T23:59:59.999999Z")
	last := n.want(200, "GET", projectedPath+"?projection=true", "").json
	if shown(last["projection"]) != shown(last) || comesTo(last["projection"]) != comesTo(last) {
		t.Errorf("at the end: %v and %v", shown(last["projection"]), shown(last))
	}
}

// A period that is younger than a hundredth of itself has none, and neither has an invoice that
// would be held.
func TestNoProjection(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.projecting()
	projection := func() any {
		t.Helper()
		return n.want(200, "GET", projectedPath+"?projection=true", "").json["projection"]
	}
	for now, want := range map[string]bool{
		"2026-01-01T00:00:00Z": false, "2026-01-01T07:26:23.999999Z": false, "2026-01-01T07:26:24Z": true, "2026-01-04T00:00:00Z": true,
	} {
		n.clock(now)
		if got := projection(); (got != nil) != want {
			t.Errorf("at %s: %v", now, got)
		}
	}
	n.want(201, "POST", "/v1/customers/timed/adjustments", `{"meter":"requests","cost":99999999999999,"reason":"x","id":"a"}`)
	if got := n.want(200, "GET", projectedPath+"?projection=true", "").json; got["held"] != nil || got["projection"] != nil {
		t.Errorf("three days cost a trillion, and a month has no amount: %v", got)
	}
	for query, want := range map[string]string{"?projection=": "422 projection", "?projection=yes": "422 projection", "?project=true": "422 project"} {
		if got := n.faultOf("GET", projectedPath+query, ""); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
	n.want(404, "GET", "/v1/customers/nobody/invoices/upcoming?projection=true", "")
}

// A projection stops at a cap and at a hard limit that ends with the period, and what passed them stays. Other limits are no bound: a
// soft one, one of each day, and one of each value of an attribute.
func TestProjectionStops(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.projecting()
	n.want(201, "PUT", "/v1/plans/bounded", `{"name":"Pro","currency":"USD","interval":"month","limits":[
		{"name":"month","meter":"requests","algorithm":"fixed_window","limit":1000,"window":"billing_period"},
		{"name":"soft","meter":"exports","algorithm":"fixed_window","limit":1,"window":"billing_period","mode":"soft"},
		{"name":"day","meter":"exports","algorithm":"fixed_window","limit":1000,"window":"calendar_day"},
		{"name":"each","meter":"exports","algorithm":"fixed_window","limit":1000,"window":"billing_period","per":"who"}],
		"prices":[{"meter":"requests","model":"per_unit","unit_price":"0.01"},{"meter":"exports","model":"per_unit","unit_price":"0.01"},
			{"meter":"tokens","model":"per_unit","unit_price":"0.02"}]}`)
	n.want(201, "PUT", "/v1/customers/new", `{"name":"x","plan":"bounded","timezone":"UTC","billing_anchor":"2026-01-01T00:00:00","test_clock":"c"}`)
	n.bill(200, "new", `{"starts_at":"2026-01-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/customers/new/caps/tokens", `{"amount_minor":2000}`)
	n.clock("2026-01-11T00:00:00Z")
	use := func(meter string, cost int, more string) {
		t.Helper()
		n.want(200, "POST", "/v1/hits", fmt.Sprintf(`{"customer":"new","meter":%q,"cost":%d%s}`, meter, cost, more))
	}
	for meter, cost := range map[string]int{"requests": 900, "exports": 900, "tokens": 987} {
		use(meter, cost, "")
	}
	projected := func(when, want string) {
		t.Helper()
		got := n.want(200, "GET", "/v1/customers/new/invoices/upcoming?projection=true", "").json["projection"]
		if is := shown(got); is != want {
			t.Errorf("%s: %s, not %s", when, is, want)
		}
	}
	projected("with some left", "usage requests 1000 1000; usage exports 2790 2790; usage tokens 1000 2000; ")
	n.want(201, "POST", "/v1/reservations", `{"customer":"new","meter":"requests","cost":90,"ttl_ms":60000}`)
	projected("with some reserved", "usage requests 1000 1000; usage exports 2790 2790; usage tokens 1000 2000; ")
	use("tokens", 20, `,"overrun":true`)
	projected("past a cap", "usage requests 1000 1000; usage exports 2790 2790; usage tokens 1007 2014; ")
}
