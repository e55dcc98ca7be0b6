package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"

	"quotad/internal/testkit"
)

// What the limits lead to follows them: the sentence on top, and what the period costs.
func TestOutlookAndCostAreLive(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	n.setUp(fresh)
	n.do("PUT", "/v1/plans/basic", `{"name":"Plan","currency":"USD","interval":"month","base_price_minor":1000,"limits":[`+fresh+`],
		"prices":[{"meter":"requests","model":"per_unit","unit_price":"0.01"}]}`, "If-Match: *").is(201)
	n.do("PUT", "/v1/customers/new", `{"name":"New","plan":"basic","timezone":"UTC"}`).is(201)
	w := openWindow(t, n)
	w.as("new")
	w.look(1280, "light", "/portal")
	w.isLive()
	shows := func(what, selector, text string) {
		t.Helper()
		w.until(what, fmt.Sprintf(`document.querySelector(%q).textContent.includes(%q)`, selector, text))
	}
	shows("the base price", "#cost .money", "$10.00")
	n.do("POST", "/v1/hits", `{"customer":"new","meter":"requests","cost":5000}`).is(200)
	shows("the cost of the hit", "#cost .money", "$60.00")
	shows("its line", "#cost tbody", "5,000 used")
	shows("what is used up", "#outlook", "There are no requests left until")
	n.do("POST", "/v1/customers/new/charges", `{"description":"Setup","amount_minor":500,"currency":"USD","id":"s"}`).is(201)
	n.do("POST", "/v1/refunds", `{"customer":"new","meter":"requests","cost":1000,"id":"r"}`).is(200)
	shows("the cost after a charge and a refund", "#cost .money", "$55.00")
	w.until("the outlook without a limit that is used up", `!document.querySelector("#outlook").textContent.includes("no requests left")`)
	if left := eval[string](w, fmt.Sprintf(leftOf, "hourly")); left != "1,000" {
		t.Errorf("%s are left", left)
	}
	if said := w.console(); said != nil {
		t.Error(said)
	}
}

// However many hits there are, the cost is sent every eight seconds at most; and not at all while
// nothing changes.
func TestCostIsSentSeldom(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	n.setUp()
	n.do("PUT", "/v1/plans/basic", `{"name":"Plan","currency":"USD","interval":"month","prices":[{"meter":"requests","model":"per_unit","unit_price":"0.01"}]}`,
		"If-Match: *").is(201)
	n.do("PUT", "/v1/customers/new", `{"name":"New","plan":"basic","timezone":"UTC"}`).is(201)
	_, lines := n.browser().enter(n, "new").stream("/portal/live")
	limits, costs, beaten := 0, 0, 0
	// goesOn reads the stream until over says so, which is asked ten times a second.
	goesOn := func(over func() bool) {
		t.Helper()
		every := time.NewTicker(100 * time.Millisecond)
		defer every.Stop()
		late := time.After(testkit.Patience)
		for {
			select {
			case <-late:
				t.Fatalf("%d times the limits were sent, %d times the cost, and no more comes", limits, costs)
			case <-every.C:
				if over() {
					return
				}
			case line, more := <-lines:
				if !more {
					t.Fatal("the stream ended")
				}
				limits += strings.Count(line, `id="limits"`)
				costs += strings.Count(line, `hx-target="#cost"`)
				beaten += strings.Count(line, "event: at")
			}
		}
	}
	// rests waits until the stream has had six beats in a row with nothing between them, which takes longer
	// than the cost is held back.
	rests := func() {
		t.Helper()
		before, from := limits+costs, beaten
		goesOn(func() bool {
			if limits+costs != before {
				before, from = limits+costs, beaten
			}
			return beaten-from >= 6
		})
	}
	rests()
	if costs != 1 {
		t.Errorf("at the start the cost was sent %d times", costs)
	}
	limits, costs = 0, 0
	began := time.Now()
	goesOn(func() bool {
		n.do("POST", "/v1/hits", `{"customer":"new","meter":"requests"}`).is(200)
		return costs >= 3
	})
	// All were sent since then, whenever they were read.
	if most := 1 + int(time.Since(began)/(8*time.Second)); costs > most {
		t.Errorf("the cost was sent %d times, at most %d were due; the limits %d times", costs, most, limits)
	}
	rests() // while nothing changes
}

// hideFirst makes the browser say of each new page that it is hidden, until shown is called, and
// notes what the page fetches. Headless tabs are never hidden by themselves.
const hideFirst = `(() => {
  let hidden = true;
  Object.defineProperty(Document.prototype, "hidden", {get: () => hidden});
  Object.defineProperty(Document.prototype, "visibilityState", {get: () => hidden ? "hidden" : "visible"});
  window.turn = value => { hidden = value; document.dispatchEvent(new Event("visibilitychange")); return 0 };
  window.asked = [];
  const fetched = window.fetch;
  window.fetch = (to, more) => { asked.push(String(to.url ?? to)); return fetched(to, more) };
})()`

// A tab that is opened hidden holds no stream until it is shown, and none when it is hidden again.
func TestHiddenTabsHoldNoStream(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(fresh)
	w := openWindow(t, n)
	asked(w, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: hideFirst})
	w.as("acme")
	w.look(1280, "light", "/portal")
	w.passes(2 * time.Second) // in which a tab that is seen goes live
	const state = `document.querySelector("[data-live-sign]").dataset.state`
	if asked := eval[[]string](w, `asked`); len(asked) > 0 || eval[string](w, state) != "still" {
		t.Errorf("hidden, it asks for %q", asked)
	}
	n.hit(7).is(200)
	eval[int](w, `turn(false)`)
	w.isLive()
	w.until("the hit", fmt.Sprintf(leftOf, "hourly")+` === "4,993"`)
	eval[int](w, `turn(true)`)
	w.passes(time.Second)
	n.hit(7).is(200)
	w.passes(2 * time.Second)
	if left := eval[string](w, fmt.Sprintf(leftOf, "hourly")); left != "4,993" {
		t.Errorf("hidden again, it hears of a hit: %s left", left)
	}
	eval[int](w, `turn(false)`)
	w.until("the other hit", fmt.Sprintf(leftOf, "hourly")+` === "4,986"`)
	if asked := eval[[]string](w, `asked`); len(asked) != 2 {
		t.Errorf("it asked %d times: %q", len(asked), asked)
	}
	if said := w.console(); said != nil {
		t.Error(said)
	}
}
