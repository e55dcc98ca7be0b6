package main

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pagePattern is a line of one of the lists of pages in internal/web.
var pagePattern = regexp.MustCompile(`[{(]"(GET|POST) (/[^"]*)", page\.(Anyone|Customer|Staff),`)

type listedPage struct{ method, path, who string }

// listedPages are all pages, as the source lists them: a new one cannot be forgotten here.
func listedPages(t testing.TB) (all []listedPage) {
	t.Helper()
	files, err := filepath.Glob("../../internal/web/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	place := strings.NewReplacer("{$}", "", "{key}", "acme", "{id}", "x", "{limit}", "hourly", "{plan}", "basic", "{meter}", "requests", "{n}", "1",
		"{file}", "x.pdf", "{token}", "x")
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pagePattern.FindAllStringSubmatch(string(source), -1) {
			path := place.Replace(m[2])
			if strings.Contains(path, "{") {
				t.Fatalf("%s: this test does not know what to put into %s", file, m[2])
			}
			all = append(all, listedPage{m[1], path, strings.ToLower(m[3])})
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d pages were found", len(all))
	}
	return all
}

// who has which session of the pages.
type everybody struct {
	acme, other, admin *browser
	signedOut          map[string]*browser // of the portal: no session of it, or none any more
	notStaff           map[string]*browser // of the admin pages
}

// sessionsOfAllKinds makes two customers and a session of each kind.
func sessionsOfAllKinds(n *testNode) *everybody {
	n.t.Helper()
	n.do("PUT", "/v1/meters/requests", `{"unit":"request"}`).is(201)
	n.do("PUT", "/v1/plans/basic", planOf(hourly)).is(201)
	n.do("PUT", "/v1/customers/acme", strings.Replace(onPlan, "Customer", "Acme GmbH", 1)).is(201)
	n.do("PUT", "/v1/customers/other", strings.Replace(onPlan, "Customer", "Other Ltd", 1)).is(201)
	id, secret := n.newKey("admin")
	expired, expiredAdmin := n.browser().enter(n, "acme"), n.signedIn(testAdminKey)
	query[int64](n.t, n.databaseURL, "WITH over AS (UPDATE sessions SET expires_at = 0 RETURNING 1) SELECT count(*) FROM over")
	revoked := n.signedIn(secret)
	n.do("DELETE", "/v1/keys/"+id, "").is(204)
	all := &everybody{acme: n.browser().enter(n, "acme"), other: n.browser().enter(n, "other"), admin: n.signedIn(testAdminKey)}
	left := n.browser().enter(n, "acme").keeping(func(b *browser) { b.post("/portal/leave", nil).is(200) })
	leftAdmin := n.signedIn(testAdminKey).keeping(func(b *browser) { b.post("/admin/sign-out", nil).is(303) })
	all.signedOut = map[string]*browser{"nobody": n.browser(), "an admin": all.admin, "an expired session": expired, "a session that was left": left}
	all.notStaff = map[string]*browser{
		"nobody": n.browser(), "a customer": all.acme, "an expired session": expiredAdmin,
		"a session that was left": leftAdmin, "a session of a revoked key": revoked,
	}
	return all
}

