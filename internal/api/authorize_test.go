package api

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// asks asks as a gateway. The key is in the gateway's own header, for Authorization is its client's.
func (n *node) asks(method, path string, headers ...string) reply {
	n.t.Helper()
	return n.do(method, path, "", append([]string{"Authorization", "Bearer of-a-client", "X-Quotad-Key", adminSecret}, headers...)...)
}

// asksRaw asks by a target that Go's own client would not send.
func (n *node) asksRaw(target string, headers ...string) reply {
	n.t.Helper()
	r, err := http.NewRequestWithContext(n.t.Context(), "GET", n.url, nil)
	check(n.t, err)
	r.URL.Opaque = target
	r.Header.Set("X-Quotad-Key", adminSecret)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	check(n.t, err)
	text, err := io.ReadAll(response.Body)
	check(n.t, errors.Join(err, response.Body.Close()))
	return reply{status: response.StatusCode, header: response.Header, text: string(text)}
}

// saysWhy checks that a gateway was refused, and is told why.
func (g reply) saysWhy(t *testing.T, status int, reason, detail string) {
	t.Helper()
	for _, operators := range []string{"/v1/", "acme", "neo", "pro", "requests", "other", "GET ", "PUT ", "The hit", "split", "raise"} {
		if said := g.header.Get("X-Quotad-Detail"); strings.Contains(said, operators) || g.json["detail"] != said {
			t.Errorf("customers read %q, %v", said, g.json["detail"])
		}
	}
	if g.status != status || g.header.Get("X-Quotad-Reason") != reason || !strings.Contains(g.header.Get("X-Quotad-Detail"), detail) {
		t.Errorf("%d %v %s, want %d, %s, %q", g.status, g.header, g.text, status, reason, detail)
	}
}

// spent is what acme used of its first limit.
func (n *node) spent() int64 {
	n.t.Helper()
	limit, _ := n.want(200, "GET", "/v1/customers/acme/quota", "").json["limits"].([]any)[0].(map[string]any)
	return int64(limit["used"].(float64))
}

// A gateway is told by status and headers alone, and what it asks about is charged.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	const path, acme = "/v1/authorize?meter=requests", "X-Quotad-Customer"
	for _, method := range []string{"GET", "POST", "DELETE", "PATCH", "OPTIONS"} {
		got := n.asks(method, path, acme, "acme")
		if got.status != 200 || got.text != "" || got.header.Get("RateLimit") == "" || got.header.Get("X-RateLimit-Limit") != "5" ||
			got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v %q", method, got.status, got.header, got.text)
		}
	}
	refused := n.asks("GET", path, acme, "acme")
	refused.saysWhy(t, 429, "quota", "Limit hourly is used up.")
	if refused.header.Get("Retry-After") == "" || refused.header.Get("RateLimit") == "" || refused.json["allowed"] != false ||
		refused.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("refused: %v %s", refused.header, refused.text)
	}
	if got := n.asks("HEAD", path, acme, "acme"); got.status != 429 || got.text != "" {
		t.Errorf("HEAD: %d %q", got.status, got.text)
	}
	n.asks("GET", path+"&deny_status=403", acme, "acme").saysWhy(t, 403, "quota", "")
	n.asks("GET", path+"&cost=6", acme, "acme").saysWhy(t, 429, "quota",
		"Limit hourly never admits more than 5 at once. The request costs 6 and will not be admitted by waiting.")
	if got := n.asks("GET", path+"&deny_status=200", acme, "acme"); got.status != 200 || got.header.Get("X-Quotad-Reason") != "quota" {
		t.Errorf("deny_status=200: %d %v", got.status, got.header)
	}
	n.want(201, "PUT", "/v1/meters/other", `{"unit":"x"}`)
	n.asks("GET", "/v1/authorize?meter=other", acme, "acme").saysWhy(t, 429, "not-in-plan", "Your plan does not include this.")
	n.asks("GET", path, acme, `neo","cost":0`).saysWhy(t, 429, "unknown-customer", "is not known")
	n.want(200, "PUT", "/v1/customers/acme/suspension", `{"reason":"3 factures impayées – 5 €"}`)
	n.asks("GET", path, acme, "acme").saysWhy(t, 429, "suspended", "3 factures impayées – 5 €")
	if got := n.want(403, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`); !strings.Contains(got.text, "/v1/customers/acme") {
		t.Errorf("operators read %s", got.text)
	}
	n.want(204, "DELETE", "/v1/customers/acme/suspension", "")
	n.agreed("before the end")
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/customers/ending", `{"name":"E","plan":"pro","test_clock":"clock"}`)
	n.bill(200, "ending", `{"ends_at":"2026-01-02T00:00:00Z"}`)
	n.want(200, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-02T00:00:00Z"}`)
	n.asks("GET", path+"&deny_status=403", acme, "ending").saysWhy(t, 403, "ended", "has ended")
}

