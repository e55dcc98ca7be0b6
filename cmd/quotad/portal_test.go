package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// A link opens one session: looking at it spends nothing, and it is over once it was used.
func TestPortalLinks(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	link := n.link("acme")
	for range 3 { // a preview, and the person
		n.browser().get(link).is(200).says(`method="post"`)
	}
	b := n.browser()
	opened := b.post(link, nil).is(303)
	if opened.header.Get("Location") != "/portal" {
		t.Errorf("it leads to %s", opened.header.Get("Location"))
	}
	b.get("/portal").is(200).says("Usage and limits", "5,000 each clock hour", "refused")
	n.browser().get(link).is(410).says("used or is over")
	n.browser().post(link, nil).is(410)
	n.browser().get("/portal").is(401).says("signed out")
	n.browser().get("/portal/enter/nothing").is(410)
	if all := stored(t, n.databaseURL); strings.Contains(all, strings.TrimPrefix(link, "/portal/enter/")) {
		t.Error("the link is stored")
	}
	n.do("POST", "/v1/portal-sessions", `{"customer":"nobody"}`).is(404)
	n.do("DELETE", "/v1/customers/acme", "").is(204)
	n.do("POST", "/v1/portal-sessions", `{"customer":"acme"}`).is(404)
	b.get("/portal").is(200).says("This account is closed")
}

