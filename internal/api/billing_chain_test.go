package api

import (
	"strings"
	"testing"
)

// Archiving ends the last period and bills it; nothing follows.
func TestArchivedIsBilled(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":10}`)
	n.setTo("2026-01-11T00:00:00Z")
	n.want(204, "DELETE", "/v1/customers/acme", "")
	n.want(409, "PUT", "/v1/customers/acme/billing", `{}`)
	n.want(404, "GET", "/v1/customers/acme/invoices/upcoming", "")
	draft := n.billed("2026-01-11T00:00:10Z", "draft")
	if draft["period_end"] != "2026-01-11T00:00:00Z" || draft["total_minor"] != 645.0+10 {
		t.Errorf("%v", draft)
	}
	n.setTo("2026-06-01T00:00:00Z")
	n.until("acme", "2026-01-11T00:00:00Z")
}

// A customer is archived while an earlier period waits for its close: both are billed.
func TestArchivedBehindIsBilled(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	n.setTo("2026-02-01T00:00:05Z") // before the close delay of January is over
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":10}`)
	n.setTo("2026-02-01T00:00:07Z")
	n.want(204, "DELETE", "/v1/customers/acme", "")
	n.setTo("2026-02-01T00:00:17Z")
	n.until("acme", "2026-02-01T00:00:07Z")
	items := n.want(200, "GET", "/v1/customers/acme/invoices", "").json["items"].([]any)
	if len(items) != 2 {
		t.Fatalf("%d invoices: %v", len(items), items)
	}
}

// On a clock that stands still the order of changes decides: a version that was written before
// the change that cuts the period prices what begins there.
func TestChangeNowTakesTheNewestVersion(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	n.setTo("2026-01-05T00:00:00Z")
	tag := n.want(200, "GET", "/v1/plans/pro", "").header.Get("ETag")
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"P","currency":"USD","interval":"month","base_price_minor":3100,
		"prices":[{"meter":"requests","model":"per_unit","unit_price":"0.02"}]}`, "If-Match", tag)
	if got := n.runs("acme"); got != "2026-01-01 2026-02-01 0 1" {
		t.Error("before:", got)
	}
	tag = n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	n.want(200, "PUT", "/v1/customers/acme", `{"name":"C","plan":"pro","billing_anchor":"2026-01-01T00:00:00","change":"now"}`, "If-Match", tag)
	if got := n.runs("acme"); got != "2026-01-05 2026-02-01 0 2" {
		t.Error("after:", got)
	}
}

// Billing that begins again begins on the customer's newest terms, whatever boundary they were
// to begin at.
func TestBillingBeginsAgainOnTheNewestTerms(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	n.bill(200, "acme", `{"ends_at":"2026-01-20T00:00:00Z"}`)
	n.setTo("2026-02-10T00:00:00Z")
	n.until("acme", "2026-01-20T00:00:00Z")
	tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	n.want(200, "PUT", "/v1/customers/acme", `{"name":"C","plan":"max","billing_anchor":"2026-01-15T00:00:00","change":"limits_now"}`, "If-Match", tag)
	n.want(201, "PUT", "/v1/customers/acme/prices/requests", `{"model":"per_unit","unit_price":"0.05"}`)
	n.setTo("2026-02-11T00:00:00Z")
	n.bill(200, "acme", `{}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":10}`)
	if got := n.runs("acme"); got != "2026-02-11 2026-02-15 10 1" {
		t.Error(got)
	}
	lines := n.want(200, "GET", "/v1/customers/acme/invoices/upcoming", "").json["lines"].([]any)
	if base, usage := lines[0].(map[string]any)["amount_minor"], lines[1].(map[string]any)["amount_minor"]; base != 1161.0 ||
		usage != 50.0 { // 4 of 31 days of 9,000
		t.Error(base, usage)
	}
}

// Before billing begins, a plan whose base is due in advance takes the place of one in arrears:
// the first period has an opening invoice.
func TestOpeningOfAPlanThatCameBeforeTheStart(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.want(201, "PUT", "/v1/plans/ahead", `{"name":"A","currency":"USD","interval":"month","base_price_minor":5000,"base_in":"advance"}`)
	n.made("acme")
	n.bill(200, "acme", `{"starts_at":"2026-02-01T00:00:00Z"}`)
	tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	n.want(200, "PUT", "/v1/customers/acme", `{"name":"C","plan":"ahead","billing_anchor":"2026-01-01T00:00:00","change":"limits_now"}`, "If-Match", tag)
	if draft := n.billed("2026-02-01T00:00:10Z", "draft"); draft["kind"] != "opening" || draft["total_minor"] != 5000.0 {
		t.Errorf("%v", draft)
	}
}