// keeping is the browser with its cookies of before it did something.
func (b *browser) keeping(do func(*browser)) *browser {
	b.t.Helper()
	address, err := url.Parse(b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	cookies := b.cookies()
	do(b)
	b.client.Jar.SetCookies(address, cookies)
	if len(b.cookies()) != len(cookies) || len(cookies) == 0 {
		b.t.Fatal("the cookies are gone")
	}
	return b
}

// TestEveryPageAsksWho: each page is tried without a session, with one of another kind, with one of
// another customer, with one that is over, and from another site. Who may not see it sees nothing of
// it, and changes nothing.
func TestEveryPageAsksWho(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	all := sessionsOfAllKinds(n)
	all.acme.get("/portal").is(200).says("Acme GmbH")
	all.admin.get("/admin/customers/acme").is(200).says("Acme GmbH")
	before := n.stands()
	for _, p := range listedPages(t) {
		send := func(b *browser) *reply {
			t.Helper()
			return b.send(p.method, p.path, nil, "Sec-Fetch-Site: same-origin")
		}
		switch p.who {
		case "customer":
			for name, b := range all.signedOut {
				if got := send(b); got.status != 401 || strings.Contains(got.text, "Acme") {
					t.Errorf("%s %s is %d for %s", p.method, p.path, got.status, name)
				}
			}
			if p.method == "GET" && strings.Contains(send(all.other).text, "Acme") {
				t.Errorf("%s shows a customer to another one", p.path)
			}
		case "staff":
			for name, b := range all.notStaff {
				if got := send(b); got.status != 303 || !strings.HasPrefix(got.header.Get("Location"), "/admin/sign-in") || strings.Contains(got.text, "Acme") {
					t.Errorf("%s %s is %d for %s", p.method, p.path, got.status, name)
				}
			}
		}
		if p.method == "POST" {
			for _, b := range []*browser{all.acme, all.admin} {
				b.send("POST", p.path, nil, "Sec-Fetch-Site: cross-site").is(403)
			}
		}
	}
	for name, b := range all.signedOut {
		if first, _ := b.stream("/portal/live"); first != "event: over" {
			t.Errorf("%s has a stream that begins with %q", name, first)
		}
	}
	if after := n.stands(); after != before {
		t.Errorf("somebody without a right changed something:\n%s\n%s", before, after)
	}
}

// adminOnly are the pages that other scopes may not look at.
var adminOnly = []string{"/admin/keys", "/admin/audit", "/admin/webhooks", "/admin/webhooks/x"}

// TestEveryPageAsksWhichScope: keys that may not write look at all but what is for admins, and change
// nothing. Nobody changes anything by a GET.
func TestEveryPageAsksWhichScope(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	all := sessionsOfAllKinds(n)
	was := n.stands()
	for _, p := range listedPages(t) {
		if p.method == "GET" {
			all.acme.get(p.path)
			if got := all.admin.get(p.path); p.who == "staff" && got.status != 200 && got.status != 303 && got.status != 404 {
				t.Errorf("%s is %d for an admin", p.path, got.status)
			}
		}
	}
	if is := n.stands(); is != was {
		t.Errorf("a GET changed something:\n%s\n%s", was, is)
	}
	for _, scope := range []string{"read", "support"} {
		_, secret := n.newKey(scope)
		before := n.stands()
		b := n.signedIn(secret)
		for _, p := range listedPages(t) {
			if p.who != "staff" || p.path == "/admin/sign-out" || scope == "support" && supporterMay(p.path) {
				continue
			}
			got := b.send(p.method, p.path, nil, "Sec-Fetch-Site: same-origin")
			switch {
			case p.method == "GET" && (got.status == 403) == slices.Contains(adminOnly, p.path) && (got.status < 300 || got.status == 403 || got.status == 404):
			case p.method == "POST" && (got.status >= 400 && got.status < 500 || strings.HasSuffix(p.path, "/archive")): // which asks first whether one is sure
			default:
				t.Errorf("%s %s is %d for the scope %s", p.method, p.path, got.status, scope)
			}
		}
		if after := n.stands(); after != before {
			t.Errorf("the scope %s changed something:\n%s\n%s", scope, before, after)
		}
	}
}

func supporterMay(path string) bool {
	return strings.Contains(path, "/overrides") || strings.HasSuffix(path, "/portal")
}

// stands is what admins have written, apart from the audit.
func (n *testNode) stands() string {
	n.t.Helper()
	var all strings.Builder
	for _, path := range []string{
		"/v1/customers", "/v1/meters", "/v1/plans", "/v1/keys", "/v1/customers/acme/overrides", "/v1/customers/acme/credits",
		"/v1/invoices",
	} {
		all.WriteString(used.ReplaceAllString(string(n.do("GET", path, "").is(200).raw), ""))
	}
	return all.String()
}

// used is the day of a key's last use, which reading changes.
var used = regexp.MustCompile(`"used_on":[^,}]*`)
