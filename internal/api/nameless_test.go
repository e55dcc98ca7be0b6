package api

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// listed are the customers of a list of invoices.
func (n *node) listed(query string) (all []string) {
	n.t.Helper()
	for _, i := range n.want(200, "GET", "/v1/invoices"+query, "").items() {
		all = append(all, i["customer"].(string))
	}
	return all
}

// A customer that was made without an account is billed by a seller that nobody has named. Its
// invoice is held and says so, the overview tells of it, and it is sent when the seller has a name.
func TestAnInvoiceOfANamelessSeller(t *testing.T) {
	t.Parallel()
	n := overviewNode(t)
	n.exec(`UPDATE sellers SET name = ''`)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":2000}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	draft := n.billed("2026-02-01T01:00:20Z", "draft")
	if held, _ := draft["held"].(string); !strings.Contains(held, "PUT /v1/sellers/default") {
		t.Errorf("held: %v", draft["held"])
	}
	path := "/v1/invoices/" + draft["id"].(string)
	if got := n.want(409, "POST", path+"/finalize", "").json; !strings.Contains(got["detail"].(string), "PUT /v1/sellers/default") {
		t.Errorf("%v", got)
	}
	eventually(t, "the overview tells of it", func() bool {
		all := n.overview()["concerns"].([]any)
		return len(all) == 1 && all[0].(map[string]any)["name"] == "seller_without_name" &&
			all[0].(map[string]any)["text"] == "An invoice is held until the seller default has a name: PUT /v1/sellers/default."
	})
	n.want(200, "PUT", "/v1/sellers/default", `{"name":"Us"}`, "If-Match", "*")
	eventually(t, "the invoice is finalized", func() bool {
		i := n.want(200, "GET", path, "").json
		return i["number"] == "TEST-1" && i["held"] == nil && i["seller"].(map[string]any)["name"] == "Us"
	})
	if all := n.overview()["concerns"].([]any); len(all) != 0 {
		t.Errorf("%v", all)
	}
}

// Lists leave out customers on test clocks unless they are asked for. The list of one customer has
// all of its invoices.
func TestListsLeaveOutTestClocks(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/test-clocks/other", `{"now":"2026-01-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":2000,"base_in":"advance"}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	n.want(201, "PUT", "/v1/customers/live", `{"name":"Live","plan":"pro","billing_anchor":"2026-01-01T00:00:00"}`)
	n.billed("2026-01-01T02:00:00Z", "finalized")
	n.want(200, "PUT", "/v1/customers/live/billing", `{"starts_at":"`+time.Now().UTC().Add(-24*time.Hour).Format(time.RFC3339)+`"}`)
	n.exec(`UPDATE billing_accounts SET starts_set_at = 0; UPDATE open_periods SET due_at = 0 WHERE opening_due`) // the delay is over
	for query, want := range map[string]string{
		"?customer=acme": "", "?test_clock=clock": "acme", "?test_clock=other": "", "?customer=acme&test_clock=clock": "acme",
		"?customer=acme&test_clock=other": "", "?customer=acme&test_clock=any": "acme",
	} {
		if got := strings.Join(n.listed(query), " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	eventually(t, "the opening of who lives in real time", func() bool { return len(n.listed("")) > 0 })
	if all := n.listed(""); slices.Contains(all, "acme") {
		t.Errorf("without test clocks: %q", all)
	}
	if all := n.listed("?test_clock=any"); !slices.Contains(all, "acme") || !slices.Contains(all, "live") {
		t.Errorf("all: %q", all)
	}
	if _, text, _ := n.text("GET", "/v1/invoices.csv", ""); !strings.Contains(text, "live") || strings.Contains(text, "acme") {
		t.Errorf("%s", text)
	}
	if got := n.want(200, "GET", "/v1/customers/acme/invoices", "").items(); len(got) != 1 {
		t.Errorf("the customer's own: %v", got)
	}
}