// Of many that open one link at once, one wins.
func TestOneLinkOpenedTwiceAtOnce(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	link := n.link("acme")
	var won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		b := n.browser()
		all.Go(func() {
			if a := b.post(link, nil); a.status == 303 {
				won.Add(1)
			} else if a.status != 410 {
				t.Errorf("answered %d", a.status)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d opened it", won.Load())
	}
}

// Links are over after ten minutes, sessions after an hour without a request or eight with some.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	made := n.do("POST", "/v1/portal-sessions", `{"customer":"acme"}`).is(201)
	if until, err := time.Parse(time.RFC3339, made.str("expires_at")); err != nil || time.Until(until) < 9*time.Minute ||
		time.Until(until) > 10*time.Minute+10*time.Second {
		t.Errorf("a link is valid until %s", made.str("expires_at"))
	}
	old := strings.TrimPrefix(made.str("url"), n.url)
	if token, err := base64.RawURLEncoding.DecodeString(old[strings.LastIndexByte(old, '/')+1:]); err != nil || len(token) != 32 {
		t.Errorf("a link has %d bytes: %v", len(token), err)
	}
	b := n.browser().enter(n, "acme")
	first := query[int64](t, n.databaseURL, "SELECT expires_at FROM sessions")
	if left := time.Until(time.UnixMicro(first)); left < 58*time.Minute || left > 61*time.Minute {
		t.Errorf("an idle session lasts %s", left)
	}
	if until := query[time.Time](t, n.databaseURL,
		"SELECT (data->>'until')::timestamptz FROM sessions"); time.Until(until) < 7*time.Hour+58*time.Minute || time.Until(until) > 8*time.Hour+time.Minute {
		t.Errorf("a session lasts until %s", until)
	}
	b.get("/portal").is(200)
	if again := query[int64](t, n.databaseURL, "SELECT expires_at FROM sessions"); again <= first {
		t.Error("a request does not keep the session")
	}
	query[int64](t, n.databaseURL, "WITH old AS (UPDATE portal_links SET expires_at = 0 RETURNING 1) SELECT count(*) FROM old")
	n.browser().get(old).is(410)
	query[int64](t, n.databaseURL, "WITH old AS (UPDATE sessions SET expires_at = 0 RETURNING 1) SELECT count(*) FROM old")
	b.get("/portal").is(401)
}

// Signing out deletes the session, and a request that was under way does not bring it back.
func TestSigningOut(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--portal-return-origins=https://app.example.com", "--brand-name=Northwind")
	n.setUp(hourly)
	b := n.browser().enter(n, "acme", `"return_url":"https://app.example.com/account?tab=usage"`)
	b.get("/portal").is(200).says(`href="https://app.example.com/account?tab=usage"`, "Northwind")
	address, err := url.Parse(n.url)
	if err != nil {
		t.Fatal(err)
	}
	cookies := b.client.Jar.Cookies(address)
	b.post("/portal/leave", nil).is(200).says("signed out", "Back to Northwind")
	if left := query[int64](t, n.databaseURL, "SELECT count(*) FROM sessions"); left != 0 {
		t.Errorf("%d sessions are left", left)
	}
	b.client.Jar.SetCookies(address, cookies)
	b.get("/portal").is(401)
	if left := query[int64](t, n.databaseURL, "SELECT count(*) FROM sessions"); left != 0 {
		t.Error("an old cookie made a session")
	}
}

// Who opens a link or signs in gets a new session; one that the browser had before is over.
func TestSessionsAreRenewed(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	portal, admin := n.browser().enter(n, "acme"), n.signedIn(testAdminKey)
	old := n.browser()
	address, err := url.Parse(n.url)
	if err != nil {
		t.Fatal(err)
	}
	old.client.Jar.SetCookies(address, slices.Concat(portal.cookies(), admin.cookies()))
	old.get("/portal").is(200)
	old.get("/admin").is(200)
	portal.enter(n, "acme").get("/portal").is(200)
	admin.post("/admin/sign-in", url.Values{"key": {testAdminKey}}).is(303)
	admin.get("/admin").is(200)
	old.get("/portal").is(401)
	old.get("/admin").is(303)
}

// Customers ask for the plans that a setting names, and for no others.
func TestCustomersAskForPlans(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--portal-plans=basic,large,unwritten")
	n.setUp(hourly)
	for _, plan := range []string{"large", "secret"} {
		n.do("PUT", "/v1/plans/"+plan, `{"name":"The `+plan+` <i>","currency":"USD","interval":"month","base_price_minor":5000,"base_in":"advance"}`).is(201)
	}
	b := n.browser().enter(n, "acme")
	b.get("/portal/plan").is(200).says("Other plans", "The large &lt;i&gt;", "$50.00 a month", "Ask for this plan").lacks("secret", "unwritten",
		"You asked", `action="/portal/plan/basic"`)
	b.post("/portal/plan/secret", nil).is(404)
	b.post("/portal/plan/unwritten", nil).is(422)
	for range 2 {
		b.post("/portal/plan/large", nil).goes("/portal/plan")
		b.get("/portal/plan").is(200).says("You asked for it on").lacks("Ask for this plan")
	}
	const told = "/v1/events?type=customer.plan_requested"
	testkit.Eventually(t, "the request is told", func() bool { return len(n.do("GET", told, "").is(200).at("items").([]any)) > 0 })
	n.do("GET", told, "").has("items.0.data.plan", "large").has("next_cursor", nil)
	n.browser().post("/portal/plan/large", nil).is(401)
}

// What a link may hold is what settings name.
func TestPortalSessionsAreChecked(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--portal-origins=https://app.example.com", "--portal-return-origins=https://app.example.com")
	n.setUp(hourly)
	for field, body := range map[string]string{
		"path":         `"path":"https://evil.example"`,
		"return_url":   `"return_url":"https://evil.example/x"`,
		"embed_origin": `"embed_origin":"https://evil.example"`,
		"theme":        `"theme":"pink"`,
	} {
		n.do("POST", "/v1/portal-sessions", `{"customer":"acme",`+body+`}`).is(422).has("errors.0.field", field)
	}
	const id = "01234567-89ab-cdef-0123-456789abcdef"
	opens := func(path string) bool {
		t.Helper()
		a := n.do("POST", "/v1/portal-sessions", `{"customer":"acme","path":"`+path+`"}`)
		if a.status != 201 && a.status != 422 {
			t.Errorf("%s: %d", path, a.status)
		}
		return a.status == 201
	}
	for _, path := range []string{
		"", "//evil.example", "/portal/../admin", "/portal/enter/x", "/admin", `/portal\\x`, "/portal/live", "/portal/nothing", "/portal/invoices/" + id + "/pay",
		"/portal/invoices/x", "/portal?x=%ff", "/portal?x=%00", "/portal?%zz", "/portal#x", "/portal/usage/", "/portal/us%61ge",
	} {
		if opens(path) {
			t.Errorf("a link opens %q", path)
		}
	}
	for _, path := range []string{"/portal?theme=dark", "/portal/usage?meter=requests&from=2026-01-01T00:00:00Z", "/portal/invoices?cursor=%20"} {
		if !opens(path) {
			t.Errorf("no link opens %q", path)
		}
	}
	// Of the list of pages a link opens those that show something: no door, file, or way elsewhere.
	noPage := regexp.MustCompile(`^/portal/$|^/portal/enter/|\.csv$|/file/`)
	for _, p := range listedPages(t) {
		path := strings.Replace(p.path, "/invoices/x", "/invoices/"+id, 1)
		want := p.method == "GET" && strings.HasPrefix(path, "/portal") && !noPage.MatchString(path)
		if opens(path) != want {
			t.Errorf("%s %s: a link opens it: %t", p.method, path, !want)
		}
	}
	n.do("POST", "/v1/portal-sessions", `{"customer":"acme","return_url":"https://app.example.com@evil.example/"}`).is(422)
}

// Each page forbids what is not its own, and who may frame it.
func TestPagesAreGuarded(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--portal-origins=https://app.example.com")
	n.setUp(hourly)
	b := n.browser().enter(n, "acme")
	for _, path := range []string{"/portal", "/admin/sign-in", "/portal/nothing", "/portal/enter/x"} {
		a := b.get(path)
		csp := a.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none';") || !strings.HasSuffix(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %s", path, csp)
		}
		for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"} {
			if !strings.Contains(strings.Join(a.header.Values(name), ","), want) {
				t.Errorf("%s: %s is %q", path, name, a.header.Values(name))
			}
		}
		if strings.Contains(a.text, "quotad") && strings.HasPrefix(path, "/portal") {
			t.Errorf("%s says quotad", path)
		}
	}
	framed := n.browser().enter(n, "acme", `"embed_origin":"https://app.example.com"`)
	if csp := framed.get("/portal").is(200).header.Get("Content-Security-Policy"); !strings.HasSuffix(csp, "frame-ancestors https://app.example.com") {
		t.Error(csp)
	}
	b.send("POST", "/portal/leave", nil, "Sec-Fetch-Site: cross-site").is(403)
	b.send("POST", "/portal/leave", nil, "Origin: https://evil.example").is(403)
	b.send("GET", "/portal", nil, "Host: quota.example.com").is(403).says("https")
	b.get("/portal").is(200)
}

