package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"quotad/internal/testkit"
)

const leftOf = `document.querySelector("#limit-%s .left strong").textContent`

// TestLivePages: what is open in a browser goes live, follows hits of all nodes, and outlasts a restart.
func TestLivePages(t *testing.T) {
	t.Parallel()
	w, other := liveWindow(t)
	for _, part := range []struct {
		name string
		do   func(t *testing.T, w *window, other *testNode)
	}{
		{"within a second", hitsShow},
		{"each load", func(t *testing.T, w *window, _ *testNode) { loadsGoLive(t, w, 10) }},
		{"paused", pausedStands},
		{"countdowns", countdownsCount},
		{"hidden", hiddenHoldsNone},
		{"restart", outlastsRestart},
	} {
		t.Run(part.name, func(t *testing.T) {
			w.t = t
			w.as("acme")
			w.look(1280, "light", "/portal")
			w.isLive()
			w.console()
			part.do(t, w, other)
		})
	}
}

// TestMoreLiveLoads loads a live page more often than TestLivePages does.
func TestMoreLiveLoads(t *testing.T) {
	t.Parallel()
	loads := 20
	if longForm() {
		loads = 290
	}
	w, _ := liveWindow(t)
	w.as("acme")
	loadsGoLive(t, w, loads)
}

// liveWindow opens a browser for a node, and starts another node of the same database.
func liveWindow(t *testing.T) (w *window, other *testNode) {
	t.Helper()
	n := start(t, "")
	other = start(t, n.databaseURL)
	n.setUp(fresh)
	return openWindow(t, n), other
}

// hitsShow: a hit shows on an open page, also one that another node decided, and within a second.
func hitsShow(t *testing.T, w *window, other *testNode) {
	left := fmt.Sprintf(leftOf, "hourly")
	for _, from := range []*testNode{w.node, other} {
		quickest := time.Hour // of some: a busy machine may be slow now and then
		for try := 0; try < 10 && (try < 2 || quickest > time.Second); try++ {
			w.passes(1200 * time.Millisecond) // so that no change of before is still on its way
			now := from.hit(1).is(200).num("limits.0.remaining")
			began := time.Now()
			w.until("the number", left+` === "`+grouped(int(now))+`"`)
			quickest = min(quickest, time.Since(began))
		}
		testkit.AtMost(t, "the quickest way of a hit to the page", quickest, time.Second)
	}
	if said := w.console(); said != nil {
		t.Error(said)
	}
}

// loadsGoLive: each of many loads goes live, however its scripts arrive.
func loadsGoLive(t *testing.T, w *window, loads int) {
	for i := range loads {
		w.do("load", chromedp.Navigate(w.node.url+"/portal"))
		w.until(fmt.Sprint("load ", i), liveState+` === "live"`)
	}
	if said := w.console(); said != nil {
		t.Error(said)
	}
}

// pausedStands: a paused page does not change.
func pausedStands(t *testing.T, w *window, other *testNode) {
	left := eval[string](w, fmt.Sprintf(leftOf, "hourly"))
	pause(w)
	other.hit(7).is(200)
	_, lines := w.browser().stream("/portal/live")
	beats(t, lines) // others hear of it
	w.passes(2500 * time.Millisecond)
	if now := eval[string](w, fmt.Sprintf(leftOf, "hourly")); now != left || eval[string](w, liveState) != "paused" {
		t.Errorf("paused, it goes on from %s to %s", left, now)
	}
}

// countdownsCount: on a test clock, which stands, countdowns stand, too.
func countdownsCount(t *testing.T, w *window, _ *testNode) {
	w.node.do("PUT", "/v1/test-clocks/still", `{"now":"2026-03-29T00:59:30Z"}`).is(201)
	w.node.do("PUT", "/v1/customers/clocked", `{"name":"Clocked","plan":"basic","test_clock":"still"}`).is(201)
	w.node.do("POST", "/v1/hits", hitOf("clocked", "requests", "")).is(200)
	w.node.hit(1).is(200)
	for who, moves := range map[string]bool{"acme": true, "clocked": false} {
		w.as(who)
		w.look(1280, "light", "/portal")
		w.isLive()
		const counted = `document.querySelector("time[data-countdown]").textContent`
		before := eval[string](w, counted)
		if moves {
			w.until("the countdown to move", fmt.Sprintf(`%s !== %q`, counted, before))
			continue
		}
		w.passes(2500 * time.Millisecond)
		if after := eval[string](w, counted); after != before {
			t.Errorf("the countdown of %s goes from %s to %s", who, before, after)
		}
	}
}

