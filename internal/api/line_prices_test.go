package api

import (
	"regexp"
	"strings"
	"testing"
)

// saidBy are the lines in an answer: kind, meter and all that they say of their price, as it is written.
func saidBy(text string) string {
	var all []string
	for _, m := range regexp.MustCompile(`"kind":"(\w+)","meter":(null|"\w+").*?"tiers":(\[.*?\]),"amount_minor":(-?\d+).*?("unit_price":.*?"applied":(?:null|"\w+"))`).FindAllStringSubmatch(text,
		-1) {
		all = append(all, strings.Join(m[1:], " "))
	}
	return strings.Join(all, "\n")
}

const (
	noPrice  = `"unit_price":null,"package_size":null,"package_price":null,"level":null,"applied":null`
	baseLine = `base null [] 2000 ` + noPrice + "\n"
	ofFirst  = `{"up_to":5,"quantity":5,"amount":"5.5","unit_price":"1.00","flat_price":"0.5"}`
)

// Wherever lines are shown, they say what they were priced by.
func TestLinesSayTheirPrice(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-01T00:00:00Z"}`)
	for _, meter := range []string{"calls", "mails", "disk", "fax", "idle"} {
		n.want(201, "PUT", "/v1/meters/"+meter, `{"unit":"u"}`)
	}
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"EUR","interval":"month","base_price_minor":2000,"prices":[
		{"meter":"calls","model":"per_unit","unit_price":"0.050","included":10},
		{"meter":"mails","model":"package","package_size":1000,"package_price":"2"},
		{"meter":"disk","model":"graduated","tiers":[{"up_to":5,"unit_price":"1.00","flat_price":"0.5"},{"up_to":null,"unit_price":"0.1"}],"maximum_minor":560},
		{"meter":"fax","model":"volume","tiers":[{"up_to":null,"unit_price":"1"}],"minimum_minor":700},
		{"meter":"idle","model":"per_unit","unit_price":"3"}]}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	n.want(200, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-10T12:00:00Z"}`)
	for meter, cost := range map[string]string{"calls": "50", "mails": "2001", "disk": "9", "fax": "7"} {
		n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"`+meter+`","cost":`+cost+`}`)
	}
	const calls = `usage "calls" [] 200 "unit_price":"0.050","package_size":null,"package_price":null,"level":null,"applied":null`
	all := baseLine + calls + "\n" +
		`usage "mails" [] 600 "unit_price":null,"package_size":1000,"package_price":"2","level":null,"applied":null` + "\n" +
		`usage "disk" [` + ofFirst + `,{"up_to":null,"quantity":4,"amount":"0.4","unit_price":"0.1","flat_price":null}] 560 ` +
		strings.Replace(noPrice, `"applied":null`, `"applied":"maximum"`, 1) + "\n" +
		`usage "fax" [{"up_to":null,"quantity":7,"amount":"7","unit_price":"1","flat_price":null}] 700 ` + noPrice + "\n" +
		`usage "idle" [] 0 "unit_price":"3","package_size":null,"package_price":null,"level":null,"applied":null`
	check := func(what, text, want string) {
		t.Helper()
		if got := saidBy(text); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
		}
	}
	check("upcoming", n.want(200, "GET", "/v1/customers/acme/invoices/upcoming", "").text, all)
	draft := n.billed("2026-02-01T00:00:10Z", "draft")
	path := "/v1/invoices/" + draft["id"].(string)
	check("the draft", n.want(200, "GET", path, "").text, all)
	const adjusted = `{"meter":"calls","cost":-50,"reason":"r","at":"2026-01-10T12:00:00Z","id":"a"}`
	preview := n.want(200, "POST", "/v1/customers/acme/adjustments?preview=true", adjusted).text
	check("the preview of a usage line", preview, strings.Replace(calls, "200", "0", 1))
	check("the invoice", n.want(200, "POST", path+"/finalize", "").text, all)
	check("the list", n.want(200, "GET", "/v1/invoices?customer=acme&test_clock=any", "").text, all)
	preview = n.want(200, "POST", "/v1/customers/acme/adjustments?preview=true", adjusted).text
	check("the preview of a correction", preview,
		`correction "calls" [] -200 "unit_price":"0.050","package_size":null,"package_price":null,"level":null,"applied":null`)
	note := n.want(201, "POST", path+"/credit-notes", `{"lines":[{"n":2,"amount_minor":5}],"reason":"r","to":"outside","id":"n"}`).text
	check("a credit note", note, `usage "calls" [] -5 `+noPrice)

	if paid := n.want(200, "POST", path+"/pay", `{}`).json; paid["paid_at"] != "2026-02-01T00:00:10Z" {
		t.Errorf("paid at %v", paid["paid_at"])
	}
	_, page, _ := n.text("GET", path+".html", "")
	_, page, _ = strings.Cut(page, "<body>")
	page = regexp.MustCompile(`(\s*<[^>]*>\s*)+`).ReplaceAllString(page, "|")
	for _, words := range []string{
		"40 × €0.05|", "3 packages of 1,000 × €2.00|", "5 × €1.00 and €0.50 flat|€5.50|", "Maximum of €5.60 applied|",
		"Paid on 1 Feb 2026", "Open|€0.00",
	} {
		if !strings.Contains(page, words) {
			t.Errorf("the page lacks %q: %s", words, page)
		}
	}
	for _, words := range []string{"idle", "due"} {
		if strings.Contains(strings.ToLower(page), words) {
			t.Errorf("the page has %q: %s", words, page)
		}
	}
	_, rows, _ := n.text("GET", path+".csv", "")
	for _, row := range []string{
		",200,2.00,,0.050,,,,,,,,,,,,,,,,,,\r\n", ",600,6.00,,,1000,2,,,,,,,,,,,,,,,,\r\n",
		",up to 5: 5 × 1.00 + 0.5 = 5.5; above 5: 4 × 0.1 = 0.4,maximum,,,,,,,,560,5.60,,,,,\r\n", ",0,0.00,,3,,,,,,,,,,,,,,,,,,\r\n",
	} {
		if !strings.Contains(rows, row) {
			t.Errorf("the CSV lacks %q: %s", row, rows)
		}
	}
}
