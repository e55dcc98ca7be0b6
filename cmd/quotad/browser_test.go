package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"quotad/internal/testkit"
)

// A pageRow is a page, or a state of one, that is opened in a browser at all widths, light and
// dark. A new page is one row.
type pageRow struct {
	name string
	path string // {link}: into the portal, not used yet; {invoice}, {webhook}: the id of one; {elsewhere}: this machine by another name
	as   string // whose session: a customer, a scope of keys, or "" for nobody
	says string // what the page must say, separated by |
	loud bool   // the browser notes its status, which is no success

	whole bool // TestPages looks at the page in all views, and walks through the page by Tab

	// Of a state that a page is in at times.
	plain  bool          // without script
	before func(*window) // what happens before the page is opened
	then   func(*window) // what happens to the open page
	lacks  string        // what the page must not say
}

func pageRows() []pageRow {
	return slices.Concat(stateRows(), planRows(), []pageRow{
		{name: "overview", path: "/portal", as: "acme", says: "Usage and limits", whole: true},
		{name: "projected", path: "/portal", as: "billed", says: "Projected"},
		{name: "usage", path: "/portal/usage?meter=requests&range=48h", as: "acme", says: "API requests"},
		{name: "usage of a month", path: "/portal/usage?meter=requests&range=30d", as: "acme", says: "Admitted"},
		{name: "usage as a table", path: "/portal/usage?meter=requests&range=7d", as: "acme", then: unfold, says: "Show as a table|Admitted"},
		{name: "usage of a year", path: "/portal/usage?meter=tokens&range=12mo", as: "acme", says: "Tokens"},
		{name: "usage, nothing", path: "/portal/usage?meter=logins&range=7d", as: "acme", says: "Nothing was used"},
		{name: "usage, wrong", path: "/portal/usage?meter=requests&from=2026-13-01&to=yesterday&by=hour", as: "acme", says: "Must be a day", loud: true},
		{name: "refusals", path: "/portal/refusals", as: "acme", says: "would have passed"},
		{name: "no refusals", path: "/portal/refusals?meter=tokens", as: "acme", says: "Nothing was refused"},
		{name: "invoices", path: "/portal/invoices", as: "billed", says: "To be paid"},
		{name: "invoice", path: "/portal/invoices/{invoice}", as: "billed", says: "Hour by hour"},
		{name: "hours", path: "/portal/invoices/{invoice}/lines/2", as: "billed", says: "units in all"},
		{name: "no invoices", path: "/portal/invoices", as: "empty", says: "There is no invoice yet"},
		{name: "plan", path: "/portal/plan", as: "acme", says: "Versions"},
		{name: "plan of tiers", path: "/portal/plan", as: "tiered", says: "above"},
		{name: "another's invoice", path: "/portal/invoices/{invoice}", as: "acme", says: "no such page|Acme GmbH|Refusals|Invoices", loud: true},
		{name: "door", path: "{link}", says: "Usage and limits"},
		{name: "link over", path: "/portal/enter/x", says: "used or is over|Back to Northwind", loud: true},
		{name: "link over, signed in", path: "/portal/enter/x", as: "acme", says: "used or is over|Acme GmbH|Refusals", loud: true},
		{name: "no such admin page", path: "/admin/nothing", as: "admin", says: "no such page|Sign out|Audit", loud: true},
		{name: "no such customer", path: "/admin/customers/nobody", as: "admin", says: "no such page|Sign out|Customers", loud: true},
		{name: "signed out", path: "/portal", says: "signed out|Back to Northwind", loud: true},
		{name: "no such page", path: "/portal/nothing", as: "acme", says: "no such page|Acme GmbH|Refusals", loud: true},
		{name: "archived", path: "/portal", as: "closed", says: "This account is closed"},
		{name: "empty", path: "/portal", as: "empty", says: "Your plan has no limits"},
		{name: "many limits", path: "/portal", as: "many", says: "Find a limit"},
		{name: "test clock", path: "/portal", as: "clocked", says: "Test clock"},
		{name: "sign in", path: "/admin/sign-in", says: "Sign in"},
		{name: "playground", path: "/playground", says: "What gets through", whole: true},
		{name: "admin", path: "/admin", as: "admin", says: "Fullest customers", whole: true},
		{name: "customers", path: "/admin/customers", as: "admin", says: "Acme GmbH"},
		{name: "customers found", path: "/admin/customers?search=gmbh+ACME", as: "admin", says: "Acme GmbH|Name or key", lacks: "Tiered"},
		{name: "customer", path: "/admin/customers/acme", as: "admin", says: "Override a limit"},
		{name: "customer of scripts", path: "/admin/customers/empty", as: "admin", says: "<script>"},
		{name: "customer's billing", path: "/admin/customers/acme/billing", as: "admin", says: "Grant a credit"},
		{name: "customer's usage", path: "/admin/customers/acme/usage", as: "admin", says: "Days of your own"},
		{name: "customer's settings", path: "/admin/customers/acme/settings", as: "admin", says: "Change the customer"},
		{name: "customer's plan", path: "/admin/customers/acme/plan", as: "admin", says: "Change the plan"},
		{
			name: "ways to a plan", path: "/admin/customers/coming/plan?plan=grown", as: "admin",
			says: "Scheduled|Drop it|Change now|When the paid base price ends|Invoice then|Next invoice|unused",
		},
		{name: "no way to a plan", path: "/admin/customers/coming/plan?plan=nothing&plan_version=3", as: "admin", says: "There is no such plan", loud: true},
		{name: "scheduled", path: "/portal", as: "coming", says: "the plan is Grown|Gigabytes"},
		{name: "scheduled plan", path: "/portal/plan", as: "coming", says: "the plan is Grown|$99.00 a month"},
		{name: "scheduled, admin", path: "/admin/customers/coming", as: "admin", says: "the plan is Grown|Gigabytes"},
		{name: "level", path: "/portal/usage?meter=gigabytes&range=7d", as: "coming", says: "Gigabytes"},
		{name: "level, admin", path: "/admin/customers/coming/usage?meter=gigabytes&range=7d", as: "admin", says: "Gigabytes"},
		{name: "meters", path: "/admin/meters", as: "admin", says: "API requests"},
		{name: "plans", path: "/admin/plans", as: "admin", says: "A plan is never changed"},
		{name: "keys", path: "/admin/keys", as: "admin", says: "New key"},
		{name: "webhooks", path: "/admin/webhooks", as: "admin", says: "New webhook|failing"},
		{name: "webhook", path: "/admin/webhooks/{webhook}", as: "admin", says: "Send a test|New secret|Failing since|waiting|Send again"},
		{name: "webhook's secret", path: "/admin/webhooks/{webhook}", as: "admin", then: rotate, says: "It is shown this once|whsec_"},
		{name: "invoices", path: "/admin/invoices", as: "admin", says: "As CSV"},
		{name: "audit", path: "/admin/audit", as: "admin", says: "Nothing here can be edited"},
		{name: "audit unfolded", path: "/admin/audit", as: "admin", then: unfold, says: "Nothing here can be edited|\"path\":"},
		{name: "search refused", path: "/admin/audit?from=yesterday", as: "admin", says: "From", loud: true},
		{name: "books", path: "/admin/reconcile", as: "admin", says: "Check now"},
	})
}

