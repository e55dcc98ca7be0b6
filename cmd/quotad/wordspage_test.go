package main

import (
	"regexp"
	"strings"
	"testing"

	"quotad/internal/testkit"
)

// jargon are names of the API that people need not know: members with an underscore or an index, and
// calls. Left out is what one types as it is, and what is shown as a document.
const jargon = `(() => {
  const copy = document.querySelector("main").cloneNode(true);
  for (const e of copy.querySelectorAll("pre, code, textarea, script, .mono, .note")) e.remove();
  return (copy.textContent.match(/\b[a-z]+(_[a-z]+)+\b|\b[a-z]+\[\d+\][\w.]*|\/v1\/\S*|Book something|0 is closed/g) ?? [])
    .filter(w => !/^(calendar_(day|week|month|year)|billing_period)$/.test(w));
})()`

// TestPagesSpeakPlainly: no page of the admins has names of the API, when its books disagree and when
// its draft has faults either.
func TestPagesSpeakPlainly(t *testing.T) {
	t.Parallel()
	n := pagesWorld(t, "1h")
	n.do("PUT", "/v1/plans/many/draft", planOf(`{"name":"a","meter":"nothing","algorithm":"fixed_window","limit":1,"window":"soon","precision":"1us"}`),
		`If-Match: *`).is(200)
	execSQL(t, n.databaseURL, "UPDATE usage SET admitted = admitted + 5 WHERE hour = (SELECT min(hour) FROM usage)")
	b := n.signedIn(testAdminKey)
	b.post("/admin/reconcile", nil).is(200).says("do not agree", "What was charged is booked as usage", "customer billed, meter", "in place of")
	w := openWindow(t, n)
	w.as("admin")
	testkit.Eventually(t, "the overview has heard of it", func() bool {
		return strings.Contains(b.get("/admin").is(200).text, "The books did not agree at the last check: “What was charged is booked as usage”")
	})
	for _, path := range []string{
		"/admin", "/admin/customers", "/admin/customers/acme", "/admin/customers/acme/billing", "/admin/customers/billed/billing", "/admin/customers/acme/settings",
		"/admin/invoices", "/admin/invoices/" + n.invoice, "/admin/plans", "/admin/plans/many", "/admin/plans/many/publish", "/admin/plans/many/play?meter=nothing",
		"/admin/plans/tiered", "/admin/plans/tiered/publish", "/admin/plans/pro", "/admin/plans/pro/publish", "/admin/plans/pro/versions",
		"/admin/plans/pro/play?meter=tokens&compare=1",
		"/admin/keys", "/admin/meters", "/admin/invoices?status=odd", "/admin/audit?from=yesterday", "/admin/customers?cursor=x",
	} {
		w.look(1280, "light", path)
		if found := eval[[]string](w, jargon); len(found) > 0 {
			t.Errorf("%s says %q", path, found)
		}
	}
	eval[int](w, `document.body.innerHTML = "";0`)
	w.look(1280, "light", "/admin/reconcile")
	eval[int](w, `document.querySelector("main form button").click();0`)
	w.settles("the report", `document.querySelector("main table") !== null && document.readyState === "complete"`)
	if found := eval[[]string](w, jargon); len(found) > 0 {
		t.Errorf("the report says %q", found)
	}
	w.look(1280, "light", "/admin/plans/many")
	eval[int](w, `document.querySelector(".banner li a").click();0`)
	if id := eval[string](w, `document.querySelector(":target")?.id ?? ""`); !regexp.MustCompile(`^f-limits-0-`).MatchString(id) {
		t.Errorf("what keeps the draft leads to %q", id)
	}
}
