package main

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// shadowPlan has shadows beside a hard limit: one that is used up, one of 0, and one per attribute.
func shadowPlan() string {
	shadow := func(name, rest string) string {
		return `{"name":"` + name + `","meter":"requests","algorithm":"fixed_window","mode":"shadow","window":"3650d",` + rest + `}`
	}
	return planOf(fixed("hard", 100), shadow("watched", `"limit":10`), shadow("nothing", `"limit":0`), shadow("each", `"limit":5,"per":"user"`))
}

// TestShadowsRefuseNothing: wherever a shadow is shown, it is marked, and nothing says that it refuses.
func TestShadowsRefuseNothing(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.do("PUT", "/v1/meters/requests", `{"unit":"request"}`).is(201)
	n.do("PUT", "/v1/plans/basic", shadowPlan()).is(201)
	n.do("PUT", "/v1/customers/acme", onPlan).is(201)
	n.do("PUT", "/v1/plans/basic/draft", strings.Replace(shadowPlan(), `"limit":10,`, `"limit":20,`, 1)).is(201)
	n.do("PUT", "/v1/customers/acme/overrides/watched", `{"limit":12}`).is(201)
	n.hit(12).is(200)
	n.hit(70).is(200)
	n.hit(30).is(429)
	w := openWindow(t, n)
	w.as("admin")
	w.look(1280, "light", "/admin/customers/acme")
	text := func(selector string) string {
		t.Helper()
		return eval[string](w, `document.querySelector("`+selector+`").innerText`)
	}
	for card, chip := range map[string]string{"watched": "Shadow, used up", "nothing": "Shadow", "each": "Shadow"} {
		if got := text("#limit-" + card + " .chip"); got != chip {
			t.Errorf("the card of the shadow %s is marked %q", card, got)
		}
		if got := text("#limit-" + card); strings.Contains(strings.ToLower(got), "refused") || strings.Contains(got, "Closed") {
			t.Errorf("the card of the shadow %s says:\n%s", card, got)
		}
	}
	if got := text("#limit-hard"); strings.Contains(got, "Shadow") || !strings.Contains(got, "refused") {
		t.Errorf("the card of the hard limit says:\n%s", got)
	}
	if got := text("main table"); !strings.Contains(got, "watched") || !strings.Contains(got, "Shadow") {
		t.Errorf("the overrides say:\n%s", got)
	}
	if got := eval[string](w, `document.querySelector("#override-name").textContent`); strings.Count(got, "a shadow") != 3 {
		t.Errorf("one may override:\n%s", got)
	}

	w.look(1280, "light", "/admin/plans/basic/play?meter=requests&window=1h&pattern=steady&steady=90&burst=0&cost=2&windows=1&compare=1")
	for _, id := range []string{"draft-1", "draft-2", "force-1", "force-2"} {
		article := `[aria-labelledby=h-` + id + `]`
		got := text(article)
		if !strings.Contains(got, "shadow") || !strings.Contains(got, "would refuse") || strings.Contains(got, "refused") {
			t.Errorf("the play of a shadow says:\n%s", got)
		}
		if marks := eval[int](w, `document.querySelectorAll("`+article+` rect.refused").length`); marks > 0 {
			t.Errorf("the play of a shadow shows %d refusals", marks)
		}
	}
	for _, id := range []string{"draft-0", "force-0"} {
		if got := text(`[aria-labelledby=h-` + id + `]`); !strings.Contains(got, "40 refused") || !strings.Contains(got, "Limit hard is used up.") {
			t.Errorf("the play of the hard limit says:\n%s", got)
		}
	}
	call(w, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{
		Name:  "prefers-reduced-motion",
		Value: "no-preference",
	}}})
	w.happens("the plays to move", `parseFloat(document.querySelector(".veil").getAttribute("width")) > 0`,
		func() { eval[int](w, `document.querySelector("form[data-play] button.primary").click();0`) })
	w.until("the plays to end", `[...document.querySelectorAll(".veil")].every(veil => parseFloat(veil.getAttribute("width")) === 0)`)
	rows := text("#past table")
	for row := range strings.SplitSeq(rows, "\n") {
		if shadow := strings.Contains(row, "watched") || strings.Contains(row, "nothing"); shadow == strings.HasPrefix(row, "Refused by") &&
			(shadow || strings.Contains(row, "hard")) {
			t.Errorf("the comparison says %q", row)
		}
	}

	w.as("acme")
	for _, path := range []string{"/portal", "/portal/refusals", "/portal/plan", "/portal/usage"} {
		w.look(1280, "light", path)
		w.isLive()
		if got := text("main"); strings.Contains(got, "watched") || strings.Contains(got, "hadow") {
			t.Errorf("%s shows a shadow:\n%s", path, got)
		}
	}
	for _, said := range w.console() {
		t.Error(said)
	}
}
