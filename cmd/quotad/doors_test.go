package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"quotad/internal/plans/sweep"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// A doorway is what one person got who made a link and used it, while its customer went.
type doorway struct {
	n       *testNode
	link    string // empty: none was made
	entered *browser
}

// passes makes a link and uses it, as far as the customer is still there.
func (d *doorway) passes(customer string) {
	made := d.n.do("POST", "/v1/portal-sessions", fmt.Sprintf(`{"customer":%q}`, customer))
	if made.status == 404 {
		return
	}
	d.link = strings.TrimPrefix(made.is(201).str("url"), d.n.url)
	b := d.n.browser()
	if a := b.post(d.link, nil); a.status == 303 {
		d.entered = b
		return
	}
	d.entered = nil
}

// shut fails if what is left of a doorway opens anything.
func (d *doorway) shut(customer string) {
	d.n.t.Helper()
	if d.link != "" {
		d.n.browser().post(d.link, nil).is(410)
	}
	if d.entered != nil {
		if a := d.entered.get("/portal"); a.status != 401 {
			d.n.t.Errorf("the session of %s, who is gone, answers %d", customer, a.status)
		}
		if first, _ := d.entered.stream("/portal/live"); first != "event: over" {
			d.n.t.Errorf("the stream of %s begins with %q", customer, first)
		}
	}
}

// Nobody sees the next customer of a key, whenever the one before is erased: while a link is made,
// while it is used, or later.
func TestSessionsEndWithTheErased(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	entered := 0
	for i := range 30 {
		key := fmt.Sprintf("guest%d", i)
		n.do("PUT", "/v1/customers/"+key, onPlan).is(201)
		before := &doorway{n: n, entered: n.browser().enter(n, key), link: n.link(key)}
		var beside [3]doorway
		var all sync.WaitGroup
		for j := range beside {
			beside[j].n = n
			all.Go(func() { beside[j].passes(key) })
		}
		all.Go(func() {
			time.Sleep(time.Duration(i) * 200 * time.Microsecond)
			n.do("DELETE", "/v1/customers/"+key+"?erase=true", "").is(200)
		})
		all.Wait()
		if left := query[int64](t, n.databaseURL, "SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM portal_links)"); left != 0 {
			t.Errorf("%d sessions and links are left of %s", left, key)
		}
		n.do("PUT", "/v1/customers/"+key, `{"plan":"basic","name":"Somebody else","timezone":"UTC"}`).is(201)
		before.shut(key)
		for j := range beside {
			if beside[j].entered != nil {
				entered++
			}
			beside[j].shut(key)
		}
	}
	t.Logf("%d of 90 entered beside the erasing", entered)
}

// The same for anonymous customers that are forgotten: by the next hit their keys are others'.
func TestSessionsEndWithTheForgotten(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--default-plan=basic", "--anonymous-ttl=1h")
	n.setUp(hourly)
	var doorways []*doorway
	var keys []string
	for i := range 30 {
		keys = append(keys, fmt.Sprintf("ip%d", i))
		n.do("POST", "/v1/hits", hitOf(keys[i], "requests", "")).is(200)
		doorways = append(doorways, &doorway{n: n, entered: n.browser().enter(n, keys[i]), link: n.link(keys[i])})
	}
	ctx, stop := context.WithCancel(t.Context())
	var forgetting sync.WaitGroup
	forgetter := sweep.NewForgetter(n.node.store, n.node.catalog.Targets, time.Millisecond, slog.New(slog.DiscardHandler))
	forgetting.Go(func() { forgetter.Run(ctx) })
	for i := 0; query[int64](t, n.databaseURL, "SELECT count(*) FROM customers WHERE anonymous") > 0; i++ {
		beside := &doorway{n: n}
		beside.passes(keys[i%len(keys)])
		doorways, keys = append(doorways, beside), append(keys, keys[i%len(keys)])
	}
	stop()
	forgetting.Wait()
	for _, key := range keys {
		n.do("POST", "/v1/hits", hitOf(key, "requests", "")).is(200)
	}
	for i, d := range doorways {
		d.shut(keys[i])
	}
}

