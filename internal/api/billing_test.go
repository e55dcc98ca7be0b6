package api

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// billedNode has a test clock at the beginning of 2026, the meter requests and a monthly plan
// pro: 20 dollars and a cent for each request.
func billedNode(t *testing.T) *node {
	t.Helper()
	n := newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	for key, base := range map[string]int{"pro": 2000, "max": 9000} {
		n.want(201, "PUT", "/v1/plans/"+key, fmt.Sprintf(`{"name":"P","currency":"USD","interval":"month","base_price_minor":%d,
			"prices":[{"meter":"requests","model":"per_unit","unit_price":"0.01"}]}`, base))
	}
	n.want(201, "PUT", "/v1/plans/euro", `{"name":"E","currency":"EUR","interval":"month","base_price_minor":2000}`)
	return n
}

// made makes a customer on the clock.
func (n *node) made(key string) {
	n.t.Helper()
	n.want(201, "PUT", "/v1/customers/"+key, `{"name":"C","plan":"pro","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
}

func (n *node) setTo(now string) {
	n.t.Helper()
	n.want(200, "PUT", "/v1/test-clocks/"+n.testClock, `{"now":"`+now+`"}`)
}

// bill writes an account with the entity tag that it has.
// bill writes a customer's billing. What is to be written waits for the closing of a last period: until
// then it is refused, and says so.
func (n *node) bill(status int, key, body string) (got reply) {
	n.t.Helper()
	path := "/v1/customers/" + key + "/billing"
	testkit.Eventually(n.t, "the last period is closed", func() bool {
		got = n.do("PUT", path, body, "If-Match", n.want(200, "GET", path, "").header.Get("ETag"))
		return status != 200 || got.status != 409 || !strings.Contains(got.text, "still being closed")
	})
	if got.status != status {
		n.t.Fatalf("PUT %s %s: status %d, want %d: %s", path, body, got.status, status, got.text)
	}
	return got
}

// runs are the boundaries and the version of the open period, as the quota shows them.
func (n *node) runs(key string) string {
	n.t.Helper()
	m := n.want(200, "GET", "/v1/customers/"+key+"/quota", "").json["meters"].([]any)[0].(map[string]any)
	short := func(at any) string { return strings.TrimSuffix(strings.TrimSuffix(at.(string), ":00Z"), "T00:00") }
	return fmt.Sprint(short(m["period_start"]), " ", short(m["period_end"]), " ", m["used"], " ", m["price_version"])
}

// until waits until a customer is billed until an instant.
func (n *node) until(key, want string) {
	n.t.Helper()
	testkit.Eventually(n.t, key+" is billed until "+want, func() bool {
		return n.want(200, "GET", "/v1/customers/"+key+"/billing", "").json["billed_until"] == want
	})
}

func TestAccountIsThereFromTheFirst(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.setTo("2026-01-10T08:30:00.7Z")
	n.made("acme")
	got := n.want(200, "GET", "/v1/customers/acme/billing", "").json
	want := map[string]any{
		"starts_at": "2026-01-10T08:30:00Z", "trial_ends_at": nil, "ends_at": nil, "seller": "default", "due_days": 14.0,
		"currency": "USD", "billed_until": nil, "test_clock": "clock",
	}
	for field, value := range want {
		if got[field] != value {
			t.Errorf("%s is %v, want %v", field, got[field], value)
		}
	}
	if n.runs("acme") != "2026-01-10T08:30 2026-02-01 0 1" {
		t.Error(n.runs("acme"))
	}
	n.want(404, "GET", "/v1/customers/nobody/billing", "")
	n.want(404, "PUT", "/v1/customers/nobody/billing", `{}`)
}

// A PUT replaces all but an omitted starts_at, and after the first one needs If-Match.
func TestPutBillingReplaces(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	const path = "/v1/customers/acme/billing"
	body := `{"starts_at":"2026-01-05T00:00:00Z","trial_ends_at":"2026-01-15T00:00:00Z","ends_at":"2026-06-15T00:00:00Z",
		"buyer":{"name":"Acme","address":["Street 1"],"country":"DE","tax_id":"DE1"},"taxes":[{"name":"VAT","percent":"19","inclusive":false}],"due_days":30}`
	first := n.want(200, "PUT", path, body)
	n.want(428, "PUT", path, body)
	n.want(412, "PUT", path, body, "If-Match", `"0"`)
	if again := n.bill(200, "acme", body); again.header.Get("ETag") != first.header.Get("ETag") || again.text != first.text {
		t.Errorf("the same again: %s, not %s", again.text, first.text)
	}
	got := n.bill(200, "acme", `{}`).json
	if got["starts_at"] != "2026-01-05T00:00:00Z" || got["trial_ends_at"] != nil || got["ends_at"] != nil || got["due_days"] != 14.0 ||
		got["buyer"].(map[string]any)["name"] != "" || len(got["taxes"].([]any)) != 0 {
		t.Errorf("replaced by nothing: %v", got)
	}
	n.bill(200, "acme", `{"trial_ends_at":null,"ends_at":null,"starts_at":null}`)
}

func TestBadBillingIsRefused(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	for body, want := range map[string]string{
		`{"seller":"nobody"}`: "422 seller",
		`{"due_days":366}`:    "422 due_days",
		`{"due_days":-1}`:     "422 due_days",
		`{"taxes":[{"name":"VAT","percent":"101","inclusive":false}]}`:                                         "422 taxes[0].percent",
		`{"taxes":[{"name":"","percent":"1","inclusive":false}]}`:                                              "422 taxes[0].name",
		`{"taxes":[{"name":"A","percent":"1","inclusive":false},{"name":"B","percent":"1","inclusive":true}]}`: "422 taxes",
		`{"ends_at":"tomorrow"}`:                                        "422 ends_at",
		`{"trial_ends_at":"2026-01-01T00:00:00Z"}`:                      "422 trial_ends_at",
		`{"starts_at":"1900-01-01T00:00:00Z"}`:                          "422 starts_at",
		`{"billed_until":"2026-01-01T00:00:00Z"}`:                       "422 billed_until",
		`{"buyer":{"name":"` + strings.Repeat("x", 201) + `"}}`:         "422 buyer.name",
		`{"ends_at":"2025-12-01T00:00:00Z"}`:                            "409 ",
		`{"buyer":{"address":["` + strings.Repeat(`a","`, 20) + `a"]}}`: "422 buyer.address",
	} {
		if got := n.faultOf("PUT", "/v1/customers/acme/billing", body); got != want {
			t.Errorf("%.60s: %s, want %s", body, got, want)
		}
	}
	if got := n.want(200, "GET", "/v1/customers/acme/billing", "").json; got["due_days"] != 14.0 {
		t.Errorf("half written: %v", got)
	}
}

// Where billing starts: earlier, at most 1,000 periods; later; not once a period is closed.
func TestStartOfBilling(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.want(201, "PUT", "/v1/plans/daily",
		`{"name":"D","currency":"USD","interval":"day","base_price_minor":1,"prices":[{"meter":"requests","model":"per_unit","unit_price":"0.01"}]}`)
	n.want(201, "PUT", "/v1/customers/daily", `{"name":"C","plan":"daily","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	if got := n.faultOf("PUT", "/v1/customers/daily/billing", `{"starts_at":"2023-04-06T00:00:00Z"}`); got != "422 starts_at" {
		t.Error("1,001 days ago:", got)
	}
	n.want(200, "PUT", "/v1/customers/daily/billing", `{"starts_at":"2023-04-07T00:00:00Z"}`)
	// So many periods are closed then.
	some := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, -quotatest.Sized(20, 40, 1000))
	n.bill(200, "daily", fmt.Sprintf(`{"starts_at":%q}`, some.Format(time.RFC3339)))
	n.setTo("2026-01-01T00:00:09Z") // the delay counts from the PUT
	if got := n.want(200, "GET", "/v1/customers/daily/billing", "").json["billed_until"]; got != nil {
		t.Error("too early:", got)
	}
	n.setTo("2026-01-01T00:00:10Z")
	n.until("daily", "2026-01-01T00:00:00Z")
	n.setTo("2026-01-01T00:00:00Z")

	n.made("acme")
	n.bill(200, "acme", `{"starts_at":"2026-01-10T00:00:00Z"}`)
	if got := n.runs("acme"); got != "2026-01-01 2026-01-10 0 <nil>" {
		t.Error("before it starts:", got)
	}
	n.setTo("2026-01-10T00:00:00Z")
	if got := n.runs("acme"); got != "2026-01-10 2026-02-01 0 1" {
		t.Error("it starts:", got)
	}
	n.setTo("2026-02-01T00:00:10Z")
	n.until("acme", "2026-02-01T00:00:00Z")
	n.bill(200, "acme", `{"starts_at":"2026-01-10T00:00:00Z"}`) // as it is
	if got := n.bill(422, "acme", `{"starts_at":"2026-01-09T00:00:00Z"}`); !strings.Contains(got.text, "starts_at") {
		t.Error(got.text)
	}
	if got := n.bill(422, "acme", `{"trial_ends_at":"2026-03-09T00:00:00Z"}`); !strings.Contains(got.text, "trial_ends_at") {
		t.Error(got.text)
	}
}