// What a gateway asks wrong is its configuration's fault, and charges nothing.
func TestAuthorizeAsksWrong(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(strings.Replace(hourly, `"limit":5`, `"limit":500`, 1))
	const path, acme, meter = "/v1/authorize", "X-Quotad-Customer", "X-Quotad-Meter"
	for _, row := range []struct {
		query, field, says string
		headers            []string
	}{
		{"?meter=requests", acme, "is required", nil},
		{"?meter=requests", acme, "must be", []string{acme, strings.Repeat("x", 300)}},
		{"", meter, "is required", []string{acme, "acme"}},
		{"", "X-Quotad-Cost", "in digits", []string{acme, "acme", meter, "requests", "X-Quotad-Cost", "1e3"}},
		{"", "X-Quotad-Cost", "in digits", []string{acme, "acme", meter, "requests", "X-Quotad-Cost", ""}},
		{"", "X-Quotad-Cost", "must be between", []string{acme, "acme", meter, "requests", "X-Quotad-Cost", "-1"}},
		{"", "X-Quotad-Id", "must be 1 to 255 bytes", []string{acme, "acme", meter, "requests", "X-Quotad-Id", strings.Repeat("x", 256)}},
		{"", "X-Quotad-Attr-ip", "200 bytes", []string{acme, "acme", meter, "requests", "X-Quotad-Attr-Ip", strings.Repeat("x", 201)}},
		{"?meter=requests&cost=1e3", "cost", "in digits", []string{acme, "acme"}},
		{"?meter=requests&cost=", "cost", "in digits", []string{acme, "acme"}},
		{"?meter=requests&cost=0x1", "cost", "in digits", []string{acme, "acme"}},
		{"?meter=requests&cost=+1", "cost", "in digits", []string{acme, "acme"}},
		{"?meter=requests&cost=01", "cost", "in digits", []string{acme, "acme"}},
		{"?meter=requests&cost=99999999999999999999", "cost", "in digits", []string{acme, "acme"}},
		{"?meter=requests&cost=1000000000000000", "cost", "must be between", []string{acme, "acme"}},
		{"?meter=", "meter", "is required", []string{acme, "acme"}},
		{"?meter=requests&meter=requests", "meter", "more than once", []string{acme, "acme"}},
		{"?meter=requests&id=query", "id", "must be header", []string{acme, "acme"}},
		{"?meter=requests&attrs=ip", "X-Quotad-Attr-Ip", "attrs names it", []string{acme, "acme"}},
		{"?meter=requests&attrs=", "X-Quotad-Attr-", "attrs names it", []string{acme, "acme"}},
		{"?cost=1", "cost", "goes with meter", []string{acme, "acme", meter, "requests"}},
		{"?meter=requests&dry_run=true", "dry_run", "not a parameter", []string{acme, "acme"}},
		{"?meter=requests&deny_status=500", "deny_status", "must be 200, 403 or 429", []string{acme, "acme"}},
	} {
		got := n.asks("GET", path+row.query, row.headers...)
		if got.status != 422 || !strings.Contains(got.text, row.field+": ") || !strings.Contains(got.text, row.says) || got.header.Get("X-Quotad-Reason") != "" {
			t.Errorf("%s %v: %d %s", row.query, row.headers, got.status, got.text)
		}
	}
	for what, got := range map[string]reply{
		"a wrong key":    n.asks("GET", path+"?meter=requests", acme, "acme", "X-Quotad-Key", "qk_wrong"),
		"an empty key":   n.asks("GET", path+"?meter=requests", acme, "acme", "X-Quotad-Key", ""),
		"no key":         n.asks("GET", path+"?meter=requests", acme, "acme", "X-Quotad-Key", "-", "Authorization", "-"),
		"a client's key": n.asks("GET", path+"?meter=requests", acme, "acme", "X-Quotad-Key", "-"),
	} {
		if got.status != 401 {
			t.Errorf("%s: %d", what, got.status)
		}
	}
	if got := n.asks("GET", path+"?meter=nothing", acme, "acme"); got.status != 404 || got.header.Get("X-Quotad-Reason") != "" {
		t.Errorf("a meter that there is not: %d %s", got.status, got.text)
	}
	if got := n.asks("GET", "/v1/authorized", acme, "acme"); got.status != 404 {
		t.Errorf("another path: %d", got.status)
	}
	if used := n.spent(); used != 0 {
		t.Errorf("%d units were charged", used)
	}
}

