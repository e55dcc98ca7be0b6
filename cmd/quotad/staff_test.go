package main

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"quotad/internal/testkit"
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
	b.post("/admin/customers", url.Values{
		"key": {"a b<script>"}, "name": {"<script>alert(1)</script>"}, "plan": {"pro"},
		"timezone": {"Asia/Kolkata"},
	}).goes("/admin/customers/a%20b%3Cscript%3E?done=made")
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
	n.do("PUT", "/v1/customers/"+strings.TrimPrefix(here, "/admin/customers/")+"/prices/calls", `{"model":"per_unit","unit_price":"0.01"}`).is(201)
	b.post(here+"/caps", url.Values{"meter": {"calls"}, "amount_minor": {"0.5"}}).goes(here + "/billing?done=saved")
	b.get(here+"/billing").says("$0.50", "At most in a period")
	b.get(here).says("At most $0.50 in this period, $0.50 left", "cap: ")
	b.post(here+"/caps", url.Values{"meter": {"none"}, "amount_minor": {"1"}}).is(422).says("no such meter")
	b.post(here+"/caps/calls/delete", url.Values{"sure": {"yes"}}).goes(here + "/billing?done=deleted")
	b.get(here + "/billing").says("Nothing is capped")
	b.post(here, url.Values{"name": {"Other"}, "plan": {"pro"}, "timezone": {"UTC"}}).goes(here + "/settings?done=saved")
	b.get(here + "/settings").says("Other")
	made := b.post("/admin/keys", url.Values{"name": {"desk"}, "scope": {"support"}}).is(200).says("qk_")
	secret := regexp.MustCompile(`qk_[A-Za-z0-9_-]+`).FindString(made.text)
	b.get("/admin/keys").lacks(secret)
	b.get("/admin/audit?target=" + url.QueryEscape("customers/a b<script>")).is(200).says("bootstrap")
	b.post(here+"/suspension", url.Values{"reason": {" "}}).is(422).says("This is needed.")
	b.post(here+"/suspension", url.Values{"reason": {"Unpaid <since> May."}}).goes(here + "?done=suspended")
	b.get(here).says("Unpaid &lt;since&gt; May.", "Suspended since", "Resume").lacks("Suspend the customer")
	n.do("POST", "/v1/hits", `{"customer":"a b<script>","meter":"calls"}`).is(403)
	b.post(here+"/suspension/delete", nil).goes(here + "?done=resumed")
	b.get(here).says("Suspend the customer").lacks("Suspended since")
	n.do("POST", "/v1/hits", `{"customer":"a b<script>","meter":"calls"}`).is(200)
	b.get("/admin/audit?target="+url.QueryEscape("customers/a b<script>/suspension")).says("create", "delete", "Unpaid")
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
	b.post(here+"/suspension", url.Values{"reason": {"x"}}).is(403)
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
		{
			"/admin/customers/acme/adjustments",
			url.Values{"id": {"1"}, "meter": {"nothing"}, "cost": {"1"}, "reason": {"r"}},
			404,
			[]string{`role="alert"`, `value="nothing"`},
		},
		{
			"/admin/customers/acme/adjustments",
			url.Values{"id": {"1"}, "meter": {"calls"}, "cost": {"1"}, "reason": {"r"}, "at": {"yesterday"}},
			422,
			[]string{"Write a date"},
		},
		{"/admin/keys", url.Values{"name": {"x"}, "scope": {"owner"}}, 422, []string{`id="key-scope-wrong"`}},
		{"/admin/customers/nobody/overrides", url.Values{"name": {"hourly"}, "limit": {"1"}}, 404, nil},
	} {
		b.post(row.path, row.fields).is(row.status).says(row.says...)
	}
	for path, status := range map[string]int{
		"/admin/customers?cursor=x": 422, "/admin/audit?from=yesterday": 422, "/admin/invoices?status=odd": 422, "/admin/customers/nobody": 404,
		"/admin/customers/acme/usage": 200, "/admin/customers/acme/usage?from=x&to=y": 422, "/admin/customers/acme/usage.csv": 200,
		"/admin/invoices/nothing": 404, "/admin/invoices/file/nothing.pdf": 404, "/admin/invoices/file/nothing.exe": 404,
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
		testkit.Eventually(t, "a draft of "+customer, func() bool {
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
	b.post(one+"/pay", url.Values{"amount_minor": {"50.51"}}).is(409).says(`role="alert"`, "5050 is open")
	b.post(one+"/pay", url.Values{"amount_minor": {"20.00"}, "reference": {"bank 6"}}).goes(one + "?done=paid")
	b.get(one).is(200).says("1. Paid", "bank 6", "$20.00", "$30.50", "Reverse a payment")
	b.post(one+"/apply-credits", nil).is(409).says(`role="alert"`)
	b.post(one+"/reverse", url.Values{"id": {"r"}, "payment": {"1"}, "reason": {"bounced"}}).goes(one + "?done=reversed")
	b.get(one).is(200).says("reversed", "bounced", "$50.50", "Void it")
	b.post("/admin/customers/one/credits", url.Values{
		"id": {"gift"}, "amount_minor": {"7.00"},
		"kind": {"promotional"},
	}).goes("/admin/customers/one/billing?done=booked")
	b.post("/admin/customers/one/credits/withdraw", url.Values{
		"id": {"w"}, "credit": {"gift"}, "amount_minor": {"2.00"},
		"reason": {"too much"},
	}).goes("/admin/customers/one/billing?done=withdrawn")
	b.post("/admin/customers/one/credits/withdraw", url.Values{
		"id": {"w2"}, "credit": {"gift"}, "amount_minor": {"5.01"},
		"reason": {"too much"},
	}).is(409).says(`role="alert"`)
	b.post(one+"/apply-credits", nil).goes(one + "?done=applied")
	b.get(one).is(200).says("2. Credits applied", "$5.00", "$45.50")
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

// TestPortalSaysWhyNothingIsLetThrough: a suspension with its reason, an end that comes, and one that came.
func TestPortalSaysWhyNothingIsLetThrough(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	n.do("PUT", "/v1/meters/calls", `{"unit":"call"}`).is(201)
	n.do("PUT", "/v1/plans/pro", planOf(`{"name":"hourly","meter":"calls","algorithm":"fixed_window","limit":10,"window":"1h"}`)).is(201)
	n.do("PUT", "/v1/test-clocks/t", `{"now":"2026-01-10T00:00:00Z"}`).is(201)
	n.do("PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","test_clock":"t"}`).is(201)
	b := n.browser().enter(n, "acme")
	b.get("/portal").is(200).lacks("Nothing is let through")
	n.do("PUT", "/v1/customers/acme/suspension", `{"reason":"Unpaid <since> May."}`).is(200)
	b.get("/portal").is(200).says("Suspended since", "Unpaid &lt;since&gt; May.")
	n.do("DELETE", "/v1/customers/acme/suspension", "").is(204)
	n.do("PUT", "/v1/customers/acme/billing", `{"ends_at":"2026-01-20T12:30:00Z"}`).is(200)
	b.get("/portal").says("The subscription ends on 20 January 2026, 12:30.").lacks("Suspended")
	n.do("PUT", "/v1/test-clocks/t", `{"now":"2026-01-20T12:30:00Z"}`).is(200)
	b.get("/portal").says("The subscription ended on 20 January 2026, 12:30.")
	n.signedIn(testAdminKey).get("/admin/customers/acme").says("The subscription ended on 20 January 2026, 12:30.")
}

// TestPagesChangeThePlan: the customer's page of its plan shows each way to another one, does it, and drops
// what waits. The portal and the page of limits say what comes.
func TestPagesChangeThePlan(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	n.do("PUT", "/v1/meters/calls", `{"unit":"call"}`).is(201)
	for key, base := range map[string]string{"small": "1000", "large": "5000", "euro": "900"} {
		n.do("PUT", "/v1/plans/"+key, `{"name":"The `+key+` & <i>","currency":"`+map[bool]string{
			true:  "EUR",
			false: "USD",
		}[key == "euro"]+`","interval":"month","base_price_minor":`+base+`,"base_in":"advance",
			"limits":[{"name":"month","meter":"calls","algorithm":"fixed_window","limit":`+base+`,"window":"calendar_month"}]}`).is(201)
	}
	n.do("PUT", "/v1/plans/year", `{"name":"Year","currency":"USD","interval":"month","base_price_minor":12000,"base_in":"advance","base_every":12}`).is(201)
	n.do("PUT", "/v1/test-clocks/t", `{"now":"2026-01-01T00:00:00Z"}`).is(201)
	n.do("PUT", "/v1/customers/acme",
		`{"name":"Acme","plan":"small","timezone":"Asia/Kolkata","billing_anchor":"2026-01-01T05:30:00","metadata":{"kept":"yes"},"test_clock":"t"}`).is(201)
	n.do("PUT", "/v1/test-clocks/t", `{"now":"2026-01-16T12:00:00Z"}`).is(200)
	const here = "/admin/customers/acme/plan"
	b, portal := n.signedIn(testAdminKey), n.browser().enter(n, "acme")
	tag := regexp.MustCompile(`name="etag" value="([^"]+)"`)
	does := func(way, value, to string) url.Values { // the fields of a button
		shown := b.get(here + "?plan=" + to).is(200).says("Limits now, prices with the next period")
		return url.Values{"plan": {to}, "plan_version": {""}, way: {value}, "etag": {html.UnescapeString(tag.FindStringSubmatch(shown.text)[1])}}
	}

	b.get(here).is(200).says("$10.00 a month", "The small &amp; &lt;i&gt;").lacks("Change now", "<i>")
	b.get(here + "?plan=nothing").is(422).says("There is no such plan").lacks("Change now")
	b.get(here + "?plan=large&plan_version=0").is(422).says("whole number")
	b.get(here + "?plan=large&plan_version=7").is(422).says("no such version")
	b.get(here + "?plan=small").is(422).says("is on this plan already")

	coming := "From 1 February 2026, 05:30, the plan is The large &amp; &lt;i&gt;."
	b.post(here, does("when", "period_end", "large")).goes(here + "?done=scheduled")
	b.get(here).says(coming, "$50.00 a month", "Drop it")
	b.get("/admin/customers/acme").says(coming)
	portal.get("/portal").is(200).says(`banner news">` + coming)
	portal.get("/portal/plan").says(coming+" $50.00 a month.", "The small")
	b.post(here+"/drop", nil).goes(here + "?done=dropped")
	b.get(here).lacks("the plan is")
	portal.get("/portal").lacks("the plan is")
	portal.get("/portal/plan").lacks("the plan is")

	b.post(here, does("when", "period_end", "euro")).is(409).says(`role="alert"`)
	b.post(here, does("change", "never", "large")).is(422).says(`role="alert"`)
	old := does("change", "now", "large")
	b.post(here, does("change", "limits_now", "large")).goes(here + "?done=changed")
	b.post(here, old).is(412).says(`role="alert"`) // the customer is not as the page showed it
	n.do("GET", "/v1/customers/acme", "").is(200).has("plan", "large").has("timezone", "Asia/Kolkata").has("metadata.kept", "yes")
	b.post(here, does("change", "now", "year")).goes(here + "?done=changed")
	b.get(here + "?plan=small").says("The base price is paid for 12 periods")
	b.post(here, does("when", "base_end", "small")).goes(here + "?done=scheduled")
	_, reader := n.newKey("read")
	n.signedIn(reader).get(here+"?plan=large").is(200).says("The small").lacks("Drop it", "Change now")
}