// A trial is a boundary of its own, and may be moved until something is billed.
func TestTrial(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	n.bill(200, "acme", `{"trial_ends_at":"2026-01-20T00:00:00Z"}`)
	if got := n.runs("acme"); got != "2026-01-01 2026-01-20 0 1" {
		t.Error(got)
	}
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":5}`)
	upcoming := n.want(200, "GET", "/v1/customers/acme/invoices/upcoming", "").json
	if upcoming["total_minor"] != 0.0 {
		t.Errorf("a trial costs: %v", upcoming)
	}
	n.bill(200, "acme", `{"trial_ends_at":"2026-01-25T00:00:00Z"}`)
	n.setTo("2026-01-25T00:00:00Z")
	if got := n.runs("acme"); got != "2026-01-25 2026-02-01 0 1" {
		t.Error(got)
	}
	n.bill(200, "acme", `{"trial_ends_at":"2026-01-24T00:00:00Z"}`) // a boundary in the past
	if got := n.runs("acme"); got != "2026-01-24 2026-02-01 0 1" {
		t.Error(got)
	}
}

// Billing ends, is free, and begins again as another chain, whether or not the last period has
// been closed.
func TestEndOfBilling(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	for _, key := range []string{"closed", "open"} {
		n.made(key)
		if got := n.bill(200, key, `{"ends_at":"period_end"}`).json["ends_at"]; got != "2026-02-01T00:00:00Z" {
			t.Error("the period's end:", got)
		}
		n.bill(200, key, `{"ends_at":"2026-01-20T00:00:00Z","after_end":"free"}`)
		if got := n.runs(key); got != "2026-01-01 2026-01-20 0 1" {
			t.Error(got)
		}
	}
	n.setTo("2026-01-20T00:00:05Z")
	n.want(200, "POST", "/v1/hits", `{"customer":"open","meter":"requests","cost":5}`) // free
	n.bill(200, "open", `{}`)
	n.setTo("2026-01-21T00:00:00Z")
	n.until("closed", "2026-01-20T00:00:00Z")
	n.until("open", "2026-01-20T00:00:00Z")
	n.want(200, "POST", "/v1/hits", `{"customer":"closed","meter":"requests","cost":5}`)
	if got := n.runs("closed"); !strings.HasSuffix(got, "5 <nil>") {
		t.Error("after the end:", got)
	}
	n.want(404, "GET", "/v1/customers/closed/invoices/upcoming", "")
	n.bill(409, "closed", `{"ends_at":"2026-01-19T00:00:00Z"}`)
	n.setTo("2026-01-22T12:00:00Z")
	n.bill(200, "closed", `{"ends_at":"2026-03-15T00:00:00Z"}`)
	if got := n.runs("closed"); got != "2026-01-22T12:00 2026-02-01 0 1" {
		t.Error("again:", got)
	}
	if got := n.runs("open"); got != "2026-01-20T00:00:05.000001Z 2026-02-01 0 1" { // just after what was free
		t.Error("again, before it was closed:", got)
	}
	n.setTo("2026-04-01T00:00:00Z")
	n.until("closed", "2026-03-15T00:00:00Z")
	n.until("open", "2026-03-01T00:00:00Z")
	n.setTo("2026-04-01T00:00:10Z")
	n.until("open", "2026-04-01T00:00:00Z")
}

