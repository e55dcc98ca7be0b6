package main

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// With script a change of the form shows at once and is in the address, hits come as they play,
// what is wrong stands beside its field, and the Hit button hits now.
func TestPlaygroundInABrowser(t *testing.T) {
	n := start(t, "")
	w := openWindow(t, n)
	w.look(1280, "light", "/playground")
	asked(w, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{
		Name:  "prefers-reduced-motion",
		Value: "no-preference",
	}}})
	typed := func(name, value string) {
		t.Helper()
		eval[bool](w, `(() => { const e = document.querySelector("form[data-play]").elements["`+name+`"]; e.value = "`+value+`"; return e.dispatchEvent(new Event("input", {bubbles: true})) })()`)
	}
	typed("limit", "50")
	w.until("the new limit", `document.querySelector(".verdict").textContent.includes("where 50 were meant") && location.search.includes("limit=50&")`)

	w.happens("the play to begin", `document.querySelector("[data-admitted]").textContent === "0" || parseFloat(document.querySelector(".veil").getAttribute("width")) > 0`,
		func() { eval[int](w, `document.querySelector("form[data-play] button.primary").click();0`) })
	w.until("the play to end", `parseFloat(document.querySelector(".veil").getAttribute("width")) === 0 && document.querySelector("[data-admitted]").textContent !== "0"`)
	shown := eval[string](w, `[...document.querySelectorAll("[data-admitted],[data-refused]")].map(e => e.textContent).join(" ")`)
	w.do("reload", chromedp.Reload())
	if again := eval[string](w, `[...document.querySelectorAll("[data-admitted],[data-refused]")].map(e => e.textContent).join(" ")`); again != shown {
		t.Errorf("the play ended with %s, the page says %s", shown, again)
	}

	typed("limit", "-1")
	w.until("what is wrong", `document.getElementById("wrong-limit").textContent.includes("whole number") && document.getElementById("limit").getAttribute("aria-invalid") === "true"`)
	typed("limit", "2")
	w.until("it is right again", `document.getElementById("wrong-limit").hidden && !document.getElementById("limit").hasAttribute("aria-invalid")`)

	for range 3 {
		eval[bool](w, `document.querySelector("[data-hit]").click() || true`)
	}
	w.until("the third hit to be refused",
		`document.querySelector(".said")?.textContent.includes("is refused, and would pass at") && document.querySelector("#hits").value.split(" ").length === 3`)
	if address := eval[string](w, `location.search`); !strings.Contains(address, "pattern=own") || !strings.Contains(address, "hits=0.000+") {
		t.Errorf("the address is %s", address)
	}
	for _, said := range w.console() {
		if !strings.Contains(said, "status of 422") {
			t.Error(said)
		}
	}
}

// planRows are the rows of the playground and of the plan editor.
func planRows() []pageRow {
	return []pageRow{
		{
			name: "playground, GitHub", path: "/playground?limit=5000&window=1h&algorithm=fixed_window&pattern=edge&windows=3&steady=300&burst=3400",
			says: "7,100 units through",
		},
		{name: "playground, own hits", path: "/playground?limit=3&window=10s&pattern=own&hits=0+1+2+2.5+9+11x3", says: "is refused"},
		{name: "playground, wrong", path: "/playground?limit=-5&window=soon&steady=999999&pattern=own&hits=never", says: "Write a whole number", loud: true},
		{
			name: "playground, all wrong",
			path: "/playground?limit=x&window=y&capacity=z&cost=0&steady=w&burst=v&windows=99&pattern=own&hits=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa&algorithm=none",
			says: "of at most 15 digits", loud: true,
		},
		{name: "plan editor", path: "/admin/plans/pro", as: "admin", says: "draft of version 2"},
		{name: "plan editor, problems", path: "/admin/plans/tiered", as: "admin", says: "keep this draft from being published"},
		{name: "plan editor, JSON", path: "/admin/plans/pro?json", as: "admin", says: "The plan as JSON"},
		{name: "plan editor, new", path: "/admin/plans/new", as: "admin", says: "Not published yet"},
		{name: "plan would do", path: "/admin/plans/pro/play?meter=requests", as: "admin", says: "By what is in force"},
		{name: "plan against the past", path: "/admin/plans/pro/play?compare=1", as: "admin", says: "What this can tell"},
		{name: "plan changes", path: "/admin/plans/pro/publish", as: "admin", says: "what customers have used stays used"},
		{name: "plan overtaken", path: "/admin/plans/many/publish", as: "admin", says: "What somebody else published"},
		{name: "plan versions", path: "/admin/plans/many/versions", as: "admin", says: "Version 2"},
	}
}

// drafts stores a good draft, one with problems, and one of a plan that somebody else has published
// since. limits are those of the plan many.
func (n *testNode) drafts(limits []string) {
	n.t.Helper()
	n.do("PUT", "/v1/plans/pro/draft", strings.NewReplacer(`"limit":5000`, `"limit":4000`, `"included":10000000`,
		`"included":5000000`).Replace(northwindPlan)).is(201)
	n.do("PUT", "/v1/plans/tiered/draft",
		`{"name":"Tiered","currency":"USD","interval":"year","limits":[{"name":"a limit whose name says a lot","meter":"nothing","algorithm":"fixed_window","window":"soon"}],"prices":[{"meter":"requests","model":"package"}]}`).is(201)
	n.do("PUT", "/v1/plans/many/draft", planOf(limits[:19]...)).is(201)
	n.do("PUT", "/v1/plans/many", planOf(limits[1:]...), `If-Match: "1"`).is(201)
}
