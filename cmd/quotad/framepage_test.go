package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// TestPagesKeepTheirTabs: a database that answers nobody takes no tabs away. Who was signed in sees the
// menu and why there is no more, and who was not sees no menu.
func TestPagesKeepTheirTabs(t *testing.T) {
	server := pgtest.Server(t)
	n := start(t, server.URL())
	n.setUp(fixed("hourly", 100))
	portal, admin := n.browser().enter(n, "acme"), n.signedIn(testAdminKey)
	w := openWindow(t, n)
	for _, cookie := range append(portal.cookies(), admin.cookies()...) {
		call(w, network.SetCookie, network.SetCookieParams{Name: cookie.Name, Value: cookie.Value, URL: n.url, HTTPOnly: new(true)})
	}
	server.Stop()
	for _, row := range []struct {
		path string
		tabs []string
	}{
		{"/portal", []string{"Overview", "Usage", "Refusals", "Invoices", "Plan"}},
		{"/portal/invoices/x", []string{"Overview", "Usage", "Refusals", "Invoices", "Plan"}},
		{"/portal/nothing", []string{"Overview", "Usage", "Refusals", "Invoices", "Plan"}},
		{"/admin/customers/acme", []string{"Overview", "Keys", "Webhooks", "Audit", "Check the books", "Customers", "Invoices", "Plans", "Meters"}},
		{"/admin/nothing", []string{"Overview", "Keys", "Webhooks", "Audit", "Check the books", "Customers", "Invoices", "Plans", "Meters"}},
	} {
		w.look(1280, "light", row.path)
		if got := eval[[]string](w, `[...document.querySelectorAll("nav a")].map(e => e.innerText)`); strings.Join(got, " ") != strings.Join(row.tabs, " ") {
			t.Errorf("%s: the menu is %q", row.path, got)
		}
		if text := eval[string](w, `document.querySelector("main").innerText`); !strings.Contains(text, "cannot be shown just now") &&
			!strings.Contains(text, "no such page") {
			t.Errorf("%s says %q", row.path, text)
		}
		if on := eval[[]string](w, `[...document.querySelectorAll("main a")].map(e => e.innerText)`); len(on) == 0 {
			t.Errorf("%s leads nowhere", row.path)
		}
		if text := eval[string](w, `document.body.innerText`); strings.Contains(text, "Customer\n") || strings.Contains(text, "bootstrap") ||
			strings.Contains(text, "Sign out") {
			t.Errorf("%s names somebody: %s", row.path, text)
		}
	}
	n.browser().get("/portal").is(http.StatusUnauthorized).lacks("<nav")
	call(w, network.ClearBrowserCookies, cdp.Empty{})
	server.Start()
	testkit.Eventually(t, "the pages are back", func() bool { return portal.get("/portal").status == 200 && admin.get("/admin/customers").status == 200 })
	portal.get("/portal").says("Sign out")
}

// TestMessagesOfferAWayOn: to whom is signed in and to whom is not, of their own pages.
func TestMessagesOfferAWayOn(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--portal-return-origins=https://app.example.com")
	n.setUp(fixed("hourly", 100))
	_, reader := n.newKey("read")
	nobody, acme, admin, read := n.browser(), n.browser().enter(n, "acme"), n.signedIn(testAdminKey), n.signedIn(reader)
	const back, portal, staff = `href="https://app.example.com"`, `<nav class="tabs" aria-label="Pages">`, `<nav id="nav"`
	for _, row := range []struct {
		who    *browser
		path   string
		status int
		says   []string
		lacks  string
	}{
		{acme, "/portal/nothing", 404, []string{portal, `<a class="button primary" href="/portal">Overview</a>`}, staff},
		{acme, "/portal/invoices/x", 404, []string{portal, `<a class="button primary" href="/portal/invoices">Invoices</a>`}, staff},
		{acme, "/portal/enter/x", 410, []string{portal, `<a class="button primary" href="/portal">Overview</a>`}, staff},
		{acme, "/admin/nothing", 404, []string{`href="/admin/sign-in"`}, staff},
		{nobody, "/portal/enter/x", 410, []string{back}, portal},
		{nobody, "/portal", 401, []string{back}, portal},
		{nobody, "/portal/nothing", 404, []string{back}, portal},
		{nobody, "/admin/nothing", 404, []string{`href="/admin/sign-in"`}, staff},
		{nobody, "/playground/nothing", 404, []string{`href="/playground"`}, portal},
		{admin, "/admin/nothing", 404, []string{staff, `<a class="button primary" href="/admin">Overview</a>`}, portal},
		{admin, "/admin/customers/nobody", 404, []string{staff, `<a class="button primary" href="/admin/customers">Customers</a>`}, portal},
		{admin, "/portal/nothing", 404, []string{back}, staff},
		{read, "/admin/keys", 403, []string{staff, "scope read, which does not allow this page", `href="/admin/sign-in"`}, `href="/admin/keys"`},
	} {
		row.who.get(row.path).is(row.status).says(row.says...).lacks(row.lacks)
	}
	read.post("/admin/reconcile", nil).is(403).says(staff).lacks("Try again")
}