// pagesWorld is a node with customers in all states.
func pagesWorld(t testing.TB, closeDelay string) *testNode {
	t.Helper()
	n := start(t, "", "--brand-name=Northwind", "--portal-return-origins=https://app.example.com", "--close-delay="+closeDelay)
	n.northwind()
	// Its name stands for no address, so nothing is delivered.
	n.webhook = n.do("POST", "/v1/webhooks",
		`{"url":"https://hooks.example.invalid/a-path-that-is-so-long-that-no-line-of-a-narrow-page-has-room-for-all-of-it/quotad"}`).is(201).str("id")
	n.do("PUT", "/v1/plans/none", `{"name":"None","currency":"USD","interval":"month"}`).is(201)
	n.do("PUT", "/v1/customers/empty",
		`{"name":"Nobody <script>alert(1)</script> & Söhne, a name that is so long that no header has room for all of it","plan":"none"}`).is(201)
	n.do("PUT", "/v1/customers/closed", `{"name":"Closed","plan":"none"}`).is(201)
	var limits []string
	for i := range 20 {
		limits = append(limits, fmt.Sprintf(`{"name":"l%d","meter":"requests","algorithm":"fixed_window","limit":%d,"window":"%dh"}`, i, 100*(i+1), i+1))
	}
	for i := range limits {
		limits[i] = strings.Replace(limits[i], `"meter":"requests"`, `"meter":"`+[]string{"requests", "exports", "tokens"}[i%3]+`"`, 1)
	}
	n.do("PUT", "/v1/plans/many", planOf(limits...)).is(201)
	n.do("PUT", "/v1/customers/many", `{"name":"Many","plan":"many"}`).is(201)
	n.do("PUT", "/v1/customers/many/overrides/l1", `{"limit":900,"reason":"a trial"}`).is(201)
	n.do("PUT", "/v1/test-clocks/spring", `{"now":"2026-03-29T00:59:30Z"}`).is(201)
	n.do("PUT", "/v1/customers/clocked", `{"name":"Clocked","plan":"pro","timezone":"Europe/Berlin","test_clock":"spring"}`).is(201)
	n.do("POST", "/v1/hits", `{"customer":"clocked","meter":"requests","cost":5000}`).is(200)
	n.billed()
	n.do("PUT", "/v1/plans/tiered",
		`{"name":"Tiered","currency":"EUR","interval":"year","base_price_minor":120000,"base_in":"advance","minimum_minor":5000,"prices":[
		{"meter":"requests","model":"graduated","tiers":[{"up_to":1000,"unit_price":"0.10","flat_price":"5"},{"up_to":null,"unit_price":"0.00004"}],
			"included":100,"maximum_minor":100000},
		{"meter":"exports","model":"package","package_size":1000,"package_price":"7.50"},
		{"meter":"tokens","model":"volume","tiers":[{"up_to":1000000,"unit_price":"0.002"},{"up_to":null,"unit_price":"0.001"}],"minimum_minor":100}]}`).is(201)
	n.do("PUT", "/v1/customers/tiered", `{"name":"Tiered","plan":"tiered"}`).is(201)
	n.spent()
	n.coming()
	n.drafts(limits)
	n.closed = n.portalCookies("closed")
	n.do("DELETE", "/v1/customers/closed", "").is(204)
	return n
}

