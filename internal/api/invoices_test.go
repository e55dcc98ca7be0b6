package api

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"quotad/internal/testkit"
)

// billed sets the clock and waits for an invoice of a status.
func (n *node) billed(now, status string) map[string]any {
	n.t.Helper()
	n.want(200, "PUT", "/v1/test-clocks/clock", `{"now":"`+now+`"}`)
	var items []any
	testkit.Eventually(n.t, "an invoice that is "+status+", at "+now, func() bool {
		items = n.want(200, "GET", "/v1/invoices?customer=acme&test_clock=any&status="+status, "").json["items"].([]any)
		return len(items) == 1
	})
	return items[0].(map[string]any)
}

// drawn fails unless an invoice with a charge for a setup, acme's only final one, is there in each form.
func (n *node) drawn(path string) {
	t := n.t
	t.Helper()
	for form, begin := range map[string]string{".html": "<!doctype html>", ".csv": "", ".pdf": "%PDF-1."} {
		status, text, _ := n.text("GET", path+form, "")
		if status != 200 || !strings.HasPrefix(strings.ToLower(text), strings.ToLower(begin)) || form != ".pdf" && !strings.Contains(text, "Setup") {
			t.Errorf("%s: %d %.200q", form, status, text)
		}
	}
	if status, text, _ := n.text("GET", "/v1/invoices.csv?customer=acme&test_clock=clock&status=finalized", ""); status != 200 ||
		strings.Count(text, "\n") != 2 || !strings.Contains(text, "acme") {
		t.Errorf("list: %d %q", status, text)
	}
	if status, _, _ := n.text("GET", "/v1/invoices/00000000-0000-4000-8000-000000000000.pdf", ""); status != 404 {
		t.Errorf("an unknown invoice's: %d", status)
	}
}

// A month: hits, the upcoming invoice, the draft, the invoice, its payment.
func TestAMonthIsBilled(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":2000,
		"prices":[{"meter":"requests","model":"per_unit","unit_price":"0.01","included":3}]}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	n.want(200, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-10T12:00:00Z"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":103}`)
	n.want(201, "POST", "/v1/customers/acme/charges", `{"description":"Setup","amount_minor":500,"currency":"USD","id":"setup"}`)
	n.want(200, "POST", "/v1/customers/acme/charges", `{"description":"Setup","amount_minor":500,"currency":"USD","id":"setup"}`)
	if got := n.faultOf("POST", "/v1/customers/acme/charges", `{"description":"Setup","amount_minor":501,"currency":"USD","id":"setup"}`); got != "422 " {
		t.Errorf("another charge under the id: %s", got)
	}
	if got := n.faultOf("POST", "/v1/customers/acme/charges", `{"description":"x","amount_minor":1,"currency":"EUR","id":"e"}`); got != "422 currency" {
		t.Errorf("a charge in another currency: %s", got)
	}
	n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":1000,"currency":"USD","id":"welcome"}`)
	meter := n.want(200, "GET", "/v1/customers/acme/quota", "").json["meters"].([]any)[0].(map[string]any)
	if meter["amount_minor"] != 100. || meter["price_version"] != 1. || meter["included"] != 3. || meter["overage"] != 100. {
		t.Errorf("quota: %v", meter)
	}
	upcoming := n.want(200, "GET", "/v1/customers/acme/invoices/upcoming", "").json
	if upcoming["id"] != nil || upcoming["total_minor"] != 2600. || upcoming["amount_due_minor"] != 1600. {
		t.Errorf("upcoming: %v", upcoming)
	}

	draft := n.billed("2026-02-01T00:00:10Z", "draft")
	if draft["total_minor"] != 2600. || draft["number"] != nil || len(draft["lines"].([]any)) != 3 {
		t.Errorf("draft: %v", draft)
	}
	path := "/v1/invoices/" + draft["id"].(string)
	n.want(409, "POST", path+"/pay", `{}`)
	n.want(409, "POST", path+"/void", `{"reason":"x"}`)
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":-3,"reason":"a test","at":"2026-01-10T12:00:00Z","id":"adjusted"}`)
	usage := n.want(200, "GET", path+"/lines/2/usage", "").json
	if h, a := usage["hours"].([]any), usage["adjustments"].([]any); len(h) != 1 || h[0].(map[string]any)["admitted"] != 103. || len(a) != 1 {
		t.Errorf("usage: %v", usage)
	}

	final := n.billed("2026-02-01T01:00:10Z", "finalized")
	if final["number"] != "TEST-1" || final["subtotal_minor"] != 2597. || final["credits_minor"] != 1000. || final["due_at"] != "2026-02-15T01:00:10Z" {
		t.Errorf("final: %v", final)
	}
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":-10,"reason":"late","at":"2026-01-10T12:00:00Z","id":"late"}`)
	if usage = n.want(200, "GET", path+"/lines/2/usage", "").json; len(usage["adjustments"].([]any)) != 1 {
		t.Errorf("what came later is no part of the line: %v", usage)
	}
	n.drawn(path)
	n.want(200, "POST", path+"/pay", `{"reference":"transfer"}`)
	n.want(409, "POST", path+"/pay", `{}`)
	n.want(409, "POST", path+"/finalize", "")
	note := n.want(201, "POST", path+"/credit-notes", `{"lines":[{"n":1,"amount_minor":2000}],"reason":"an outage","to":"credits","id":"n1"}`).json
	if note["number"] != "TEST-2" || note["total_minor"] != -2000. || note["status"] != "paid" {
		t.Errorf("note: %v", note)
	}
	n.want(200, "POST", path+"/credit-notes", `{"lines":[{"n":1,"amount_minor":2000}],"reason":"an outage","to":"credits","id":"n1"}`)
	n.want(409, "POST", path+"/credit-notes", `{"lines":[{"n":1,"amount_minor":1}],"reason":"more","to":"credits","id":"n2"}`)

	next := n.billed("2026-03-01T00:00:10Z", "draft")
	lines := next["lines"].([]any)
	if last := lines[len(lines)-1].(map[string]any); last["kind"] != "correction" || last["quantity"] != -10. || last["amount_minor"] != -10. {
		t.Errorf("the next one: %v", next)
	}
	again := n.want(200, "POST", "/v1/invoices/"+next["id"].(string)+"/finalize", "").json
	if again["status"] != "paid" || again["credits_minor"] != 1990. {
		t.Errorf("paid by credits: %v", again)
	}
}

