package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// What can be wrong with any page.

// pageFaults is a function of JavaScript. Its argument is the page's width in pixels.
const pageFaults = `(width => {
  const all = [], tall = e => e.tagName + "." + (e.className.baseVal ?? e.className);
  const says = (what, e, more) => all.push(what + ": " + tall(e) + " " + e.textContent.trim().slice(0, 40) + " " + more);
  const root = document.documentElement, pen = document.createElement("canvas").getContext("2d");
  if (root.scrollWidth > width) says("too wide", root, root.scrollWidth);
  const ids = new Set();
  for (const e of document.querySelectorAll("[id]")) { // axe looks only at ids that labels and the like refer to
    if (ids.has(e.id)) says("an id that another element has, too", e, e.id);
    ids.add(e.id);
  }
  for (const e of document.querySelectorAll("body *")) {
    const r = e.getBoundingClientRect();
    if (r.width === 0 || e.closest("svg,.visually-hidden,.tip")) continue;
    if (r.right > width + 1 && !e.closest(".table,.tabs")) says("too wide", e, Math.round(r.right));
    if (e.matches(".field,.pair,.panel") && e.scrollWidth > e.clientWidth + 1) says("over its edge", e, e.scrollWidth - e.clientWidth);
    if (width <= 640 && e.matches(".table") && e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
      says("a table to be moved aside", e, e.scrollWidth - e.clientWidth);
    if (e.matches("select")) { // its arrow takes some 20 pixels
      const s = getComputedStyle(e);
      pen.font = s.font;
      const needs = pen.measureText(e.selectedOptions[0]?.text ?? "").width + parseFloat(s.paddingLeft) + parseFloat(s.paddingRight) + 16;
      if (e.checkVisibility() && needs > e.clientWidth + 1) says("cut", e, Math.round(needs - e.clientWidth));
    }
    // Names of any length end in an ellipsis there, and fields of forms can be scrolled.
    if (e.closest(".who,input,select,textarea") || !e.checkVisibility()) continue;
    const hides = way => ["hidden", "clip"].includes(getComputedStyle(e)[way]);
    if (hides("overflowX") && e.scrollWidth > e.clientWidth + 1) says("cut", e, e.scrollWidth);
    if (hides("overflowY") && e.scrollHeight > e.clientHeight + 1) says("cut", e, e.scrollHeight);
  }

  // Charts: text that another text or a bar covers, that leaves the panel, or that is faint. axe leaves
  // the contrast in SVG undecided.
  const meets = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = c => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3) };
  const light = c => { const [r, g, b] = c.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b };
  for (const chart of document.querySelectorAll(".chart")) {
    const drawn = [...chart.querySelectorAll("text")].map(e => [e, e.getBoundingClientRect()]).filter(([, r]) => r.width > 0);
    const bars = [...chart.querySelectorAll("rect.admitted,rect.refused")].map(e => e.getBoundingClientRect());
    const panel = chart.closest(".panel").getBoundingClientRect();
    drawn.forEach(([e, r], i) => {
      if (r.left < panel.left || r.right > panel.right) says("out of its panel", e, Math.round(r.right - panel.right));
      for (const [other, at] of drawn.slice(i + 1)) if (meets(r, at)) says("covered", e, "by " + other.textContent);
      if (bars.some(at => meets(r, at))) says("covered", e, "by a bar");
      let ground = e, seen = 1;
      for (let up = e; up; up = up.parentElement) seen *= getComputedStyle(up).opacity;
      while (ground && getComputedStyle(ground).backgroundColor === "rgba(0, 0, 0, 0)") ground = ground.parentElement;
      const below = rgb(getComputedStyle(ground ?? document.body).backgroundColor);
      const ink = rgb(getComputedStyle(e).fill).map((v, i) => v * seen + below[i] * (1 - seen));
      const a = light(ink), b = light(below), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
      if (ratio < 4.5) says("faint", e, ratio.toFixed(2));
    });
  }
  return all;
})`

// runAxe is a function of JavaScript. Its argument chooses between all rules and the rules whose outcome
// changes with the width or with the colour scheme.
const runAxe = `(all => axe.run(document, {resultTypes: ["violations"], ...all ? {rules: {"target-size": {enabled: true}}} :
  {runOnly: {type: "rule", values: ["color-contrast", "scrollable-region-focusable", "target-size"]}}}).then(r =>
  r.violations.map(v => "axe: " + v.id + ": " + v.nodes.map(n => n.target + " " + n.failureSummary).join(" | "))
    .concat(all && r.passes.length < 8 || r.passes.length + r.violations.length < 1 ? ["axe ran only " + r.passes.length + " rules"] : [])))`