// A window is a browser's, with a session or without one.
type window struct {
	t       testing.TB
	ctx     context.Context
	node    *testNode
	cookies []*http.Cookie
	shown   pageView

	mu     sync.Mutex              // guards what follows
	said   []string                // by the console: errors and warnings
	page   context.Context         // ends when a script of the open page throws
	failed context.CancelCauseFunc // ends page
}

// browserNames are the programs that can run the tests, the quickest one first.
var browserNames = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}

// browserProgram returns the file of a browser in the directories of a search path.
func browserProgram(searched string) (string, error) {
	for _, name := range browserNames {
		for _, dir := range filepath.SplitList(searched) {
			if at := filepath.Join(dir, name); isFile(at) {
				return at, nil
			}
		}
	}
	return "", fmt.Errorf("there is no browser on PATH (none of %s): scripts/deps.sh chromium installs one, or names the command that does",
		strings.Join(browserNames, ", "))
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// openWindow starts a browser.
func openWindow(t testing.TB, n *testNode) *window {
	t.Helper()
	program, err := browserProgram(os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program), chromedp.Flag("disable-quic", true),
		chromedp.WSURLReadTimeout(testkit.Patience))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(testkit.Context(t), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // it starts the browser, which ends with this context
		t.Fatal(err)
	}
	w := &window{t: t, ctx: ctx, node: n}
	w.leaves()
	console := chromedp.Console(ctx)
	go func() {
		for m, err := range console {
			if err != nil {
				return
			}
			if m.Type == "error" || m.Type == "warning" || m.IsException() {
				w.hears(m)
			}
		}
	}()
	return w
}

// hears notes what the console says.
func (w *window) hears(m chromedp.ConsoleMessage) {
	text := fmt.Sprint(m.Type, " ", m.Source, " ", m.Text, " ", m.URL)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
	if m.IsException() {
		w.failed(fmt.Errorf("a script of the page threw: %s", text))
	}
}

// leaves forgets what the scripts of the open page threw, because another page is to be opened.
func (w *window) leaves() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		w.failed(nil)
	}
	w.page, w.failed = context.WithCancelCause(w.ctx)
}

// console is what was said since the last call.
func (w *window) console() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := w.said
	w.said = nil
	return said
}

// step is the context of one thing that the browser does. Each has its own deadline, so that no number
// of them is too many.
func (w *window) step() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.ctx, testkit.Patience)
}

