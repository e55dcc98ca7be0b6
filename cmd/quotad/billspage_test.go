package main

import (
	"fmt"
	"strings"
	"testing"
)

// The portal's invoices are the customer's own, down to the hours, and nobody else's.
func TestPortalInvoices(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.northwind()
	n.billed()
	b := n.browser().enter(n, "billed")
	invoice := n.do("GET", "/v1/customers/billed/invoices", "").is(200).has("items.0.id", n.invoice)
	due := invoice.num("items.0.amount_due_minor")
	b.get("/portal/invoices").is(200).says("/portal/invoices/"+n.invoice, "To be paid")
	page := b.get("/portal/invoices/"+n.invoice).is(200).says(fmt.Sprintf(`<p class="money">$%s.%02d</p>`, grouped(int(due/100)), due%100), "Base price",
		"12,000,000 used, 10 million included", "2,000,000 × $0.000004")
	for i, l := range invoice.at("items.0.lines").([]any) {
		line := l.(map[string]any)
		if line["kind"] != "usage" {
			continue
		}
		at := fmt.Sprintf("/portal/invoices/%s/lines/%d", n.invoice, i+1)
		page.says(at)
		sum, quantity := int64(0), whole(t, fmt.Sprint(line["quantity"]))
		hours := b.get(at).is(200)
		for _, cell := range strings.Split(hours.text, `<td class="n">`)[1:] {
			digits, _, _ := strings.Cut(cell, "<")
			sum += whole(t, digits)
		}
		if sum != quantity {
			t.Errorf("the hours of line %d add up to %d of %d", i+1, sum, quantity)
		}
	}
	for end, media := range map[string]string{"html": "text/html", "pdf": "application/pdf", "csv": "text/csv"} {
		file := "/portal/invoices/file/" + n.invoice + "." + end
		if a := b.get(file).is(200); !strings.HasPrefix(a.header.Get("Content-Type"), media) {
			t.Errorf("%s: %v", file, a.header)
		}
		n.browser().enter(n, "acme").get(file).is(404)
		n.browser().get(file).is(401)
	}
	other := n.browser().enter(n, "acme")
	other.get("/portal/invoices/" + n.invoice).is(404)
	other.get("/portal/invoices/" + n.invoice + "/lines/1").is(404)
	for _, path := range []string{
		"/portal/invoices/x", "/portal/invoices/" + n.invoice + "/lines/99", "/portal/invoices/" + n.invoice + "/lines/-1",
		"/portal/invoices/file/" + n.invoice + ".exe", "/portal/invoices/file/..%2Fkeys.html",
	} {
		b.get(path).is(404)
	}
	b.get("/portal/invoices?cursor=x").is(422)
}

// The portal lists credit notes, and leads from one to its invoice and back. The admin pages leave
// out the invoices of customers on test clocks, unless somebody asks for them.
func TestPortalCreditNotes(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.northwind()
	n.billed()
	invoice := n.do("GET", "/v1/customers/billed/invoices", "").has("items.0.id", n.invoice).str("items.0.number")
	note := n.do("POST", "/v1/invoices/"+n.invoice+"/credit-notes",
		`{"lines":[{"n":1,"amount_minor":1234}],"reason":"an outage","to":"outside","id":"note"}`).is(201)
	number, id := note.str("number"), note.str("id")
	b := n.browser().enter(n, "billed")
	b.get("/portal/invoices").is(200).says("/portal/invoices/"+id, number, "Credit note", "Given back")
	page := b.get("/portal/invoices/"+id).is(200).says("Credit note "+number, "/portal/invoices/"+n.invoice, "Credits invoice", invoice, "an outage")
	if amount := note.num("total_minor"); !strings.Contains(page.text, fmt.Sprintf(`<p class="money">$%d.%02d</p>`, -amount/100, -amount%100)) {
		t.Errorf("%d is given back: %s", amount, page.text)
	}
	b.get("/portal/invoices/"+n.invoice).is(200).says("/portal/invoices/"+id, "Credit note "+number)
	b.get("/portal/invoices/file/" + id + ".pdf").is(200)
	n.do("POST", "/v1/invoices/"+n.invoice+"/pay", `{}`).is(200)
	paid := b.get("/portal/invoices/"+n.invoice).is(200).says(`<p class="money">$44.66</p>`, "Paid on ", "−$44.66", "Credit notes", "−$12.34", ">Open<", "$0.00")
	if strings.Contains(paid.text, ">Due") {
		t.Errorf("an invoice that was paid is due: %s", paid.text)
	}
	n.browser().enter(n, "acme").get("/portal/invoices/" + id).is(404)

	staff := n.browser()
	staff.post("/admin/sign-in", map[string][]string{"key": {testAdminKey}}).is(303)
	if page := staff.get("/admin/invoices").is(200); strings.Contains(page.text, n.invoice) {
		t.Errorf("an invoice of a test clock is listed: %s", page.text)
	}
	for _, query := range []string{"?test_clock=months", "?test_clock=any&customer=billed"} {
		staff.get("/admin/invoices"+query).is(200).says(n.invoice, "/admin/invoices.csv?")
	}
}

// No page of the portal takes a customer from the request, and none is there without a session or
// with a session that a key began.
func TestPortalIsOneCustomers(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.northwind()
	n.billed()
	paths := []string{"/portal", "/portal/usage", "/portal/usage.csv", "/portal/refusals", "/portal/invoices", "/portal/invoices/" + n.invoice, "/portal/plan"}
	staff := n.browser()
	staff.post("/admin/sign-in", map[string][]string{"key": {testAdminKey}}).is(303)
	acme := n.browser().enter(n, "acme")
	gone := n.browser().enter(n, "acme")
	query[int64](t, n.databaseURL, "WITH over AS (UPDATE sessions SET expires_at = 0 WHERE token = (SELECT token FROM sessions ORDER BY expires_at DESC LIMIT 1) RETURNING 1) SELECT count(*) FROM over")
	for _, path := range paths {
		n.browser().get(path).is(401)
		staff.get(path).is(401)
		gone.get(path).is(401)
		for _, more := range []string{"?customer=billed", "?key=billed", "?customer_key=billed"} {
			if a := acme.get(path + more); strings.Contains(a.text, "Billed") {
				t.Errorf("%s shows another customer", path+more)
			}
		}
	}
	for _, b := range []*browser{acme, gone, n.browser()} {
		b.get("/admin").is(303)
	}
}