// axeLooks reports whether axe looks at a page in a view. What is zoomed differs from what is narrow in its
// height only. The narrowest view has all that the style sheet does for narrow ones, and the widest has
// none of it; views between are looked at in the long form.
func (v pageView) axeLooks() bool {
	between := v.scheme == "light" && v.width > 320 && v.width < 1280
	return v.scale == 1 && (!between || longForm())
}

// allRules reports whether axe runs all rules in a view of a row. A narrow view of each layout is among
// the views, because menus are folded there.
func (v pageView) allRules(row *pageRow) bool {
	return v == usual || row.whole && v.scheme == usual.scheme
}

// faults are those of the open page in the view that it is looked at in.
func (w *window) faults(row *pageRow) (all []string) {
	w.t.Helper()
	all = append(all, eval[[]string](w, fmt.Sprintf("%s(%d)", pageFaults, w.shown.width))...)
	if w.shown.axeLooks() {
		all = append(all, eval[[]string](w, fmt.Sprintf("%s(%t)", runAxe, w.shown.allRules(row)))...)
	}
	for _, said := range w.console() {
		if row.loud && strings.Contains(said, "Failed to load resource: the server responded with a status of ") {
			continue
		}
		all = append(all, "console: "+said)
	}
	return all
}

// examine opens a row's page with axe, and with scripts allowed: scripts that did not run at the start
// do not run any more.
func (w *window) examine(row *pageRow, axe string) {
	w.t.Helper()
	w.open(row)
	if row.plain {
		call(w, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})
	}
	eval[int](w, axe)
}

// reports reports the faults of the open page in its view.
func (w *window) reports(row *pageRow) {
	w.t.Helper()
	for _, fault := range w.faults(row) {
		w.t.Errorf("%s: %s", w.shown, fault)
	}
}

// looksAround reports the faults of the open page in all views but the usual one, and what Tab does not
// reach in the usual one.
func (w *window) looksAround(row *pageRow) {
	w.t.Helper()
	for _, v := range otherViews() {
		w.view(v)
		w.reports(row)
	}
	w.view(usual)
	for _, fault := range w.untabbed() {
		w.t.Error(fault)
	}
}

// axeSource is axe-core. It is run by the browser's protocol, so that it needs nothing of the
// pages' policy.
func axeSource(t testing.TB) string {
	t.Helper()
	source, err := os.ReadFile("../../node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("%v: scripts/deps.sh npm installs it", err)
	}
	return string(source) + ";0"
}

// canTab is all that Tab has to reach. Of radio buttons it reaches the chosen one.
const canTab = `[...document.querySelectorAll("a[href],button,input:not([type=hidden]),select,textarea,summary,[tabindex='0']")].filter(e =>
  e.checkVisibility() && !e.disabled && e.tabIndex >= 0 && !e.closest("[inert]") && !(e.type === "radio" && !e.checked && e.form.querySelector("input[name='" + e.name + "']:checked")))`

const noteFocus = `(() => {
  window.met = new Set();
  window.unseen = [];
  const shows = e => e === document.body || getComputedStyle(e).outlineStyle !== "none", shown = new Set();
  addEventListener("focusin", e => { met.add(e.target); if (shows(e.target)) shown.add(e.target); });
  addEventListener("keyup", () => { // a busy browser knows only then that a key has moved the focus
    const at = document.activeElement;
    if (!shown.has(at) && !shows(at)) unseen.push("no outline: " + at.outerHTML.slice(0, 80));
  });
  document.activeElement.blur();
  return ` + canTab + `.length;
})()`

// untabbed is what Tab does not reach on the open page, or what does not show that it has the focus.
func (w *window) untabbed() []string {
	w.t.Helper()
	presses := make([]chromedp.Action[chromedp.Void], eval[int](w, noteFocus)+12)
	for i := range presses {
		presses[i] = chromedp.KeyEvent("\t")
	}
	w.do("Tab", presses...)
	return eval[[]string](w, `unseen.concat(`+canTab+`.filter(e => !met.has(e)).map(e => "not reached by Tab: " + e.outerHTML.slice(0, 80)))`)
}

// maxPage bounds a page, as it is sent to browsers that have the assets, in bytes.
const maxPage = 15_000

// weight is how many bytes a page takes.
func (w *window) weight(path string) int {
	w.t.Helper()
	b := w.browser()
	return len(b.send("GET", path, nil, "Accept-Encoding: gzip").text)
}

// browser is one without a window, with the same session.
func (w *window) browser() *browser {
	w.t.Helper()
	b := w.node.browser()
	b.t = w.t
	address, err := url.Parse(w.node.url)
	if err != nil {
		w.t.Fatal(err)
	}
	var cookies []*http.Cookie
	for _, c := range w.cookies {
		cookies = append(cookies, &http.Cookie{Name: c.Name, Value: c.Value, Path: "/"})
	}
	b.client.Jar.SetCookies(address, cookies)
	return b
}
