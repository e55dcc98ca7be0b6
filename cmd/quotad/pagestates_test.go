package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"quotad/internal/testkit"
)

// stateRows are states that pages are in at times.
func stateRows() []pageRow {
	const stands = "|API requests|Seats|This period|" // what stands on the first page
	return []pageRow{
		{name: "live", path: "/portal", as: "acme", says: "Live|Pause" + stands},
		{name: "paused", path: "/portal", as: "acme", then: pause, says: "As of |Resume" + stands, lacks: "Live"},
		{name: "stale", path: "/portal", as: "acme", then: stale, says: "As of |, reconnecting" + stands, lacks: "Live"},
		{name: "no stream left", path: "/portal", as: "acme", before: takeStreams, then: staysStill, says: "As of " + stands, lacks: "Live"},
		{name: "no script", path: "/portal", as: "acme", plain: true, says: "As of " + stands, lacks: "Live"},
		{name: "no script, usage", path: "/portal/usage?meter=requests&range=7d", as: "acme", plain: true, says: "API requests|Days of your own"},
		{name: "no script, door", path: "{link}", plain: true, says: "Open your usage"},
		{name: "no script, playground", path: "/playground", plain: true, says: "What gets through"},
		{name: "no script, admin", path: "/admin/customers", as: "admin", plain: true, says: "Acme GmbH|Audit"},
		{name: "loading", path: "/playground", then: loading, says: "What gets through|admitted"},
		{name: "refusals failed", path: "/portal", as: "acme", before: without("refusals"), says: "Refusals could not be read|the period ends with|Live" + stands},
		{name: "cost failed", path: "/portal", as: "acme", before: without("credits"), says: "The cost could not be read|Recent refusals|Live" + stands},
		{
			name: "usage failed", path: "/portal", as: "acme", before: without("usage"),
			says: "Usage could not be read|Your limits could not be read|would have passed", lacks: "Live",
		},
		{
			name: "limits failed", path: "/portal", as: "acme", before: without("holds"),
			says: "Your limits could not be read|the last 48 hours|the period ends with|Recent refusals", lacks: "Live",
		},
		{name: "degraded", path: "/portal", as: "acme", before: degrade, says: "impaired|As of |Recent refusals" + stands, lacks: "Live"},
		{name: "degraded, admin", path: "/admin", as: "admin", before: degradeAll, says: "impaired|One thing needs a look|is degraded"},
		{
			name: "out of reach", path: "/portal", as: "acme", before: without("sessions"),
			says: "This cannot be shown just now|Try again|Refusals|Invoices|Plan", loud: true,
		},
		{
			name: "out of reach, admin", path: "/admin/customers", as: "admin", before: without("sessions"),
			says: "This cannot be shown just now|Try again|Audit|Invoices|The database did not answer", loud: true,
		},
		{name: "used up", path: "/portal", as: "spent", says: "There are no |Used up|Exceeded"},
		{name: "names of scripts", path: "/portal/usage?meter=odd&range=48h", as: "spent", says: "</title><script>alert(2)</script>"},
		{name: "by http from elsewhere", path: "{elsewhere}/portal", says: "Pages need https", loud: true},
		{name: "from another site", path: "about:blank", as: "acme", then: crossOrigins, says: "This came from another site", loud: true},
		{
			name: "not of this scope", path: "/admin/audit", as: "read",
			says: "This is not for you|scope read, which does not allow this page|Customers|Sign out|Sign in with another key", loud: true,
		},
		{name: "key asked", path: "/admin/keys", as: "admin", then: askAll, says: "you are signed in with it|revoking it signs you out|Yes, revoke it|Cancel"},
		{name: "override asked", path: "/admin/customers/many", as: "admin", then: askAll, says: "own limit “l1” counts again|Yes, delete it"},
		{name: "archive asked", path: "/admin/customers/many/settings", as: "admin", then: askAll, says: "This cannot be undone|Yes, archive it"},
		{
			name: "way asked", path: "/admin/customers/coming/plan?plan=grown", as: "admin", then: askAll,
			says: "The plan stays as it is|This cannot be undone|Yes, do it",
		},
		{name: "draft asked", path: "/admin/plans/pro", as: "admin", then: askAll, says: "What this draft changes is lost|Yes, discard it|Yes, remove"},
	}
}