func (w *window) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	ctx, done := w.step()
	defer done()
	if err := chromedp.Do(ctx, actions...); err != nil {
		w.t.Fatalf("%s: %v; console: %q", what, err, w.console())
	}
}

// call is a command of the browser's protocol.
func call[P any](w *window, command cdp.Command[P, cdp.Empty], params P) {
	w.t.Helper()
	asked(w, command, params)
}

// asked is call for a command that answers.
func asked[P, R any](w *window, command cdp.Command[P, R], params P) R {
	w.t.Helper()
	ctx, done := w.step()
	defer done()
	answer, err := chromedp.Call(ctx, command, params)
	if err != nil {
		w.t.Fatalf("%s: %v", command.Method, err)
	}
	return answer
}

// eval is the value of an expression of JavaScript.
func eval[T any](w *window, expression string) T {
	w.t.Helper()
	ctx, done := w.step()
	defer done()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		w.t.Fatalf("%s: %v", expression[:min(len(expression), 80)], err)
	}
	return value
}

// as gives the window the session of a customer, of a key of a scope, or none.
func (w *window) as(who string) {
	w.t.Helper()
	call(w, network.ClearBrowserCookies, cdp.Empty{})
	switch who {
	case "":
		w.cookies = nil
	case "closed": // nobody can open a link of an archived customer any more
		w.cookies = w.node.closed
	case "admin":
		w.cookies = w.node.adminCookies(testAdminKey)
	case "read", "support":
		_, secret := w.node.newKey(who)
		w.cookies = w.node.adminCookies(secret)
	default:
		w.cookies = w.node.portalCookies(who)
	}
	for _, c := range w.cookies {
		asked(w, network.SetCookie, network.SetCookieParams{Name: c.Name, Value: c.Value, URL: w.node.url, HTTPOnly: new(true)})
	}
}

// A pageView is how somebody looks at a page. Heights and widths are in CSS pixels.
type pageView struct {
	width, height int64
	scale         float64 // 2: zoomed to 200 %
	scheme        string
}

func (v pageView) String() string {
	return fmt.Sprintf("%d px at %.0f %%, %s", v.width, 100*v.scale, v.scheme)
}

// usual is the view in which each page is opened.
var usual = pageView{1280, 900, 1, "light"}

// otherViews returns the views of a page beside the usual one. A width of 640 is one of 1280 at 200 %.
func otherViews() []pageView {
	if testing.Short() {
		return []pageView{{320, 900, 1, "light"}, {1280, 900, 1, "dark"}}
	}
	return []pageView{
		{320, 900, 1, "light"},
		{390, 900, 1, "light"},
		{768, 900, 1, "light"},
		{640, 450, 2, "light"},
		{390, 900, 1, "dark"},
		{1280, 900, 1, "dark"},
	}
}

// view looks at the open page in another way. The server does not know of widths and schemes, and so
// need not be asked again.
func (w *window) view(v pageView) {
	w.t.Helper()
	if w.shown == v {
		return
	}
	w.emulate(v)
	is := fmt.Sprintf(`document.documentElement.clientWidth === %d && matchMedia("(prefers-color-scheme: %s)").matches`, v.width, v.scheme)
	testkit.Eventually(w.t, "the view of "+v.String(), func() bool { return eval[bool](w, is) })
}

func (w *window) emulate(v pageView) {
	w.t.Helper()
	w.shown = v
	call(w, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: v.width, Height: v.height, DeviceScaleFactor: v.scale,
		Mobile: v.width < 600,
	})
	call(w, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{
		Name:  "prefers-color-scheme",
		Value: v.scheme,
	}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// look opens a page at a width in a colour scheme.
func (w *window) look(width int64, scheme, path string) {
	w.t.Helper()
	w.emulate(pageView{width, 900, 1, scheme})
	if strings.HasPrefix(path, "/") {
		path = w.node.url + path
	}
	w.leaves()
	w.do("open "+path, chromedp.Navigate(path))
	eval[bool](w, `document.fonts.ready.then(() => true)`)
}

// isLive waits until the page's stream, if it has one, has said something.
func (w *window) isLive() {
	w.t.Helper()
	w.until("the stream", `!document.querySelector("[data-live]") || document.querySelector("[data-live-sign]").dataset.state === "live"`)
}