// The database keeps no session of a customer's pages that is not the customer's.
func TestSessionsBelongToACustomer(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	n.browser().enter(n, "acme")
	for _, sql := range []string{
		`INSERT INTO sessions (token, data, expires_at, key_id) SELECT 'x', data, expires_at, key_id FROM sessions`,
		`UPDATE sessions SET customer_id = NULL`,
	} {
		_, err := pgtest.TryQuery[int](t.Context(), n.databaseURL, `WITH x AS (`+sql+` RETURNING 1) SELECT count(*)::int FROM x`)
		if err == nil || !strings.Contains(err.Error(), "sessions_of_customers") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// A revoked or expired key ends what it made: sessions of its own, links into the portal, sessions
// that they opened, and the streams of these, on all nodes.
func TestRevokedKeysEndTheirSessions(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	other := start(t, n.databaseURL)
	n.setUp(hourly)
	for how, end := range map[string]func(id string){
		"revoked": func(id string) { n.do("DELETE", "/v1/keys/"+id, "").is(204) },
		"expired": func(id string) {
			execute(t, n.databaseURL, "UPDATE keys SET expires_at = now() - interval '1 second' WHERE id = $1", id)
		},
	} {
		id, secret := n.newKey("support")
		maker := n.as(secret)
		link := maker.link("acme")
		b, kept := n.browser().enter(maker, "acme"), n.browser().enter(n, "acme")
		there := *b
		there.url = other.url
		there.get("/portal").is(200)
		_, stream := there.stream("/portal/live")
		_, goesOn := kept.stream("/portal/live")
		began := time.Now()
		end(id)
		b.get("/portal").is(401)
		there.get("/portal").is(401)
		n.browser().get(link).is(410)
		n.browser().post(link, nil).is(410)
		if last := ends(t, stream); last != "over" {
			t.Errorf("%s: the stream ends with %q", how, last)
		}
		testkit.AtMost(t, how, time.Since(began), 2*time.Second)
		kept.get("/portal").is(200)
		select {
		case line, more := <-goesOn:
			if !more || line == "event: over" {
				t.Errorf("%s: the stream of another key's session ends", how)
			}
		default:
		}
	}
}

// A key of staff that is revoked ends the sessions that it opened from the admin pages, too.
func TestRevokedStaff(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	id, secret := n.newKey("support")
	staff := n.signedIn(secret)
	to := staff.post("/admin/customers/acme/portal", nil).is(303).header.Get("Location")
	if u, err := url.Parse(to); err == nil {
		to = u.Path
	}
	staff.post(to, nil).is(303)
	staff.get("/portal").is(200)
	n.do("DELETE", "/v1/keys/"+id, "").is(204)
	staff.get("/portal").is(401)
	staff.get("/admin").is(303)
	if left := query[int64](t, n.databaseURL, "SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM portal_links)"); left != 0 {
		t.Errorf("%d sessions and links are left", left)
	}
}

// A stream ends within 2 s of whatever ends its session.
func TestStreamsEndWithTheirSessions(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	for i, end := range []func(b *browser, customer string){
		func(b *browser, _ string) { b.post("/portal/leave", url.Values{}).is(200) },
		func(_ *browser, customer string) { n.do("DELETE", "/v1/customers/"+customer, "").is(204) },
		func(_ *browser, customer string) { n.do("DELETE", "/v1/customers/"+customer+"?erase=true", "").is(200) },
		func(*browser, string) { execute(t, n.databaseURL, "UPDATE sessions SET expires_at = 1") },
		func(_ *browser, customer string) {
			execute(t, n.databaseURL, "DELETE FROM customers WHERE key = $1", customer) // as forgetting does
		},
	} {
		customer := fmt.Sprintf("guest%d", i)
		n.do("PUT", "/v1/customers/"+customer, onPlan).is(201)
		b := n.browser().enter(n, customer)
		_, stream := b.stream("/portal/live")
		for line := range stream { // it is under way
			if line == "event: at" {
				break
			}
		}
		began := time.Now()
		end(b, customer)
		if last := ends(t, stream); last != "over" {
			t.Errorf("case %d: the stream ends with %q", i, last)
		}
		testkit.AtMost(t, fmt.Sprint("case ", i), time.Since(began), 2*time.Second)
	}
}