// hiddenHoldsNone: a hidden tab holds no stream, and goes live when it is shown again.
func hiddenHoldsNone(t *testing.T, w *window, _ *testNode) {
	const turn = `(() => { Object.defineProperty(document, "hidden", {value: %t, configurable: true}); return document.dispatchEvent(new Event("visibilitychange")) })()`
	eval[bool](w, fmt.Sprintf(turn, true))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	open := 0
	testkit.Eventually(t, "all streams of the session are free", func() bool {
		first, _ := w.browser().streamUntil(ctx, "/portal/live")
		if first != "event: full" {
			open++
		}
		return open == 4
	})
	leave()
	eval[bool](w, fmt.Sprintf(turn, false))
	left := 5000 - w.node.hit(1).is(200).num("limits.0.used")
	w.settles("the page to go on", liveState+` === "live" && `+fmt.Sprintf(leftOf, "hourly")+` === "`+grouped(int(left))+`"`)
}

// outlastsRestart: a page of a node that has stopped says as of when it is, and stays until the node
// is there again.
func outlastsRestart(t *testing.T, w *window, _ *testNode) {
	const hasten = `{ const later = setTimeout; window.setTimeout = (f, ms, ...more) => later(f, ms === 30000 ? 3000 : ms, ...more) }`
	asked(w, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: hasten})
	w.look(1280, "light", "/portal")
	w.isLive()
	address := strings.TrimPrefix(w.node.url, "http://")
	if err := w.node.stop(); err != nil {
		t.Fatal(err)
	}
	w.until("the sign that it is old", liveState+` === "stale" && document.querySelector("[data-text]").textContent.startsWith("As of ")`)
	w.passes(3500 * time.Millisecond) // it would have been loaded again
	if got := eval[string](w, liveState); got != "stale" {
		t.Errorf("it is %s", got)
	}
	again := start(w.node.t, w.node.databaseURL, "--listen="+address)
	left := 5000 - again.hit(3).is(200).num("limits.0.used")
	w.settles("what is there now", liveState+` === "live" && `+fmt.Sprintf(leftOf, "hourly")+` === "`+grouped(int(left))+`"`)
}

// stream reads a stream in the background; the channel is closed when it ends.
func (b *browser) stream(path string) (first string, rest <-chan string) {
	b.t.Helper()
	return b.streamUntil(b.t.Context(), path)
}

func (b *browser) streamUntil(ctx context.Context, path string) (first string, rest <-chan string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", b.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	client := *b.client
	client.Timeout = 0 // a stream lasts
	response, err := client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		defer response.Body.Close()
		scan := bufio.NewScanner(response.Body)
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			select {
			case lines <- scan.Text():
			default:
			}
		}
	}()
	return <-lines, lines
}

// beats waits until a stream has had three more beats. The node sends one every two seconds, and one with
// a part that it sends.
func beats(t testing.TB, lines <-chan string) {
	t.Helper()
	over := time.After(testkit.Patience)
	for heard := 0; heard < 3; {
		select {
		case line, more := <-lines:
			if !more {
				t.Fatal("the stream ends")
			}
			if line == "event: at" {
				heard++
			}
		case <-over:
			t.Fatal("the stream has no beat")
		}
	}
}

// ends waits until a stream has ended, and returns its last event.
func ends(t testing.TB, rest <-chan string) (last string) {
	t.Helper()
	over := time.After(testkit.Patience)
	for {
		select {
		case line, more := <-rest:
			if !more {
				return last
			}
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				last = name
			}
		case <-over:
			t.Fatal("the stream does not end")
		}
	}
}

// A session has four streams at most; the node ends them when it stops, and they end with the
// session.
func TestStreamsEnd(t *testing.T) {
	n := start(t, "")
	n.setUp(hourly)
	b := n.browser().enter(n, "acme")
	var open []<-chan string
	for range 4 {
		first, rest := b.stream("/portal/live")
		if first == "event: full" {
			t.Fatal("too few streams")
		}
		open = append(open, rest)
	}
	if first, rest := b.stream("/portal/live"); first != "event: full" || ends(t, rest) != "" {
		t.Errorf("the fifth says %q", first)
	}
	if first, _ := n.browser().stream("/portal/live"); first != "event: over" {
		t.Errorf("without a session: %q", first)
	}
	other := n.browser().enter(n, "acme")
	_, left := other.stream("/portal/live")
	beats(t, left) // the first comes with the first part
	b.post("/portal/leave", url.Values{}).is(200)
	for _, rest := range open {
		if last := ends(t, rest); last != "over" {
			t.Errorf("it ends with %q", last)
		}
	}
	began := time.Now()
	if err := n.stop(); err != nil {
		t.Fatal(err)
	}
	ends(t, left)
	if strings.Contains(n.log.String(), "did not end in time") {
		t.Errorf("streams held up the end:\n%s", n.log)
	}
	testkit.AtMost(t, "the node's end beside a stream", time.Since(began), 5*time.Second)
}
