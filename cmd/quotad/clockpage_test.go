package main

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"

	"quotad/internal/testkit"
)

const monthly = `{"name":"monthly","meter":"requests","algorithm":"fixed_window","limit":50,"window":"calendar_month"}`

const countdown = `document.querySelector("time[data-countdown]").textContent`

// TestPagesGoByTheirClock: countdowns and instants of a page are those of the customer's clock. A test
// clock stands, and an open page follows when it is set.
func TestPagesGoByTheirClock(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(monthly, hourly)
	w := openWindow(t, n)
	n.do("PUT", "/v1/test-clocks/spring", `{"now":"2026-03-10T12:30:07Z"}`).is(201)
	n.do("PUT", "/v1/customers/clocked", `{"name":"Clocked","plan":"basic","timezone":"Asia/Kathmandu","test_clock":"spring"}`).is(201)
	n.do("POST", "/v1/hits", hitOf("clocked", "requests", `,"cost":45`)).is(200)
	for _, p := range []struct{ as, path string }{{"clocked", "/portal"}, {"admin", "/admin/customers/clocked"}} {
		w.as(p.as)
		w.look(1280, "light", p.path)
		w.isLive()
		w.passes(1200 * time.Millisecond) // the script has counted again
		if got := eval[string](w, countdown); got != "21 d 5 h" {
			t.Errorf("%s: 21 days and 5 hours are left by the customer's clock, and the page says %s", p.path, got)
		}
		if text := eval[string](w, `document.body.innerText`); !strings.Contains(text, "Test clock spring") || !strings.Contains(text, "18:15:07") {
			t.Errorf("%s does not say what its clock shows:\n%s", p.path, text)
		}
	}

	w.as("clocked")
	w.look(1280, "light", "/portal")
	w.isLive()
	n.do("PUT", "/v1/test-clocks/spring", `{"now":"2026-03-30T18:00:00Z"}`).is(200)
	w.until("the countdown to follow the clock", countdown+` === "1 d 0 h"`)
	w.passes(2500 * time.Millisecond) // a beat
	if got := eval[string](w, countdown); got != "1 d 0 h" {
		t.Errorf("the clock stands, and the countdown goes on to %s", got)
	}

	// The browser's own clock may be wrong.
	const wrong = `{ const Right = Date, wrong = Right.parse("2001-02-03T04:05:06Z"); Right.now = () => wrong;
		window.Date = class extends Right { constructor(...a) { if (a.length) super(...a); else super(wrong) } } }`
	asked(w, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: wrong})
	awayFromHoursEnd(t)
	n.hit(4000).is(429)
	n.hit(40).is(200)
	leftNow := func() time.Duration {
		quota := n.do("GET", "/v1/customers/acme/quota", "").is(200)
		return instantOf(t, quota.str("limits.1.reset_at")).Sub(instantOf(t, quota.str("at")))
	}
	w.as("acme")
	before := leftNow()
	w.look(1280, "light", "/portal")
	w.isLive()
	w.passes(1200 * time.Millisecond)
	got := eval[string](w, `document.querySelector("#limit-hourly time[data-countdown]").textContent`)
	after := leftNow()
	var minutes, seconds int
	if _, err := fmt.Sscanf(got, "%d:%d", &minutes, &seconds); err != nil {
		t.Fatalf("the countdown says %q", got)
	}
	if shown := time.Duration(minutes)*time.Minute + time.Duration(seconds)*time.Second; shown < after-time.Second || shown > before+time.Second {
		t.Errorf("%s were left and then %s, and the page says %s", before, after, got)
	}
}

