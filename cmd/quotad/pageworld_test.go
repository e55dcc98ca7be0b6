package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// Northwind's plan has a limit of each kind.
const northwindPlan = `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":4900,"meters":["emails"],
	"limits":[
		{"name":"hourly","meter":"requests","algorithm":"fixed_window","limit":5000,"window":"1h"},
		{"name":"exports-daily","meter":"exports","algorithm":"token_bucket","limit":200,"window":"1d"},
		{"name":"tokens-monthly","meter":"tokens","algorithm":"fixed_window","limit":16000000,"window":"calendar_month","mode":"soft"},
		{"name":"seats","meter":"seats","algorithm":"allocation","limit":25},
		{"name":"renders","meter":"renders","algorithm":"concurrency","limit":5,"ttl":"10m"},
		{"name":"logins","meter":"logins","algorithm":"sliding_window","limit":20,"window":"15m","per":"ip"},
		{"name":"searches","meter":"searches","algorithm":"sliding_log","limit":60,"window":"1m"},
		{"name":"beta","meter":"beta","algorithm":"fixed_window","limit":0,"window":"1h"},
		{"name":"trial","meter":"requests","algorithm":"fixed_window","limit":10,"window":"1m","mode":"shadow"}],
	"prices":[
		{"meter":"requests","model":"per_unit","unit_price":"0.00005","included":1000000},
		{"meter":"exports","model":"per_unit","unit_price":"0.02","included":1000},
		{"meter":"tokens","model":"per_unit","unit_price":"0.000004","included":10000000}]}`

// northwind sets up meters, the plan and the customer acme in Berlin, with usage of the last two
// days and of this month.
func (n *testNode) northwind() {
	n.t.Helper()
	for _, m := range []struct{ key, name, unit string }{
		{"requests", "API requests", "request"},
		{"exports", "Exports", "export"},
		{"tokens", "Tokens", "token"},
		{"seats", "Seats", "seat"},
		{"renders", "Renders", "render"},
		{"logins", "Logins", "login"},
		{"searches", "Searches", "search"},
		{"beta", "Beta features", "call"},
		{"emails", "E-mails", "e-mail"},
	} {
		n.do("PUT", "/v1/meters/"+m.key, fmt.Sprintf(`{"name":%q,"unit":%q}`, m.name, m.unit)).is(201)
	}
	n.do("PUT", "/v1/plans/pro", northwindPlan).is(201)
	now := time.Now().UTC()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	n.do("PUT", "/v1/customers/acme", fmt.Sprintf(`{"name":"Acme GmbH","plan":"pro","timezone":"Europe/Berlin","billing_anchor":"%s"}`,
		month.Format("2006-01-02T15:04:05"))).is(201)
	n.do("PUT", "/v1/customers/acme/billing",
		fmt.Sprintf(`{"starts_at":%q,"buyer":{"name":"Acme GmbH","address":["Hauptstraße 1","10115 Berlin"],"country":"DE"},"taxes":[{"name":"VAT","percent":"19","inclusive":false}]}`,
			month.Add(-time.Hour).Format(time.RFC3339))).is(200)
	n.importUsage(now)
	n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":1206}`).is(200)
	n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":5000}`).is(429)
	n.do("POST", "/v1/hits", `{"customer":"acme","meter":"exports","cost":137}`).is(200)
	n.do("POST", "/v1/hits", `{"customer":"acme","meter":"seats","cost":22}`).is(200)
	n.do("POST", "/v1/hits", `{"customer":"acme","meter":"emails","cost":310}`).is(200)
	n.do("POST", "/v1/hits", `{"customer":"acme","meter":"searches","cost":60}`).is(200)
	n.do("POST", "/v1/reservations", `{"customer":"acme","meter":"renders","cost":2,"ttl_ms":600000}`).is(201)
}

