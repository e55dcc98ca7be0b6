package main

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// idOf is the idempotency key that a form of a page holds.
var idOf = regexp.MustCompile(`name="id" value="(page-[A-Z2-7]+)"`)

// TestStaffPages: what admins do by page is what the API does, and the audit says who did it.
func TestStaffPages(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	b := n.signedIn(testAdminKey)
	b.post("/admin/meters", url.Values{"key": {"calls"}, "unit": {"call"}, "name": {"Calls"}}).goes("/admin/meters?done=saved")
	b.get("/admin/meters?done=saved").is(200).says("Saved.", "Calls")
	n.do("PUT", "/v1/plans/pro", planOf(`{"name":"hourly","meter":"calls","algorithm":"fixed_window","limit":10,"window":"1h"}`)).is(201)
	b.post("/admin/customers", url.Values{"key": {"a b<script>"}, "name": {"<script>alert(1)</script>"}, "plan": {"pro"}, "timezone": {"Asia/Kolkata"}}).goes("/admin/customers/a%20b%3Cscript%3E?done=made")
	here := "/admin/customers/a%20b%3Cscript%3E"
	b.get(here).is(200).says("&lt;script&gt;alert(1)", "10 each clock hour").lacks("<script>alert")
	b.post(here+"/overrides", url.Values{"name": {"hourly"}, "limit": {"25"}, "reason": {"a good year"}}).goes(here + "?done=saved")
	b.get(here).says("a good year", "25 each clock hour")
	b.post(here+"/overrides/hourly/delete", nil).goes(here + "?done=deleted")
	b.get(here).says("10 each clock hour")
	billing := b.get(here + "/billing").is(200).says("Grant a credit")
	id := idOf.FindStringSubmatch(billing.text)[1]
	credit := url.Values{"id": {id}, "amount_minor": {"12.50"}, "kind": {"promotional"}}
	b.post(here+"/credits", credit).goes(here + "/billing?done=booked")
	b.post(here+"/credits", credit).goes(here + "/billing?done=booked") // the button pressed twice
	if text := b.get(here + "/billing").text; strings.Count(text, "$12.50") != 2 {
		t.Errorf("one credit has one row, of what is left and of all:\n%s", text)
	}
	b.post(here, url.Values{"name": {"Other"}, "plan": {"pro"}, "timezone": {"UTC"}}).goes(here + "/settings?done=saved")
	b.get(here + "/settings").says("Other")
	made := b.post("/admin/keys", url.Values{"name": {"desk"}, "scope": {"support"}}).is(200).says("qk_")
	secret := regexp.MustCompile(`qk_[A-Za-z0-9_-]+`).FindString(made.text)
	b.get("/admin/keys").lacks(secret)
	b.get("/admin/audit?target=" + url.QueryEscape("customers/a b<script>")).is(200).says("bootstrap")
	b.post("/admin/reconcile", nil).is(200).says("The books agree.")
	b.post(here+"/archive", url.Values{"sure": {"yes"}}).goes(here + "?done=archived")
	b.get(here).says("archived").lacks("Override a limit")
	supporters(t, n.signedIn(secret), here)
}

// supporters see what they may do, and are refused the rest.
func supporters(t *testing.T, b *browser, here string) {
	t.Helper()
	b.get("/admin").is(200).lacks("/admin/keys")
	b.get("/admin/keys").is(403)
	b.get("/admin/audit").is(403)
	b.get("/admin/customers").is(200).lacks("Make the customer")
	b.post("/admin/meters", url.Values{"key": {"x"}, "unit": {"y"}}).is(403)
	b.post(here+"/archive", url.Values{"sure": {"yes"}}).is(403)
}

