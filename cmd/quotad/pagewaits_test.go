package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"quotad/internal/testkit"
)

// How tests wait for an open page.

// onPage returns a context that ends when a script of the open page throws, with what was thrown as its cause.
func (w *window) onPage() context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.page
}

// until waits until an expression is true. It gives up when a script of the page throws: a script that has
// ended will not do what the test waits for.
func (w *window) until(what, expression string) {
	w.t.Helper()
	ctx, done := w.step()
	defer done()
	waiting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	page := w.onPage()
	defer context.AfterFunc(page, giveUp)()
	poll := chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(testkit.Patience))
	_, err := chromedp.Run(waiting, poll)
	for err != nil && strings.Contains(err.Error(), "Cannot find context") { // the browser replaced the document during the call
		_, err = chromedp.Run(waiting, poll)
	}
	if threw := context.Cause(page); err != nil && threw != nil {
		if is, evalErr := chromedp.Run(ctx, chromedp.Evaluate[bool](`!!(`+expression+`)`)); evalErr == nil && is {
			return // the script had done that before
		}
		err = threw
	}
	if err != nil {
		w.t.Fatalf("waited in vain for %s: %v; console: %q", what, err, w.console())
	}
}

// passes lets time pass by the page's own timers. Those that were to fire meanwhile have fired then.
func (w *window) passes(d time.Duration) {
	w.t.Helper()
	eval[bool](w, fmt.Sprintf(`new Promise(done => setTimeout(() => done(true), %d))`, d.Milliseconds()))
}

// happens does something, and waits until an expression is true, or was: what passes soon may be over
// before a slow browser evaluates the expression.
func (w *window) happens(what, expression string, do func()) {
	w.t.Helper()
	eval[int](w, `(() => {
		window.happened = false;
		const look = () => { window.happened ||= !!(`+expression+`) };
		new MutationObserver(look).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
		return 0;
	})()`)
	do()
	w.until(what, `window.happened`)
}

// settles is until for a page that may be loaded again meanwhile.
func (w *window) settles(what, expression string) {
	w.t.Helper()
	testkit.Eventually(w.t, what, func() bool {
		ctx, done := w.step()
		defer done()
		threw := context.Cause(w.onPage()) // read before the expression is evaluated
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		if err == nil && !is && threw != nil {
			w.t.Fatalf("waited in vain for %s: %v", what, threw)
		}
		return err == nil && is
	})
}