// A client of a gateway forges nothing: with a meter in the query nothing counts but what the query
// names, and of two headers none does.
func TestAuthorizeForged(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(strings.Replace(hourly, `"limit":5`, `"limit":500`, 1))
	n.want(201, "PUT", "/v1/meters/cheap", `{"unit":"x"}`)
	used := int64(0)
	charges := func(what string, cost int64, got reply) {
		t.Helper()
		if used += cost; got.status != 200 || n.spent() != used {
			t.Errorf("%s: %d %s, used %d, want %d", what, got.status, got.text, n.spent(), used)
		}
	}
	forged := []string{
		"X-Quotad-Customer", "acme", "X-Quotad-Meter", "cheap", "X-Quotad-Cost", "0", "X-Quotad-Id", "one", "X-Quotad-Attr-Ip", "1.2.3.4",
		"X-Quotad-Dry-Run", "true", "X-Quotad-Overrun", "true", "Idempotency-Key", "one",
	}
	for range 3 { // an id that counted would charge once
		charges("a hostile client", 7, n.asks("GET", "/v1/authorize?meter=requests&cost=7", forged...))
	}
	charges("an id", 2, n.asks("GET", "/v1/authorize?meter=requests&cost=2&id=header", forged...))
	charges("the id again", 0, n.asks("GET", "/v1/authorize?meter=requests&cost=2&id=header", forged...))
	charges("the id that a hit had, too", 0, n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":2,"id":"one"}`))

	byHeaders := []string{"X-Quotad-Customer", "acme", "X-Quotad-Meter", "requests", "X-Quotad-Cost", "3"}
	charges("headers", 3, n.asks("POST", "/v1/authorize", byHeaders...))
	charges("a path of Envoy's", 3, n.asks("POST", "/v1/authorize/orders/17?meter=cheap&cost=0&deny_status=200&odd=%zz", byHeaders...))
	charges("a path of another's", 1, n.asks("POST", "/v1/authorize/orders/17?meter=requests", "X-Quotad-Customer", "acme"))
	for _, path := range []string{"%", "%zz", "a%2", "100%/%%?%", "%41"} {
		charges(path, 3, n.asksRaw("/v1/authorize/"+path, byHeaders...))
	}
	charges("an id in a header", 3, n.asks("POST", "/v1/authorize", append(byHeaders, "X-Quotad-Id", "two")...))
	charges("it comes again", 0, n.asks("POST", "/v1/authorize", append(byHeaders, "X-Quotad-Id", "two", "Idempotency-Key", "three")...))

	for _, name := range []string{"X-Quotad-Customer", "X-Quotad-Meter", "X-Quotad-Cost", "X-Quotad-Id", "X-Quotad-Attr-Ip", "X-Quotad-Key"} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", n.url+"/v1/authorize", nil)
		check(t, err)
		for i := 0; i < len(byHeaders); i += 2 {
			r.Header.Set(byHeaders[i], byHeaders[i+1])
		}
		r.Header.Set("X-Quotad-Key", adminSecret)
		r.Header.Add(name, "forged")
		r.Header.Add(name, "acme")
		response, err := http.DefaultClient.Do(r)
		check(t, err)
		check(t, response.Body.Close())
		if response.StatusCode != 422 && response.StatusCode != 401 {
			t.Errorf("%s twice: %d", name, response.StatusCode)
		}
	}
	if got := n.spent(); got != used {
		t.Errorf("used %d, want %d", got, used)
	}
	if got := n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`, "Authorization", "-", "X-Quotad-Key", adminSecret); got.status != 401 {
		t.Errorf("a hit by X-Quotad-Key: %d", got.status)
	}
}

// A limit per an attribute takes the value from the header that attrs names.
func TestAuthorizeByAttribute(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(strings.Replace(hourly, `"limit":5`, `"limit":2,"per":"ip"`, 1))
	for i, row := range []struct {
		path, ip string
		status   int
	}{
		{"/v1/authorize?meter=requests&attrs=ip", "1.1.1.1", 200},
		{"/v1/authorize?meter=requests&attrs=ip", "1.1.1.1", 200},
		{"/v1/authorize?meter=requests&attrs=ip", "1.1.1.1", 429},
		{"/v1/authorize?meter=requests&attrs=ip", "2.2.2.2", 200},
		{"/v1/authorize", "2.2.2.2", 200},
		{"/v1/authorize", "2.2.2.2", 429},
		{"/v1/authorize?meter=requests", "2.2.2.2", 200}, // nobody says whose it is
	} {
		if got := n.asks("GET", row.path, "X-Quotad-Customer", "acme", "X-Quotad-Meter", "requests", "X-Quotad-Attr-Ip", row.ip); got.status != row.status {
			t.Errorf("%d: %d %s", i, got.status, got.text)
		}
	}
}