func TestSellers(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	if got := n.want(200, "GET", "/v1/sellers/default", "").json; got["key"] != "default" || got["prefix"] != "" {
		t.Error(got)
	}
	made := n.want(201, "PUT", "/v1/sellers/us", `{"name":"Us","address":["Street"],"tax_id":"1","prefix":"U-"}`)
	want := map[string]any{"key": "us", "name": "Us", "tax_id": "1", "prefix": "U-", "next_number": 1.0}
	delete(made.json, "address")
	if !maps.Equal(made.json, want) {
		t.Error(made.text)
	}
	n.want(412, "PUT", "/v1/sellers/us", `{"name":"We"}`, "If-Match", `"0"`)
	n.want(200, "PUT", "/v1/sellers/us", `{"name":"We"}`, "If-Match", made.header.Get("ETag"))
	n.want(412, "PUT", "/v1/sellers/us", `{"name":"We"}`, "If-None-Match", "*")
	// All that a seller may be, and its numbers.
	const path, all = "/v1/sellers/us", `"country":"DE","registration":"HRB 1","email":"us@example.com","payment":["IBAN"],"footer":["Thanks"]`
	whole := n.want(200, "PUT", path, `{"name":"We","address":[],`+all+`,"prefix":"U-","credit_note_prefix":"C-","next_number":7}`)
	if want := `{"key":"us","name":"We","address":[],` + all + `,"prefix":"U-","credit_note_prefix":"C-","next_number":7}`; whole.text != want {
		t.Errorf("%s, want %s", whole.text, want)
	}
	if got := n.want(200, "GET", path, ""); got.text != whole.text || got.header.Get("ETag") != whole.header.Get("ETag") {
		t.Errorf("%s, want %s", got.text, whole.text)
	}
	if again := n.want(200, "PUT", path, whole.text[:1]+strings.TrimPrefix(whole.text, `{"key":"us",`)); again.header.Get("ETag") != whole.header.Get("ETag") {
		t.Error("the same again is a change")
	}
	if got := n.faultOf("PUT", path, `{"name":"We","prefix":"U-","next_number":6}`); got != "422 next_number" {
		t.Error(got)
	}
	if got := n.want(200, "GET", path, ""); got.text != whole.text {
		t.Errorf("after a refusal: %s, want %s", got.text, whole.text)
	}
	for _, c := range []struct {
		body string
		next float64
	}{
		{`{"name":"We","prefix":"U-"}`, 7},
		{`{"name":"We","prefix":"V-"}`, 1},
		{`{"name":"We","prefix":"U-"}`, 7},
		{`{"name":"We","prefix":"W-","next_number":30}`, 30},
	} {
		if got := n.want(200, "PUT", path, c.body).json["next_number"]; got != c.next {
			t.Errorf("%s: %v, want %v", c.body, got, c.next)
		}
	}
	if got := n.want(200, "GET", "/v1/sellers", "").json["items"].([]any); len(got) != 2 {
		t.Error(got)
	}
	n.want(404, "GET", "/v1/sellers/nobody", "")
	if got := n.faultOf("PUT", "/v1/sellers/us", `{"name":""}`); got != "422 name" {
		t.Error(got)
	}
}