// By https cookies have the prefix that binds them to the host, and a framed one is partitioned.
func TestPortalCookies(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--public-url=https://quota.example.com", "--portal-origins=https://app.example.com")
	n.setUp(hourly)
	for more, want := range map[string][]string{
		`"theme":"dark"`: {"__Host-portal=", "Path=/", "HttpOnly", "Secure", "SameSite=Lax"},
		`"embed_origin":"https://app.example.com"`: {"__Host-portal-embedded=", "Path=/", "HttpOnly", "Secure", "SameSite=None", "Partitioned"},
	} {
		link := n.do("POST", "/v1/portal-sessions", `{"customer":"acme",`+more+`}`).is(201).str("url")
		path, ok := strings.CutPrefix(link, "https://quota.example.com")
		if !ok {
			t.Fatal(link)
		}
		cookie := n.browser().post(path, nil).is(303).header.Get("Set-Cookie")
		for _, w := range want {
			if !strings.Contains(cookie, w) {
				t.Errorf("%s: %q has no %q", more, cookie, w)
			}
		}
		if strings.Contains(cookie, "Domain") {
			t.Error(cookie)
		}
	}
}

// The key is posted once. Who revokes it ends its sessions on all nodes within a second.
func TestAdminSessions(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	other := start(t, n.databaseURL)
	n.setUp(hourly)
	id, secret := n.newKey("read")
	_, backend := n.newKey("backend")
	b := n.browser()
	b.get("/admin").is(303)
	b.post("/admin/sign-in", url.Values{"key": {backend}}).is(403)
	if to := b.post("/admin/sign-in", url.Values{"key": {secret}, "to": {"//evil.example"}}).is(303).header.Get("Location"); to != "/admin" {
		t.Errorf("it leads to %s", to)
	}
	b.get("/admin").is(200).says("a key", "scope read")
	there := *b
	there.url = other.url
	other.hears() // of the key
	there.get("/admin").is(200)
	if all := stored(t, n.databaseURL); strings.Contains(all, secret) {
		t.Error("the key is stored")
	}
	n.do("DELETE", "/v1/keys/"+id, "").is(204)
	b.get("/admin").is(303)
	testkit.AtMost(t, "the other node hears of it", other.hears(), within)
	there.get("/admin").is(303)
}