// billed makes a customer on a test clock whose January is billed.
func (n *testNode) billed() {
	n.t.Helper()
	n.do("PUT", "/v1/test-clocks/months", `{"now":"2026-01-01T00:00:00Z"}`).is(201)
	n.do("PUT", "/v1/customers/billed", `{"name":"Billed","plan":"pro","timezone":"UTC","billing_anchor":"2026-01-01T00:00:00","test_clock":"months"}`).is(201)
	for _, day := range []string{"03", "10", "28"} {
		n.do("PUT", "/v1/test-clocks/months", `{"now":"2026-01-`+day+`T10:00:00Z"}`).is(200)
		n.do("POST", "/v1/hits", `{"customer":"billed","meter":"tokens","cost":4000000}`).is(200)
		n.do("POST", "/v1/hits", `{"customer":"billed","meter":"requests","cost":4000}`).is(200)
	}
	n.do("PUT", "/v1/test-clocks/months", `{"now":"2026-02-02T12:00:00Z"}`).is(200)
	testkit.Eventually(n.t, "January is billed", func() bool {
		list := n.do("GET", "/v1/customers/billed/invoices", "").is(200)
		if list.at("items.0.status") != "finalized" {
			return false
		}
		n.invoice = list.str("items.0.id")
		return true
	})
}

// importUsage imports usage of this month, more by day than by night.
func (n *testNode) importUsage(now time.Time) {
	n.t.Helper()
	var lines strings.Builder
	hour := now.Truncate(time.Hour)
	for i := 1; i <= 60; i++ {
		at := hour.Add(-time.Duration(i) * time.Hour)
		by := byHour(at)
		fmt.Fprintf(&lines, `{"id":"r%d","customer":"acme","meter":"requests","cost":%d,"at":%q}`+"\n", i, by*90+i, at.Format(time.RFC3339))
		fmt.Fprintf(&lines, `{"id":"t%d","customer":"acme","meter":"tokens","cost":%d,"at":%q}`+"\n", i, by*9000, at.Format(time.RFC3339))
	}
	n.do("POST", "/v1/imports", lines.String(), "Content-Type: application/x-ndjson").is(200).has("failed", 0)
}

// byHour is how busy an hour of the day is.
func byHour(at time.Time) int {
	return []int{3, 2, 2, 2, 2, 3, 5, 9, 14, 22, 30, 38, 46, 50, 48, 36, 28, 22, 16, 10, 8, 6, 4, 3}[at.Hour()]
}

// A browser is a client with cookies, as a person's.
type browser struct {
	t      testing.TB
	url    string
	client *http.Client
}

func (n *testNode) browser() *browser {
	n.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		n.t.Fatal(err)
	}
	client := *n.client
	client.Jar = jar
	return &browser{n.t, n.url, &client}
}

// A reply is a page that was answered.
type reply struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	text   string
}

func (b *browser) get(path string) *reply { b.t.Helper(); return b.send("GET", path, nil) }

// post sends a form from the site's own page.
func (b *browser) post(path string, fields url.Values) *reply {
	b.t.Helper()
	return b.send("POST", path, fields, "Sec-Fetch-Site: same-origin")
}

func (b *browser) send(method, path string, fields url.Values, headers ...string) *reply {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(fields.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	response, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return &reply{b.t, method + " " + path, response.StatusCode, response.Header, string(text)}
}

func (r *reply) is(status int) *reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%s answered %d, not %d:\n%s", r.what, r.status, status, r.text)
	}
	return r
}

func (r *reply) says(words ...string) *reply {
	r.t.Helper()
	for _, w := range words {
		if !strings.Contains(r.text, w) {
			r.t.Errorf("%s does not say %q:\n%s", r.what, w, r.text)
		}
	}
	return r
}

// link makes a link into the portal and returns its path.
func (n *testNode) link(customer string, more ...string) string {
	n.t.Helper()
	body := fmt.Sprintf(`{"customer":%q%s}`, customer, strings.Join(append([]string{""}, more...), ","))
	link := n.do("POST", "/v1/portal-sessions", body).is(201).str("url")
	path, ok := strings.CutPrefix(link, n.url)
	if !ok {
		n.t.Fatalf("a link elsewhere: %s", link)
	}
	return path
}

// enter opens the portal of a customer.
func (b *browser) enter(n *testNode, customer string, more ...string) *browser {
	b.t.Helper()
	b.post(n.link(customer, more...), nil).is(303)
	return b
}

// portalCookies are those of a new session of a customer's portal.
func (n *testNode) portalCookies(customer string) []*http.Cookie {
	n.t.Helper()
	b := n.browser()
	b.enter(n, customer)
	return b.cookies()
}

// adminCookies are those of a new session of a key.
func (n *testNode) adminCookies(secret string) []*http.Cookie {
	n.t.Helper()
	b := n.browser()
	b.post("/admin/sign-in", url.Values{"key": {secret}}).is(303)
	return b.cookies()
}

func (b *browser) cookies() []*http.Cookie {
	address, err := url.Parse(b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.client.Jar.Cookies(address)
}