// spent makes a customer who has used up a limit of each kind, and whose meter has the name of a script.
func (n *testNode) spent() {
	n.t.Helper()
	n.do("PUT", "/v1/meters/odd", `{"name":"</title><script>alert(2)</script>","unit":"<b>\"'&"}`).is(201)
	limit := func(name, meter, rest string) string {
		return fmt.Sprintf(`{"name":%q,"meter":%q,"limit":10,%s}`, name, meter, rest)
	}
	n.do("PUT", "/v1/plans/spent", planOf(
		limit("window", "odd", `"algorithm":"fixed_window","window":"1d"`),
		limit("soft", "exports", `"algorithm":"fixed_window","window":"calendar_month","mode":"soft"`),
		limit("seats", "seats", `"algorithm":"allocation"`), limit("renders", "renders", `"algorithm":"concurrency","ttl":"1h"`),
		limit("bucket", "tokens", `"algorithm":"token_bucket","window":"365d"`), limit("log", "searches", `"algorithm":"sliding_log","window":"10d"`))).is(201)
	n.do("PUT", "/v1/customers/spent", `{"name":"<i>Spent</i>","plan":"spent","timezone":"Asia/Kathmandu"}`).is(201)
	for _, meter := range []string{"odd", "seats", "tokens", "searches"} {
		n.do("POST", "/v1/hits", hitOf("spent", meter, `,"cost":10`)).is(200)
	}
	n.do("POST", "/v1/hits", hitOf("spent", "exports", `,"cost":14`)).is(200)
	n.do("POST", "/v1/reservations", hitOf("spent", "renders", `,"cost":10,"ttl_ms":3600000`)).is(201)
	n.do("POST", "/v1/hits", hitOf("spent", "odd", `,"cost":25`)).is(429)
}

// coming makes a customer of a level meter, on a yearly base price, with a change of plan that is scheduled.
func (n *testNode) coming() {
	n.t.Helper()
	n.do("PUT", "/v1/meters/gigabytes", `{"name":"Gigabytes","unit":"gigabyte","kind":"level"}`).is(201)
	for _, p := range []struct{ key, name, base, limit string }{
		{"young", "Young", `120000,"base_in":"advance","base_every":12`, "50"},
		{"grown", "Grown", `9900,"base_in":"advance"`, "500"},
	} {
		n.do("PUT", "/v1/plans/"+p.key, `{"name":"`+p.name+`","currency":"USD","interval":"month","base_price_minor":`+p.base+`,
			"limits":[{"name":"storage","meter":"gigabytes","algorithm":"allocation","limit":`+p.limit+`}],
			"prices":[{"meter":"gigabytes","model":"per_unit","unit_price":"0.25","included":10}]}`).is(201)
	}
	n.do("PUT", "/v1/customers/coming", `{"name":"Coming Inc","plan":"young","timezone":"America/New_York"}`).is(201)
	n.do("POST", "/v1/hits", hitOf("coming", "gigabytes", `,"cost":31`)).is(200)
	n.do("PUT", "/v1/customers/coming/scheduled-change", `{"plan":"grown"}`).is(201)
}

const liveState = `document.querySelector("[data-live-sign]").dataset.state`

func pause(w *window) {
	w.t.Helper()
	w.isLive()
	eval[int](w, `document.querySelector("[data-live-sign] button").click();0`)
}

// stale waits until the page has heard nothing for six seconds: a node in trouble sends no beats.
func stale(w *window) {
	w.t.Helper()
	w.isLive()
	degrade(w)
	w.until("the sign that it is old", liveState+` === "stale"`)
}

