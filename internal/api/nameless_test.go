package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
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
	testkit.Eventually(t, "the overview tells of it", func() bool {
		all := n.overview()["concerns"].([]any)
		return len(all) == 1 && all[0].(map[string]any)["name"] == "seller_without_name" &&
			all[0].(map[string]any)["text"] == "An invoice is held until the seller default has a name: PUT /v1/sellers/default."
	})
	n.want(200, "PUT", "/v1/sellers/default", `{"name":"Us"}`, "If-Match", "*")
	testkit.Eventually(t, "the invoice is finalized", func() bool {
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
	testkit.Eventually(t, "the opening of who lives in real time", func() bool { return len(n.listed("")) > 0 })
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

// What the PDF cannot print is told when it is written, and is no fault: a buyer is called what it is.
func TestWhatCannotBePrintedIsTold(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	told := func(got reply) (all string) {
		t.Helper()
		warnings, _ := got.json["warnings"].([]any)
		for _, w := range warnings {
			w := w.(map[string]any)
			all += w["field"].(string) + ": " + w["detail"].(string) + "\n"
		}
		return all
	}
	if got := told(n.bill(200, "acme", `{"buyer":{"name":"株式会社アクメ 주식회사 חברת","address":["Nguyễn"],"country":"JP"}}`)); got != "" {
		t.Error(got)
	}
	const rest = ". HTML, JSON and CSV have them.\n"
	want := "buyer.name: The PDF shows a box for each of these letters: م" + rest + "buyer.address[1]: The PDF shows a box for each of these letters: न" + rest +
		"notes[0]: The PDF shows a box for each of these letters: 👍" + rest
	if got := told(n.bill(200, "acme", `{"buyer":{"name":"Acme مم","address":["a","न"],"country":""},"notes":["👍"]}`)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := told(n.want(200, "GET", "/v1/customers/acme/billing", "")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	seller := n.want(201, "PUT", "/v1/sellers/us", `{"name":"Us","footer":["ok","नम"]}`)
	if got, want := told(seller), "footer[1]: The PDF shows a box for each of these letters: नम"+rest; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What papers say is what seller and account said when the invoice became final. It does not follow
// what is written later, in no form and not in the JSON. A draft does.
func TestPapersKeepWhatTheySaid(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.setTo("2026-01-01T00:00:00Z")
	n.want(200, "PUT", "/v1/sellers/default",
		`{"name":"Us","country":"AT","registration":"FN 1 x","email":"us@example.com","payment":["IBAN AT1"],"footer":["Thanks 1"],"credit_note_prefix":"G-"}`, "If-Match", "*")
	n.made("acme")
	const account = `{"buyer":{"name":"Acme","address":[],"country":"GR"},"order_reference":"PO 1","notes":["Cost centre 1"],"taxes":[{"name":"VAT","percent":"0","inclusive":false,"note":"Reverse charge 1"}]}`
	if got := n.bill(200, "acme", account); !strings.Contains(got.text, `"order_reference":"PO 1","notes":["Cost centre 1"]`) ||
		!strings.Contains(got.text, `"note":"Reverse charge 1"`) {
		t.Error(got.text)
	}
	path := "/v1/invoices/" + n.billed("2026-02-01T00:00:11Z", "draft")["id"].(string)
	n.want(200, "POST", path+"/finalize", "")
	forms := func(path string) (all []string) {
		for _, end := range []string{"", ".html", ".pdf", ".csv"} {
			all = append(all, n.want(200, "GET", path+end, "").text)
		}
		return all
	}
	before := forms(path)
	for _, words := range []string{
		`"country":"AT"`, `"registration":"FN 1 x"`, `"email":"us@example.com"`, `"payment":["IBAN AT1"]`, `"footer":["Thanks 1"]`,
		`"order_reference":"PO 1"`, `"notes":["Cost centre 1"]`, `"note":"Reverse charge 1"`,
	} {
		if !strings.Contains(before[0], words) {
			t.Errorf("lacks %s: %s", words, before[0])
		}
	}
	for _, words := range []string{"Austria", "FN 1 x", "us@example.com", "IBAN AT1", "Thanks 1", "PO 1", "Cost centre 1", "Reverse charge 1", "Greece"} {
		if !strings.Contains(before[1], words) {
			t.Errorf("the page lacks %s", words)
		}
	}
	n.want(200, "PUT", "/v1/sellers/default", `{"name":"We","country":"CH","footer":["Thanks 2"],"prefix":"W-","credit_note_prefix":"N-"}`, "If-Match", "*")
	n.bill(200, "acme", `{"buyer":{"name":"Other","address":[],"country":"IT"},"order_reference":"PO 2","notes":["Cost centre 2"],"taxes":[{"name":"VAT","percent":"0","inclusive":false,"note":"Reverse charge 2"}]}`)
	for i, now := range forms(path) {
		if now != before[i] {
			t.Errorf("form %d is another one:\n%s\nwas\n%s", i, now, before[i])
		}
	}
	// A note says what its invoice says, with a number of the seller as it is now.
	note := n.want(201, "POST", path+"/credit-notes", `{"lines":[{"n":1,"amount_minor":1}],"reason":"x","to":"outside","id":"x"}`)
	if note.json["number"] != "TEST-N-1" || !strings.Contains(note.text, `"payment":["IBAN AT1"]`) ||
		!strings.Contains(note.text, `"notes":["Cost centre 1"]`) || !strings.Contains(note.text, `"note":"Reverse charge 1"`) {
		t.Error(note.text)
	}
	n.agreed("at the end")
}