// Another plan and anchor wait for the running period's end, wherever that comes to be.
func TestTermsWaitForTheEndAsItComesToBe(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	change := func(key string) {
		t.Helper()
		tag := n.want(200, "GET", "/v1/customers/"+key, "").header.Get("ETag")
		n.want(200, "PUT", "/v1/customers/"+key, `{"name":"C","plan":"max","billing_anchor":"2026-01-15T00:00:00","change":"limits_now"}`, "If-Match", tag)
		n.want(201, "PUT", "/v1/customers/"+key+"/prices/requests", `{"model":"per_unit","unit_price":"0.05"}`)
	}
	for _, key := range []string{"later", "sooner"} {
		n.made(key)
	}
	n.bill(200, "later", `{"ends_at":"2026-01-20T00:00:00Z"}`)
	n.bill(200, "sooner", `{"trial_ends_at":"2026-01-25T00:00:00Z"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"later","meter":"requests"}`) // its first price stays
	n.want(200, "POST", "/v1/hits", `{"customer":"sooner","meter":"requests"}`)
	n.setTo("2026-01-10T00:00:00Z")
	change("later")
	change("sooner")
	n.bill(200, "later", `{}`)
	n.bill(200, "sooner", `{"trial_ends_at":"2026-01-18T00:00:00Z"}`)
	if got := n.runs("later"); got != "2026-01-01 2026-02-01 1 1" {
		t.Error("later:", got)
	}
	n.setTo("2026-01-18T00:00:10Z")
	if got := n.runs("sooner"); got != "2026-01-18 2026-02-15 0 1" {
		t.Error("sooner:", got)
	}
	n.setTo("2026-02-01T00:00:10Z")
	if got := n.runs("later"); got != "2026-02-01 2026-02-15 0 1" {
		t.Error("later:", got)
	}
	for _, key := range []string{"later", "sooner"} {
		n.want(200, "POST", "/v1/hits", `{"customer":"`+key+`","meter":"requests","cost":10}`)
		if got := n.want(200, "GET", "/v1/customers/"+key+"/quota", "").json["meters"].([]any)[0].(map[string]any)["amount_minor"]; got != 50.0 {
			t.Error(key, "costs", got)
		}
	}
}

// What prices the first period is fixed when it begins, not when it is planned.
func TestFirstPeriodIsPricedWhenItBegins(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	n.bill(200, "acme", `{"starts_at":"2026-02-01T00:00:00Z"}`)
	tag := n.want(200, "GET", "/v1/plans/pro", "").header.Get("ETag")
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"P","currency":"USD","interval":"month","base_price_minor":3100,"base_in":"advance",
		"prices":[{"meter":"requests","model":"per_unit","unit_price":"0.02"}]}`, "If-Match", tag)
	if draft := n.billed("2026-02-01T00:00:10Z", "draft"); draft["kind"] != "opening" || draft["total_minor"] != 3100.0 {
		t.Errorf("%v", draft)
	}
	if got := n.runs("acme"); got != "2026-02-01 2026-03-01 0 2" {
		t.Error(got)
	}
}

// A version of a plan that was written for new customers prices the periods of those only who join
// later.
func TestVersionsForNewCustomers(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("old")
	write := func(apply, price string) {
		t.Helper()
		tag := n.want(200, "GET", "/v1/plans/pro", "").header.Get("ETag")
		n.want(201, "PUT", "/v1/plans/pro", `{"name":"P","currency":"USD","interval":"month","base_price_minor":2000,"apply_to":"`+apply+`",
			"prices":[{"meter":"requests","model":"per_unit","unit_price":"`+price+`"}]}`, "If-Match", tag)
	}
	month := func(number, old, young string) {
		t.Helper()
		n.settled("2026-" + number + "-01T00:00:10Z")
		for key, want := range map[string]string{"old": old, "young": young} {
			if got := n.runs(key); !strings.HasPrefix(got, "2026-"+number+"-01 ") || !strings.HasSuffix(got, " 0 "+want) {
				t.Errorf("%s runs %s in month %s, want version %s", key, got, number, want)
			}
		}
	}
	n.settled("2026-01-05T00:00:00Z")
	write("new", "0.02")
	n.made("young")
	month("02", "1", "2")
	write("all", "0.03")
	month("03", "3", "3")
	write("new", "0.04")
	month("04", "3", "3")
}