// stays has the page's questions wait for ever. So a page without a stream does not load itself again, as
// it does after half a minute when somebody answers.
func (w *window) stays() {
	w.t.Helper()
	eval[int](w, `window.fetch = () => new Promise(() => {});0`)
}

// takeStreams opens as many streams as a session may have.
func takeStreams(w *window) {
	w.t.Helper()
	b := w.browser()
	for range 4 {
		if first, _ := b.stream("/portal/live"); first == "event: full" {
			w.t.Fatal("too few streams")
		}
	}
}

// staysStill waits for as long as a stream takes to say something.
func staysStill(w *window) {
	w.t.Helper()
	w.until("the stream's end", `document.querySelector("[data-live-sign] button").hidden && !document.querySelector("[data-live]")._htmx?.sse`)
}

// loading leaves the page while it waits for a part of it. Others come whole.
func loading(w *window) {
	w.t.Helper()
	w.stays()
	eval[bool](w, `(() => { const e = document.getElementById("limit"); e.value = "40"; return e.dispatchEvent(new Event("input", {bubbles: true})) })()`)
	w.until("the page to ask", `document.getElementById("plays").getAttribute("aria-busy") === "true"`)
}

// unfold shows what the page has folded.
func unfold(w *window) {
	w.t.Helper()
	eval[int](w, `for (const e of document.querySelectorAll("details")) e.open = true;0`)
}

// without takes the right to read a table from the node, until the test ends.
func without(table string) func(*window) {
	return func(w *window) {
		w.t.Helper()
		t := w.t
		execSQL(t, w.node.databaseURL, "REVOKE SELECT ON "+table+" FROM CURRENT_USER")
		t.Cleanup(func() {
			execSQL(t, w.node.databaseURL, "GRANT SELECT ON "+table+" TO CURRENT_USER")
			testkit.Eventually(t, "the node is well again", func() bool { return w.node.node.trouble() == "" })
		})
	}
}

// degrade has the node hear of no changes.
func degrade(w *window) {
	w.t.Helper()
	without("changes")(w)
	testkit.Eventually(w.t, "the node is degraded", func() bool { return w.node.node.trouble() != "" })
}

// degradeAll waits until the node has said so to all.
func degradeAll(w *window) {
	w.t.Helper()
	degrade(w)
	testkit.Eventually(w.t, "the overview says so", func() bool {
		return strings.Contains(fmt.Sprint(w.node.do("GET", "/v1/overview", "").is(200).at("concerns")), "node_degraded")
	})
}

// crossOrigins sends a form from a page of no origin.
func crossOrigins(w *window) {
	w.t.Helper()
	eval[int](w, fmt.Sprintf(`(() => { const f = document.createElement("form"); f.method = "post"; f.action = %q; document.body.append(f); f.submit(); return 0 })()`,
		w.node.url+"/portal/leave"))
	w.settles("the answer", fmt.Sprintf(`location.href.startsWith(%q) && document.readyState === "complete"`, w.node.url))
	eval[bool](w, `document.fonts.ready.then(() => true)`)
}

// open opens a row's page, and brings it into its state.
func (w *window) open(row *pageRow) {
	w.t.Helper()
	w.as(row.as)
	if row.before != nil {
		row.before(w)
	}
	path := w.node.place(row.path)
	if path == "{link}" {
		path = w.node.link("acme")
	}
	call(w, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: row.plain})
	w.console()
	w.look(1280, "light", path)
	switch {
	case row.then != nil:
		row.then(w)
	case row.path == "{link}" && !row.plain:
		w.settles("the portal to open", `location.pathname === "/portal" && document.readyState === "complete"`)
		fallthrough
	case strings.Contains(row.says, "Live"), row.lacks == "" && !row.plain:
		w.isLive()
	}
	if row.lacks == "Live" {
		w.stays()
	}
	text := eval[string](w, `document.body.innerText`)
	for says := range strings.SplitSeq(row.says, "|") {
		if !strings.Contains(text, says) {
			w.t.Errorf("it does not say %q:\n%s", says, text)
		}
	}
	if row.lacks != "" && strings.Contains(text, row.lacks) {
		w.t.Errorf("it says %q:\n%s", row.lacks, text)
	}
}

