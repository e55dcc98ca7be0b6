package api

import (
	"fmt"
	"testing"
)

// What a plan change costs from when on; at the period's start it replaces its terms.
func TestTermsOfAPeriod(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	put := func(status int, body string) reply {
		t.Helper()
		tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
		return n.want(status, "PUT", "/v1/customers/acme", `{"name":"C","billing_anchor":"2026-01-01T00:00:00",`+body+`}`, "If-Match", tag)
	}
	base := func() any {
		t.Helper()
		return n.want(200, "GET", "/v1/customers/acme/invoices/upcoming", "").json["lines"].([]any)[0].(map[string]any)["amount_minor"]
	}
	put(409, `"plan":"euro","change":"limits_now"`)
	n.setTo("2026-01-05T00:00:00Z")
	put(200, `"plan":"max","change":"limits_now"`)
	if got := base(); got != 2000.0 {
		t.Error("the running period:", got)
	}
	put(200, `"plan":"max","change":"now"`) // what was to come comes now
	if got := n.runs("acme"); got != "2026-01-05 2026-02-01 0 1" {
		t.Error("cut:", got)
	}
	put(200, `"plan":"max","change":"now"`) // nothing is left to change
	put(200, `"plan":"pro","change":"now"`) // at the open period's start? its first one is not closed yet
	n.setTo("2026-01-05T00:00:10Z")
	n.until("acme", "2026-01-05T00:00:00Z")
	if got := n.runs("acme"); got != "2026-01-05 2026-02-01 0 1" {
		t.Error("cut again at the start:", got)
	}
	if got := base(); got != 1742.0 { // of 2,000: 27 days of 31
		t.Error("its terms are replaced:", got)
	}
	n.setTo("2026-01-05T00:00:00Z") // again at the open period's start, and no hit came in it
	put(200, `"plan":"max","change":"now"`)
	if got := base(); got != 7839.0 {
		t.Error("replaced once more:", got)
	}
	if got := n.runs("acme"); got != "2026-01-05 2026-02-01 0 1" {
		t.Error("and no period was made:", got)
	}
	n.setTo("2026-01-04T00:00:00Z")
	put(409, `"plan":"pro","change":"now"`)
}

// The 101st change of terms in a period is refused, and nothing of it is written.
func TestTooManyTerms(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	for i := range 100 {
		want := 200
		if i == 0 {
			want = 201
		}
		n.want(want, "PUT", "/v1/customers/acme/prices/requests", fmt.Sprintf(`{"model":"per_unit","unit_price":"%d"}`, i+1))
	}
	n.want(409, "PUT", "/v1/customers/acme/prices/requests", `{"model":"per_unit","unit_price":"101"}`)
	if got := n.want(200, "GET", "/v1/customers/acme/prices/requests", "").json["unit_price"]; got != "100" {
		t.Error(got)
	}
	n.setTo("2026-02-01T00:00:10Z")
	n.until("acme", "2026-02-01T00:00:00Z")
	n.want(200, "PUT", "/v1/customers/acme/prices/requests", `{"model":"per_unit","unit_price":"101"}`)
}

// A price of a customer's own counts from the next period on, and for the first one until its
// first billed hit.
func TestOwnPrices(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	const path = "/v1/customers/acme/prices/requests"
	amount := func() any {
		t.Helper()
		return n.want(200, "GET", "/v1/customers/acme/quota", "").json["meters"].([]any)[0].(map[string]any)["amount_minor"]
	}
	if got := n.want(201, "PUT", path, `{"model":"per_unit","unit_price":"0.05"}`).json["from"]; got != "2026-01-01T00:00:00Z" {
		t.Error("from:", got)
	}
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":10}`)
	if got := amount(); got != 50.0 {
		t.Error("the first period:", got)
	}
	if got := n.want(200, "PUT", path, `{"model":"per_unit","unit_price":"0.07"}`).json["from"]; got != "2026-02-01T00:00:00Z" {
		t.Error("from:", got)
	}
	if got := amount(); got != 50.0 {
		t.Error("after a hit:", got)
	}
	if got := n.want(200, "GET", "/v1/customers/acme/prices", "").json["items"].([]any); len(got) != 1 || got[0].(map[string]any)["unit_price"] != "0.07" {
		t.Error(got)
	}
	n.setTo("2026-02-01T00:00:10Z")
	n.until("acme", "2026-02-01T00:00:00Z")
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":10}`)
	if got := amount(); got != 70.0 {
		t.Error("the next one:", got)
	}
	n.want(204, "DELETE", path, "")
	n.want(404, "DELETE", path, "")
	n.want(404, "GET", path, "")
	if got := amount(); got != 70.0 {
		t.Error("until its end:", got)
	}
	for body, want := range map[string]string{
		`{"model":"per_unit"}`: "422 unit_price",
		`{"model":"volume","tiers":[{"up_to":2,"unit_price":"1"},{"up_to":1,"unit_price":"1"},{"up_to":null,"unit_price":"1"}]}`: "422 tiers[1].up_to",
		`{"meter":"requests","model":"per_unit","unit_price":"1"}`:                                                               "422 meter",
	} {
		if got := n.faultOf("PUT", path, body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if got := n.faultOf("PUT", "/v1/customers/acme/prices/nothing", `{"model":"per_unit","unit_price":"1"}`); got != "422 meter" {
		t.Error("an unknown meter:", got)
	}
}
