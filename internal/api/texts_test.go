package api

import (
	"fmt"
	"strings"
	"testing"
)

// A door takes a text for people: a request with %s where the text is, and the member that it is.
type door struct{ method, path, body, field string }

// saying are all the doors of texts that say something. Those of invoices that do not exist look at the
// text first.
var saying = []door{
	{"PUT", "/v1/meters/m", `{"unit":"%s"}`, "unit"},
	{"PUT", "/v1/meters/m", `{"unit":"u","name":"%s"}`, "name"},
	{"PUT", "/v1/plans/p", `{"name":"%s","currency":"USD","interval":"month"}`, "name"},
	{"PUT", "/v1/customers/c", `{"name":"%s","plan":"pro"}`, "name"},
	{"POST", "/v1/keys", `{"name":"%s","scope":"read"}`, "name"},
	{"PUT", "/v1/customers/acme/suspension", `{"reason":"%s"}`, "reason"},
	{"PUT", "/v1/customers/acme/overrides/hourly", `{"limit":7,"reason":"%s"}`, "reason"},
	{"PUT", "/v1/sellers/s", `{"name":"%s"}`, "name"},
	{"PUT", "/v1/sellers/s", `{"name":"s","prefix":"%s"}`, "prefix"},
	{"PUT", "/v1/sellers/s", `{"name":"s","credit_note_prefix":"%s"}`, "credit_note_prefix"},
	{"PUT", "/v1/customers/acme/billing", `{"buyer":{"name":"%s"}}`, "buyer.name"},
	{"PUT", "/v1/customers/acme/billing", `{"taxes":[{"name":"%s","percent":"19","inclusive":false}]}`, "taxes[0].name"},
	{"POST", "/v1/customers/acme/charges", `{"description":"%s","amount_minor":1,"currency":"USD","id":"i"}`, "description"},
	{"POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":1,"reason":"%s","id":"i"}`, "reason"},
	{"POST", "/v1/customers/acme/credits/none/withdraw", `{"reason":"%s","id":"i"}`, "reason"},
	{"POST", "/v1/invoices/none/void", `{"reason":"%s"}`, "reason"},
	{"POST", "/v1/invoices/none/credit-notes", `{"lines":[{"n":1,"amount_minor":1}],"to":"outside","reason":"%s","id":"i"}`, "reason"},
	{"POST", "/v1/invoices/none/payments/1/reverse", `{"reason":"%s","id":"i"}`, "reason"},
}

// TestTextsSaySomething: a text that nobody would see is 422 at every door, and writes nothing.
func TestTextsSaySomething(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	before := n.stored()
	for _, d := range saying {
		for _, text := range []string{" ", "\u00a0", "\u200b", "\u3164", "\ufeff", "\u2800", "\u00ad", "\u0301", "\ue000", " \u200b\u2800 "} {
			if got := n.faultOf(d.method, d.path, fmt.Sprintf(d.body, text)); got != "422 "+d.field {
				t.Errorf("%s %s, %s %+q: %s", d.method, d.path, d.field, text, got)
			}
		}
	}
	if after := n.stored(); after != before {
		t.Errorf("something was written: %s, before: %s", after, before)
	}
}

// TestTextsAreTrimmed: names, reasons, descriptions, units, prefixes and lines of addresses lose white space
// at both ends before they are compared and stored. All else is kept as it was sent.
func TestTextsAreTrimmed(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	const sent, kept = `\u00a0 \tA  b\u3000\n`, "A  b"
	for _, d := range saying {
		if strings.Contains(d.path, "/none") { // the door of a thing that is not there
			continue
		}
		body := fmt.Sprintf(d.body, sent)
		headers := []string{}
		if strings.HasSuffix(d.path, "/billing") || d.path == "/v1/sellers/s" {
			headers = []string{"If-Match", "*"}
			n.do(d.method, d.path, `{"name":"s"}`)
		}
		got := n.do(d.method, d.path, body, headers...)
		if got.status != 200 && got.status != 201 {
			t.Errorf("%s %s %s: %d %s", d.method, d.path, body, got.status, got.text)
		} else if !strings.Contains(got.text, `"`+kept+`"`) {
			t.Errorf("%s %s %s: it is %s", d.method, d.path, body, got.text)
		}
	}
	// What is there already is no change, and the same payload.
	n.want(200, "POST", "/v1/customers/acme/charges", `{"description":"A  b","amount_minor":1,"currency":"USD","id":"i"}`)
	n.want(200, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":1,"reason":"A  b","id":"i"}`)
	before := n.want(200, "GET", "/v1/plans/p", "").header.Get("ETag")
	if after := n.want(200, "PUT", "/v1/plans/p", `{"name":" A  b ","currency":"USD","interval":"month"}`, "If-Match",
		before).header.Get("ETag"); after != before {
		t.Errorf("the plan has another version: %s, %s", before, after)
	}

	got := n.want(200, "PUT", "/v1/customers/acme/billing",
		`{"buyer":{"name":"A","address":[" 1 Street ",""," "],"tax_id":" T "},"order_reference":" O ","notes":[" N "]}`, "If-Match", "*")
	for _, want := range []string{`"address":["1 Street","",""]`, `"tax_id":" T "`, `"order_reference":" O "`, `"notes":[" N "]`} {
		if !strings.Contains(got.text, want) {
			t.Errorf("without %s: %s", want, got.text)
		}
	}
	got = n.want(200, "PUT", "/v1/sellers/s", `{"name":"s","address":[" 1 Street ","\u3000"],"footer":[" F "],"payment":[" P "],"prefix":" I-\t"}`,
		"If-Match", "*")
	for _, want := range []string{`"address":["1 Street",""]`, `"footer":[" F "]`, `"payment":[" P "]`, `"prefix":"I-"`} {
		if !strings.Contains(got.text, want) {
			t.Errorf("without %s: %s", want, got.text)
		}
	}
	got = n.want(200, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","metadata":{" k ":" v "}}`, "If-Match", "*")
	if !strings.Contains(got.text, `{" k ":" v "}`) {
		t.Error(got.text)
	}
}