// place is a row's path on this node.
func (n *testNode) place(path string) string {
	return strings.NewReplacer("{invoice}", n.invoice, "{webhook}", n.webhook, "{elsewhere}",
		strings.Replace(n.url, "127.0.0.1", "quotad.localhost", 1)).Replace(path)
}

// TestPages opens each page and state once: the page shows what it must, can be used by everybody, is
// light, and no script of it fails. One page of each layout is looked at in all views and by Tab.
func TestPages(t *testing.T) {
	t.Parallel()
	n := pagesWorld(t, "1h")
	axe, w := axeSource(t), openWindow(t, n)
	for _, row := range pageRows() {
		t.Run(row.name, func(t *testing.T) {
			w.t = t
			w.examine(&row, axe)
			w.reports(&row)
			if row.whole {
				w.looksAround(&row)
			}
			if strings.HasPrefix(row.path, "/") && row.before == nil {
				if weight := w.weight(n.place(row.path)); weight > maxPage {
					t.Errorf("it has %d bytes", weight)
				}
			}
		})
	}
	t.Run("without script", func(t *testing.T) { worksWithoutScript(t, w) })
}

// TestMorePages checks the pages and states in all other views, and walks through each by Tab. Two
// browsers share the rows, because one browser leaves a processor idle.
func TestMorePages(t *testing.T) {
	t.Parallel()
	axe := axeSource(t)
	for half := range 2 {
		t.Run(fmt.Sprintf("half %d", half+1), func(t *testing.T) {
			t.Parallel()
			w := openWindow(t, pagesWorld(t, "1h"))
			for i, row := range pageRows() {
				if row.whole || i%2 != half {
					continue
				}
				t.Run(row.name, func(t *testing.T) {
					w.t = t
					w.examine(&row, axe)
					w.looksAround(&row)
				})
			}
		})
	}
}

// worksWithoutScript opens a link by its button, and goes through pages by their forms.
func worksWithoutScript(t *testing.T, w *window) {
	w.t = t
	call(w, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	defer call(w, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})
	says := func(what string) {
		t.Helper()
		w.settles(what, fmt.Sprintf(`(location.pathname + location.search + " " + document.body.innerText).includes(%q)`, what))
	}
	press := func(button string) { t.Helper(); eval[int](w, `document.querySelector("`+button+`").click();0`) }
	w.as("")
	w.look(390, "light", w.node.link("acme"))
	says("Open your usage")
	press("main button")
	says("/portal ")
	says("As of ")
	script := w.node.browser().enter(w.node, "acme") // a page with script, of the same customer
	script.t = t
	_, lines := script.stream("/portal/live")
	beats(t, lines)
	if state := eval[string](w, liveState); state != "still" {
		t.Errorf("without script it is %s", state)
	}
	w.look(390, "light", "/portal/usage")
	eval[int](w, `document.getElementById("meter").value = "tokens";0`)
	press("noscript button")
	says("/portal/usage?meter=tokens")
	w.look(390, "light", "/playground")
	eval[int](w, `document.getElementById("limit").value = "50";0`)
	press("form[data-play] button.primary")
	says("where 50 were meant")
	press("[data-hit]")
	says("hits=0")
	w.as("admin")
	w.look(390, "light", "/admin")
	if !eval[bool](w, `document.querySelector("#nav a[href='/admin/plans']").checkVisibility()`) {
		t.Error("without script the menu does not open, and so it must not be folded")
	}
}