// TestStaffForms: what was wrong stands beside its field, and what was typed is kept.
func TestStaffForms(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	n.do("PUT", "/v1/meters/calls", `{"unit":"call"}`).is(201)
	n.do("PUT", "/v1/plans/pro", planOf(`{"name":"hourly","meter":"calls","algorithm":"fixed_window","limit":10,"window":"1h"}`)).is(201)
	n.do("PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro"}`).is(201)
	b := n.signedIn(testAdminKey)
	for _, row := range []struct {
		path   string
		fields url.Values
		status int
		says   []string
	}{
		{"/admin/meters", url.Values{"key": {"bad key!"}, "unit": {"kept"}}, 422, []string{`value="kept"`, `aria-invalid`}},
		{"/admin/meters", url.Values{"key": {"x"}}, 422, []string{"This is needed."}},
		{"/admin/customers", url.Values{"key": {"new"}, "name": {"kept"}, "plan": {"nothing"}}, 422, []string{`value="kept"`, `id="customer-plan-wrong"`}},
		{"/admin/customers", url.Values{"key": {"acme"}, "name": {"x"}, "plan": {"pro"}}, 412, []string{`role="alert"`}},
		{"/admin/customers/acme", url.Values{"name": {"x"}, "plan": {"pro"}, "timezone": {"Nowhere/Else"}}, 422, []string{`id="customer-timezone-wrong"`}},
		{"/admin/customers/acme/overrides", url.Values{"name": {"hourly"}, "limit": {"1,5"}}, 422, []string{"whole number", `value="1,5"`}},
		{"/admin/customers/acme/overrides", url.Values{"name": {"hourly"}, "limit": {"-3"}}, 422, []string{`id="override-limit-wrong"`}},
		{"/admin/customers/acme/overrides", url.Values{"name": {"hourly"}, "limit": {"99999999999999999999"}}, 422, []string{"whole number"}},
		{"/admin/customers/acme/credits", url.Values{"id": {"1"}, "amount_minor": {"1.234"}, "kind": {"paid"}}, 422, []string{"at most 2 digits"}},
		{"/admin/customers/acme/credits", url.Values{"id": {"1"}, "amount_minor": {"-1"}, "kind": {"paid"}}, 422, []string{`id="credit-amount_minor-wrong"`}},
		{"/admin/customers/acme/adjustments", url.Values{"id": {"1"}, "meter": {"nothing"}, "cost": {"1"}, "reason": {"r"}}, 404, []string{`role="alert"`, `value="nothing"`}},
		{"/admin/customers/acme/adjustments", url.Values{"id": {"1"}, "meter": {"calls"}, "cost": {"1"}, "reason": {"r"}, "at": {"yesterday"}}, 422, []string{"Write a date"}},
		{"/admin/keys", url.Values{"name": {"x"}, "scope": {"owner"}}, 422, []string{`id="key-scope-wrong"`}},
		{"/admin/customers/nobody/overrides", url.Values{"name": {"hourly"}, "limit": {"1"}}, 404, nil},
	} {
		b.post(row.path, row.fields).is(row.status).says(row.says...)
	}
	for path, status := range map[string]int{
		"/admin/customers?cursor=x": 422, "/admin/audit?from=yesterday": 422, "/admin/invoices?status=odd": 422, "/admin/customers/nobody": 404,
		"/admin/customers/acme/usage": 200, "/admin/customers/acme/usage?from=x&to=y": 422, "/admin/customers/acme/usage.csv": 200, "/admin/invoices/nothing": 404, "/admin/invoices/file/nothing.pdf": 404, "/admin/invoices/file/nothing.exe": 404,
	} {
		b.get(path).is(status)
	}
}

// TestStaffInvoices: an invoice is finalized, credited, paid and voided by page.
func TestStaffInvoices(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1s")
	b := n.signedIn(testAdminKey)
	n.do("PUT", "/v1/meters/calls", `{"unit":"call"}`).is(201)
	n.do("PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":4900,"prices":[{"meter":"calls","model":"per_unit","unit_price":"0.01"}]}`).is(201)
	n.do("PUT", "/v1/test-clocks/year", `{"now":"2026-01-01T00:00:00Z"}`).is(201)
	for _, key := range []string{"one", "two"} {
		n.do("PUT", "/v1/customers/"+key, `{"name":"One","plan":"pro","test_clock":"year"}`).is(201)
		n.do("POST", "/v1/hits", `{"customer":"`+key+`","meter":"calls","cost":150}`).is(200)
	}
	n.do("PUT", "/v1/test-clocks/year", `{"now":"2026-02-01T00:30:00Z"}`).is(200)
	draft := func(customer string) (found string) {
		eventually(t, 30*time.Second, "a draft of "+customer, func() bool {
			list := b.get("/admin/invoices?status=draft&test_clock=year&customer=" + customer).is(200)
			match := regexp.MustCompile(`/admin/invoices/([A-Za-z0-9_-]+)">Draft`).FindStringSubmatch(list.text)
			if match != nil {
				found = "/admin/invoices/" + match[1]
			}
			return match != nil
		})
		return found
	}
	one, two := draft("one"), draft("two")
	b.get(one).is(200).says("Draft invoice", "$50.50", "Finalize now")
	b.post(one+"/finalize", nil).goes(one + "?done=finalized")
	b.post(one+"/pay", url.Values{"reference": {"bank 7"}}).goes(one + "?done=paid")
	page := b.get(one).is(200).says("paid", "Credit note")
	note := url.Values{"id": {idOf.FindStringSubmatch(page.text)[1]}, "line-1": {"9.00"}, "reason": {"late"}, "to": {"credits"}}
	b.post(one+"/credit-notes", url.Values{"id": {"x"}, "line-1": {"900"}, "reason": {"late"}, "to": {"credits"}}).is(409).says(`role="alert"`)
	b.post(one+"/credit-notes", note).goes(one + "?done=credited")
	b.get("/admin/customers/one/billing").says("$9.00")
	b.post(two+"/finalize", nil).goes(two + "?done=finalized")
	b.post(two+"/void", url.Values{"reason": {"wrong buyer"}, "reissue": {"yes"}}).goes(two + "?done=voided")
	b.post(two+"/pay", url.Values{}).is(409).says(`role="alert"`)
	draft("two") // the reissue
	for file, kind := range map[string]string{".pdf": "application/pdf", ".html": "text/html", ".csv": "text/csv"} {
		got := b.get("/admin/invoices/file/" + strings.TrimPrefix(one, "/admin/invoices/") + file).is(200)
		if !strings.HasPrefix(got.header.Get("Content-Type"), kind) || len(got.text) < 200 {
			t.Errorf("%s: %s, %d bytes", file, got.header.Get("Content-Type"), len(got.text))
		}
	}
	b.get("/admin/invoices.csv?test_clock=any").is(200).says("one")
}

// goes asserts where an answer leads.
func (r *reply) goes(to string) {
	r.t.Helper()
	if got := r.is(303).header.Get("Location"); got != to {
		r.t.Errorf("%s leads to %s, want %s", r.what, got, to)
	}
}

func (r *reply) lacks(words ...string) {
	r.t.Helper()
	for _, w := range words {
		if strings.Contains(r.text, w) {
			r.t.Errorf("%s says %q:\n%s", r.what, w, r.text)
		}
	}
}
