package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
)

const (
	flight = `{"name":"flight","meter":"jobs","algorithm":"concurrency","limit":20,"ttl":"1h"}`
	ofUser = `{"name":"each","meter":"jobs","algorithm":"fixed_window","limit":50,"window":"3650d","per":"user"}`
	jobsAt = `{"customer":"acme","meter":"jobs","cost":%d,"ttl_ms":%d,"attributes":{"user":%q}}`
)

func (n *testNode) reserve(cost int, ttl time.Duration, user string) (id string) {
	n.t.Helper()
	return n.do("POST", "/v1/reservations", fmt.Sprintf(jobsAt, cost, ttl.Milliseconds(), user)).is(201).str("id")
}

// The card of a limit says what is in flight, and shows the reservations that end first.
func TestCardsShowOpenReservations(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.do("PUT", "/v1/meters/jobs", `{"unit":"job"}`).is(201)
	n.setUp(hourly, flight, ofUser)
	b := n.browser().enter(n, "acme")
	card := func(name, query string) string {
		t.Helper()
		text, there := between(b.get("/portal"+query).is(200).text, `id="limit-`+name+`"`, "</article>")
		if !there {
			t.Fatalf("there is no card of %s", name)
		}
		return text
	}
	says := func(card string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(card, w) {
				t.Errorf("it does not say %q:\n%s", w, card)
			}
		}
	}
	if idle := card("flight", ""); strings.Contains(idle, "Open reservations") || !strings.Contains(idle, "<dt>In flight</dt><dd>0</dd>") {
		t.Errorf("nothing is in flight:\n%s", idle)
	}
	if text := card("hourly", ""); strings.Contains(text, "In flight") {
		t.Errorf("another meter's:\n%s", text)
	}
	for i := range 7 {
		n.reserve(1, time.Duration(10+i)*time.Minute, "anna")
	}
	n.reserve(3, 9*time.Minute, "bob")
	ends := n.do("GET", "/v1/customers/acme/reservations?limit=1", "").is(200).str("items.0.expires_at")
	flying := card("flight", "")
	says(flying, "<dt>In flight</dt><dd>10</dd>", fmt.Sprintf(`3 jobs</span> <span>ends in <time datetime=%q data-countdown>`, ends), "1 job</span>",
		"<li>and 3 more jobs</li>")
	if rows := strings.Count(flying, "ends in"); rows != 5 {
		t.Errorf("%d reservations are shown", rows)
	}
	if first, second := strings.Index(flying, "3 jobs"), strings.Index(flying, "1 job<"); first > second {
		t.Error("those that end first are not first")
	}
	// A value's limit shows that value's.
	if text := card("each", ""); strings.Contains(text, "In flight") {
		t.Errorf("without a value:\n%s", text)
	}
	bobs := card("each", "?attr.user=bob")
	says(bobs, "<dt>In flight</dt><dd>3</dd>", "3 jobs</span>")
	if strings.Contains(bobs, "1 job<") || strings.Contains(bobs, "more") {
		t.Errorf("another value's:\n%s", bobs)
	}
	says(card("each", "?attr.user=anna"), "<dt>In flight</dt><dd>7</dd>", "<li>and more</li>")
	admin := n.signedIn(testAdminKey)
	staffs, _ := between(admin.get("/admin/customers/acme").is(200).text, `id="limit-flight"`, "</article>")
	says(staffs, "and 3 more jobs")
}

const openRows = `[...document.querySelectorAll("#limit-flight .open li")].map(e => e.textContent.trim().replace(/\s+/g, " ").replace(/ends in .*/, "")).join("|")`

// Reservations come and go on an open page, also one that expires while nothing else happens.
func TestOpenReservationsAreLive(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.do("PUT", "/v1/meters/jobs", `{"unit":"job"}`).is(201)
	n.setUp(hourly, flight)
	w := openWindow(t, n)
	w.as("acme")
	w.look(1280, "light", "/portal")
	w.isLive()
	shows := func(what, rows string) {
		t.Helper()
		w.until(what, openRows+` === "`+rows+`"`)
	}
	shows("nothing", "")
	released := n.reserve(2, time.Hour, "")
	shows("a reservation", "2 jobs ")
	const ttl = 10 * time.Second
	w.happens("one that ends sooner", openRows+` === "4 jobs |2 jobs "`, func() { n.reserve(4, ttl, "") })
	expires := time.Now().Add(ttl)
	shows("one that has expired", "2 jobs ")
	testkit.AtMost(t, "the page after the end", time.Since(expires), 3*time.Second)
	n.do("DELETE", "/v1/reservations/"+released, "").is(204)
	shows("nothing any more", "")
	if said := w.console(); said != nil {
		t.Error(said)
	}
}