// Five wrong keys a minute are taken from an address.
func TestSigningInIsLimited(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	b := n.browser()
	for range 5 {
		b.post("/admin/sign-in", url.Values{"key": {"qk_wrong"}}).is(401).says("unknown, revoked or expired")
	}
	b.post("/admin/sign-in", url.Values{"key": {"qk_wrong_too"}}).is(429)
	b.post("/admin/sign-in", url.Values{"key": {testAdminKey}}).is(303)
}

// Files keep their name as long as they are the same, and so browsers may keep them for ever.
func TestAssets(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--brand-accent=#0a6b4f,#7fd1b0")
	b := n.browser()
	page := b.get("/admin/sign-in").is(200).text
	at := strings.Index(page, "/assets/app.")
	sheet := page[at : at+strings.IndexByte(page[at:], '"')]
	a := b.get(sheet).is(200).says("--accent: light-dark(#0a6b4f, #7fd1b0)")
	if !strings.Contains(a.header.Get("Cache-Control"), "immutable") {
		t.Error(a.header)
	}
	b.get("/assets/nothing.css").is(404)
	if a := b.send("GET", sheet, nil, "Accept-Encoding: gzip"); a.header.Get("Content-Encoding") != "gzip" || len(a.text) > 8<<10 {
		t.Errorf("%d bytes, %v", len(a.text), a.header)
	}
	if http.StatusOK != b.send("HEAD", sheet, nil).status {
		t.Error("no HEAD")
	}
}

// The first page says of each limit what the quota endpoint says, and of the period what the
// upcoming invoice does. Shadow limits are not shown.
func TestOverviewIsTheQuota(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	awayFromHoursEnd(t)
	n.northwind()
	page := n.browser().enter(n, "acme").get("/portal").is(200)
	quota := n.do("GET", "/v1/customers/acme/quota", "").is(200)
	shown := 0
	for i := range quota.at("limits").([]any) {
		at := fmt.Sprintf("limits.%d.", i)
		name := quota.str(at + "name")
		card, there := between(page.text, `id="limit-`+name+`"`, "</article>")
		if there != (quota.str(at+"mode") != "shadow") {
			t.Errorf("limit %s is shown: %v", name, there)
		}
		if !there || name == "beta" || name == "logins" || name == "searches" {
			continue // closed, asked for a value, or moving
		}
		left, used := grouped(int(quota.num(at+"remaining"))), grouped(int(quota.num(at+"used")))
		if name == "exports-daily" {
			continue // it refills between the two answers
		}
		if !strings.Contains(card, "<strong>"+left+"</strong>") || !strings.Contains(card, used+" used") {
			t.Errorf("limit %s has %s left and %s used, which is not shown:\n%s", name, left, used, card)
		}
		shown++
	}
	if shown < 4 {
		t.Errorf("only %d limits were compared", shown)
	}
	due := n.do("GET", "/v1/customers/acme/invoices/upcoming", "").is(200).num("amount_due_minor")
	page.says(fmt.Sprintf(`<p class="money">$%s.%02d</p>`, grouped(int(due/100)), due%100))
	page.says("5,000 each clock hour", "200 at once, refilled at 200 a day", "16 million each calendar month", "25 at any time",
		"5 at the same time", "20 in any 15 minutes, for each ip", "60 in any minute", "Closed: your plan lets none through",
		"310</strong> <span>e-mails this period")
}

// between is the text after a mark, up to the next end.
func between(text, mark, end string) (string, bool) {
	_, after, found := strings.Cut(text, mark)
	inside, _, _ := strings.Cut(after, end)
	return inside, found
}