// Papers of test clocks say that they are tests. Dates are those of the customer's timezone as it
// was when the invoice was finalized. A credit note says why it was made.
func TestPapers(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"C","plan":"pro","timezone":"America/New_York","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	n.want(200, "PUT", "/v1/customers/acme/billing", `{"starts_at":"2026-01-01T05:00:00Z"}`)
	final := n.billed("2026-02-01T06:00:20Z", "finalized")
	path := "/v1/invoices/" + final["id"].(string)
	paper := func(path string, want ...string) {
		t.Helper()
		_, text, _ := n.text("GET", path+".html", "")
		for _, words := range want {
			if !strings.Contains(text, words) {
				t.Errorf("the page lacks %q: %s", words, text)
			}
		}
	}
	want := []string{"1 Jan – 31 Jan 2026", "America/New_York", ">Test<", "the test clock clock"}
	paper(path, want...)
	_, pdf, _ := n.text("GET", path+".pdf", "")
	tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	n.want(200, "PUT", "/v1/customers/acme", `{"name":"C","plan":"pro","timezone":"Asia/Tokyo"}`, "If-Match", tag)
	paper(path, want...)
	if _, again, _ := n.text("GET", path+".pdf", ""); again != pdf {
		t.Error("the PDF has other bytes")
	}
	note := n.want(201, "POST", path+"/credit-notes", `{"lines":[{"n":1,"amount_minor":100}],"reason":"an outage","to":"outside","id":"n1"}`).json
	if note["reason"] != "an outage" || final["reason"] != nil {
		t.Errorf("reasons: %v, %v", note["reason"], final["reason"])
	}
	paper("/v1/invoices/"+note["id"].(string), "Reason: an outage", "America/New_York", ">Test<")
}

// Credits come in pages, as other lists do.
func TestCreditsComeInPages(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	const path, all = "/v1/customers/acme/credits", 7
	for i := range all {
		n.want(201, "POST", path, fmt.Sprintf(`{"amount_minor":%d,"currency":"USD","id":"c%d"}`, 100+i, i))
	}
	n.billed("2026-02-01T01:00:10Z", "finalized")
	whole := n.want(200, "GET", path, "").json
	if whole["next_cursor"] != nil || len(whole["balances"].([]any)) != all || len(whole["entries"].([]any)) != 2*all {
		t.Fatalf("%v", whole)
	}
	for _, limit := range []int{1, 3, 7, 13, 14, 1000} {
		var balances, entries []any
		for cursor, more := "", true; more; {
			page := n.want(200, "GET", fmt.Sprintf("%s?limit=%d%s", path, limit, cursor), "").json
			balances, entries = append(balances, page["balances"].([]any)...), append(entries, page["entries"].([]any)...)
			var next string
			if next, more = page["next_cursor"].(string); more {
				cursor = "&cursor=" + next
			}
		}
		if !reflect.DeepEqual(balances, whole["balances"]) || !reflect.DeepEqual(entries, whole["entries"]) {
			t.Errorf("pages of %d: %v %v", limit, balances, entries)
		}
	}
	for _, query := range []string{"limit=0", "limit=1001", "cursor=x"} {
		if got := n.faultOf("GET", path+"?"+query, ""); got != "422 "+strings.Split(query, "=")[0] {
			t.Errorf("%s: %s", query, got)
		}
	}
}