func instantOf(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestPagesNameTheirZone: all times of a page are of one zone, which the page names: the customer's where
// it is about a customer, else UTC. So are those that are typed.
func TestPagesNameTheirZone(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=0s")
	n.setUp(monthly, `{"name":"trial","meter":"requests","algorithm":"fixed_window","limit":0,"window":"1h","mode":"shadow"}`)
	n.do("PUT", "/v1/test-clocks/spring", `{"now":"2026-02-28T18:15:00Z"}`).is(201)
	n.do("PUT", "/v1/customers/abroad",
		`{"name":"Abroad","plan":"basic","timezone":"Asia/Kathmandu","billing_anchor":"2026-03-01T00:00:00","test_clock":"spring"}`).is(201)
	n.do("POST", "/v1/customers/abroad/charges", `{"id":"one","description":"Set up","amount_minor":900,"currency":"USD"}`).is(201)
	n.do("PUT", "/v1/test-clocks/spring", `{"now":"2026-04-02T00:00:00Z"}`).is(200)
	testkit.Eventually(t, "March is billed", func() bool {
		list := n.do("GET", "/v1/customers/abroad/invoices", "").is(200)
		if list.at("items.0.id") == nil {
			return false
		}
		n.invoice = list.str("items.0.id")
		return true
	})
	b := n.signedIn(testAdminKey)
	named := regexp.MustCompile(`imes in ([^<]*)</span>`)
	here := "/admin/customers/abroad"
	for path, zone := range map[string]string{
		here: "Asia/Kathmandu (UTC+5:45)", here + "/billing": "Asia/Kathmandu (UTC+5:45)", here + "/usage": "Asia/Kathmandu (UTC+5:45)",
		here + "/settings":             "Asia/Kathmandu (UTC+5:45)",
		"/admin/invoices/" + n.invoice: "Asia/Kathmandu (UTC+5:45)", "/admin/invoices?customer=abroad&test_clock=any": "Asia/Kathmandu (UTC+5:45)",
		"/admin": "UTC", "/admin/customers": "UTC", "/admin/invoices": "UTC", "/admin/plans": "UTC", "/admin/plans/basic/versions": "UTC",
		"/admin/keys": "UTC", "/admin/audit": "UTC", "/admin/meters": "UTC",
	} {
		text := b.get(path).is(200).text
		got := named.FindAllStringSubmatch(text, -1)
		if len(got) != 1 || strings.ReplaceAll(got[0][1], "&#43;", "+") != zone {
			t.Errorf("%s says that its times are in %q, not %s", path, got, zone)
		}
		if !regexp.MustCompile(`As of \d\d:\d\d:\d\d`).MatchString(text) {
			t.Errorf("%s does not say when it was drawn", path)
		}
		if strings.Contains(text, "Kathmandu") && strings.Contains(text, ", UTC") {
			t.Errorf("%s has two zones", path)
		}
	}
	for _, path := range []string{"/admin/invoices/" + n.invoice, "/admin/invoices?customer=abroad&test_clock=any"} {
		b.get(path).says("1 – 31 March 2026")
	}

	typed := url.Values{"name": {"monthly"}, "limit": {"7"}, "expires_at": {"2027-01-31T12:00"}}
	b.get(here).says("Until, Asia/Kathmandu")
	b.post(here+"/overrides", typed).goes(here + "?done=saved")
	b.get(here).says("31 Jan 2027, 12:00")
	if at := n.do("GET", "/v1/customers/abroad/overrides", "").is(200).str("items.0.expires_at"); at != "2027-01-31T06:15:00Z" {
		t.Errorf("noon in Kathmandu is %s", at)
	}
}

// TestCardsKeepTheirPlaces: a stream changes what cards say, and not where they are.
func TestCardsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.do("PUT", "/v1/meters/others", `{"unit":"other"}`).is(201)
	n.setUp(fixed("first", 100), fixed("second", 1000), strings.Replace(fixed("third", 10), "requests", "others", 1))
	w := openWindow(t, n)
	n.hit(1).is(200)
	w.as("acme")
	w.look(1280, "light", "/portal")
	w.isLive()
	const order = `[...document.querySelectorAll("#limits > [id]")].map(e => e.id.replace("limit-", "")).join(" ")`
	const before, after = "first second third", "third first second"
	if got := eval[string](w, order); got != before {
		t.Fatalf("the cards are %s", got)
	}
	n.do("POST", "/v1/hits", hitOf("acme", "others", `,"cost":9`)).is(200)
	w.until("what is left", fmt.Sprintf(leftOf, "third")+` === "1"`)
	if got := eval[string](w, order); got != before {
		t.Errorf("while the page is open, the cards become %s", got)
	}
	pause(w)
	eval[int](w, `document.querySelector("[data-live-sign] button").click();0`)
	w.settles("the page to load itself again",
		`document.readyState === "complete" && `+liveState+` === "live" && performance.getEntriesByType("navigation")[0].type === "reload"`)
	if got := eval[string](w, order); got != before {
		t.Errorf("when the page loads itself again, the cards become %s", got)
	}
	w.look(1280, "light", "/portal")
	if got := eval[string](w, order); got != after {
		t.Errorf("opened again, the cards are %s", got)
	}
	drawn := eval[[]string](w, `[...document.querySelectorAll("section > header, section.cols > .panel > header")].map(e => e.innerText.replace(/\s+/g, " "))`)
	for _, part := range drawn {
		if live := strings.HasPrefix(part, "This period"); live == strings.Contains(part, "As of ") {
			t.Errorf("%q: what is not live says as of when it is", part)
		}
	}
	if len(drawn) != 3 {
		t.Errorf("the parts are %q", drawn)
	}
}
