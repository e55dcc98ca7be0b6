package api

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"quotad/internal/testkit/pgtest"
)

// previewed is the line that an adjustment would make.
func (n *node) previewed(customer, meter string, cost int, at string) map[string]any {
	n.t.Helper()
	line := n.want(200, "POST", "/v1/customers/"+customer+"/adjustments?preview=true",
		fmt.Sprintf(`{"meter":%q,"cost":%d,"reason":"r","at":%q}`, meter, cost, at)).json
	if line["test_clock"] != "clock" {
		n.t.Errorf("%v", line)
	}
	delete(line, "test_clock")
	return line
}

// lineOf is the line of a kind and meter of an invoice.
func lineOf(invoice map[string]any, kind, meter string) map[string]any {
	for _, l := range invoice["lines"].([]any) {
		if l := l.(map[string]any); l["kind"] == kind && l["meter"] == meter {
			return l
		}
	}
	return nil
}

// A preview is the very line that the adjustment makes then: of the running period, of a draft, and
// the correction of a final invoice. It writes nothing.
func TestPreviewOfAnAdjustment(t *testing.T) {
	t.Parallel()
	n := bookedNode(t)
	adjust := func(cost int, at string) {
		t.Helper()
		n.want(201, "POST", "/v1/customers/acme/adjustments", fmt.Sprintf(`{"meter":"requests","cost":%d,"reason":"r","at":%q,"id":"p%d"}`, cost, at, cost))
	}
	made := func(what, path, kind string, cost int, at string) {
		t.Helper()
		before := pgtest.Query[int64](t, n.database, "SELECT count(*) FROM adjustments")
		want := n.previewed("acme", "requests", cost, at)
		if pgtest.Query[int64](t, n.database, "SELECT count(*) FROM adjustments") != before {
			t.Errorf("%s: something was written", what)
		}
		adjust(cost, at)
		got := lineOf(n.want(200, "GET", path, "").json, kind, "requests")
		if kind == "correction" {
			want["n"] = got["n"] // its place there is not known
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the line is\n%v, it was to be\n%v", what, got, want)
		}
	}
	const upcoming = "/v1/customers/acme/invoices/upcoming"
	made("the running period", upcoming, "usage", 1234, "2026-03-02T10:00:00Z")
	made("a final invoice", upcoming, "correction", -11, "2026-01-10T10:00:00Z")
	made("a final invoice again", upcoming, "correction", 500, "2026-01-11T10:00:00Z")
	n.setTo("2026-04-01T00:00:10Z")
	n.until("acme", "2026-04-01T00:00:00Z")
	draft := n.want(200, "GET", "/v1/invoices?customer=acme&test_clock=any&status=draft", "").json["items"].([]any)[0].(map[string]any)
	made("a draft", "/v1/invoices/"+draft["id"].(string), "usage", -34, "2026-03-02T10:00:00Z")
	if line := n.previewed("acme", "requests", 5, "2026-01-31T00:00:00Z"); line["kind"] != "correction" || line["amount_minor"] != 5. {
		t.Errorf("a claimed correction before: %v", line)
	}
	if line := n.previewed("acme", "requests", -5000, "2026-01-31T00:00:00Z"); line["amount_minor"] != -619. || line["quantity"] != -5000. {
		t.Errorf("more than there was: %v", line)
	}
	if line := n.previewed("acme", "mails", 1, "2026-02-28T00:00:00Z"); line["amount_minor"] != 25. {
		t.Errorf("a unit that costs more than the minimum: %v", line)
	}
}

// What cannot be previewed is said as it is for an adjustment.
func TestPreviewOfNoLine(t *testing.T) {
	t.Parallel()
	n := bookedNode(t)
	n.want(201, "PUT", "/v1/meters/free", `{"unit":"unit"}`)
	for _, c := range []struct {
		status         int
		customer, body string
		says           string
	}{
		{404, "nobody", `{"meter":"requests","cost":1,"reason":"r"}`, "nobody"},
		{404, "acme", `{"meter":"nothing","cost":1,"reason":"r"}`, "no meter"},
		{409, "acme", `{"meter":"free","cost":1,"reason":"r"}`, "no price"},
		{409, "acme", `{"meter":"free","cost":1,"reason":"r","at":"2026-01-10T00:00:00Z"}`, "no price"},
		{422, "acme", `{"meter":"requests","cost":0,"reason":"r"}`, "cost"},
		{422, "acme", `{"meter":"requests","cost":1,"reason":"r","at":"2026-03-04T00:00:00Z"}`, "future"},
		{422, "acme", `{"meter":"requests","cost":1,"reason":"r","at":"2025-12-31T23:59:59Z"}`, "starts_at"},
		{422, "acme", `{"meter":"requests","cost":1}`, "reason"},
	} {
		got := n.want(c.status, "POST", "/v1/customers/"+c.customer+"/adjustments?preview=true", c.body)
		if !strings.Contains(got.text, c.says) {
			t.Errorf("%s: %s", c.body, got.text)
		}
	}
	n.want(422, "POST", "/v1/customers/acme/adjustments?preview=yes", `{"meter":"requests","cost":1,"reason":"r"}`)
	n.want(422, "POST", "/v1/customers/acme/adjustments?preview=false", `{"meter":"requests","cost":1,"reason":"r"}`)
	if got := n.do("POST", "/v1/customers/gone/adjustments?preview=true", `{"meter":"requests","cost":1,"reason":"r"}`); got.status != 404 && got.status != 409 {
		t.Errorf("an archived customer: %s", got.text)
	}
	n.agreed("afterwards")
}
