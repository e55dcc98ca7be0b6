package api

import (
	"fmt"
	"strings"
	"time"

	"quotad/internal/testkit/oracle"
	"quotad/internal/testkit/planstest"
)

const yearDay = 24 * int64(time.Hour/time.Microsecond)

// A group is customers on one clock.
type group struct {
	*year
	clock  *oracle.Clock
	key    string
	guests []*guest
	size   int
}

// A guest is a customer, as the oracle and as the node know it.
type guest struct {
	*oracle.Life
	group    *group
	path     string
	hits     []yearHit
	held     []yearHit                  // of level meters
	ids      map[*oracle.Invoice]string // the node's ids of invoices
	was      string                     // what was expected when it was looked at last
	gone     bool                       // archived
	refunded bool
	gaveBack int64 // when it gave units back or imported some last
	foreseen *foreseen
	journal  []string // what it did
}

type yearHit struct {
	id, meter string
	cost      int64
}

// newGroup makes a clock. Its customers come in the first steps.
func (y *year) newGroup(size int) *group {
	now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC).UnixMicro() + y.between(0, 20*24*3600)*1e6
	g := &group{year: y, clock: y.world.NewClock(now), key: "clock-" + y.id(), size: size}
	g.show(201)
	return g
}

func (g *group) show(status int) {
	g.call(status, "PUT", "/v1/test-clocks/"+g.key, map[string]string{"now": stamp(g.clock.Now)})
}

func stamp(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.RFC3339Nano) }

// step lets time pass, has what is due done, and lets some customers do something.
func (g *group) step() {
	g.steps++
	g.clock.Set(g.nextInstant())
	g.show(200)
	for _, c := range g.guests {
		c.Tick()
	}
	planstest.WorkOff(g.t, g.store, g.server.Closing.WorkOff)
	for _, c := range g.guests {
		c.cameToBe()
		if c.expected() != c.was || g.chance(20) {
			c.compare()
		}
		if !c.gone && g.chance(3) {
			c.plans()
		}
	}
	if g.chance(8) {
		g.empty()
	}
	if g.chance(6) {
		for _, c := range g.guests {
			c.foreseen = nil
		}
		g.newVersion()
	}
	if len(g.guests) < g.size {
		for range min(g.size-len(g.guests), 1+g.size/5) {
			g.join()
		}
	}
	for _, c := range g.guests {
		for range g.dice.IntN(3) {
			c.act()
		}
		if c.expected() != c.was {
			c.compare()
		}
	}
}

// nextInstant is mostly some days on, and often beside a boundary of a customer's.
func (g *group) nextInstant() int64 {
	now := g.clock.Now
	if len(g.guests) > 0 && g.chance(3) {
		_, end, ok := one(g.year, g.guests...).Running()
		if at := end + one[int64](g.year, -1, 0, 0, 1, 5e6, 9999999, 10e6, 3610e6-1, 3610e6); ok && at > now && at < now+40*yearDay {
			return at
		}
	}
	switch g.dice.IntN(12) {
	case 0:
		return now + g.between(1, 3600e6) // soon
	case 1:
		return now + g.between(20, 70)*yearDay // a leap
	}
	return now + g.between(1e6, 9*yearDay)
}

// end compares all once more, on all that can be asked.
func (g *group) end() {
	for _, c := range g.guests {
		c.compare()
		g.acts["scheduled changes that came to count"] += c.Arrived
	}
	g.empty()
}

// join makes a customer.
func (g *group) join() {
	currency := one(g.year, "JPY", "USD", "EUR", "KWD", "CLF")
	t := oracle.Terms{Plan: one(g.year, g.plans[currency]...), Zone: g.zone()}
	t.Anchor = g.anchor(t.Zone)
	key := g.id()
	c := &guest{group: g, path: "/v1/customers/" + key, ids: map[*oracle.Invoice]string{}}
	c.putTerms(201, t, false)
	c.Life = g.world.NewLife(g.clock, key, yearExponents[currency], t)
	c.did("terms %+v", t)
	c.start()
	g.guests = append(g.guests, c)
	g.done("customer")
}

func (g *group) zone() string {
	return one(g.year, "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata")
}

// yearJumps are days and times, of each zone, that are skipped or come twice in 2026.
var yearJumps = map[string][]string{
	"Europe/Berlin":       {"29T02:30:00", "25T02:30:00"},
	"America/New_York":    {"08T02:30:00", "01T01:30:00"},
	"Australia/Lord_Howe": {"04T02:15:00", "05T01:45:00"},
}

// anchor draws a wall clock. Many are at the ends of months, or where clocks jump.
func (g *group) anchor(zone string) string {
	month := one(g.year, "2026-01", "2025-12", "2025-10", "2026-03", "2024-01")
	if jumps := yearJumps[zone]; jumps != nil && g.chance(2) {
		return month + "-" + one(g.year, jumps...)
	}
	day := one(g.year, g.between(1, 28), g.between(29, 31), 31)
	clock := one(g.year, "00:00:00", "23:59:59", fmt.Sprintf("%02d:%02d:%02d", g.dice.IntN(24), g.dice.IntN(60), g.dice.IntN(60)))
	return fmt.Sprintf("%s-%02dT%s", month, day, clock)
}

// putTerms writes the customer.
func (c *guest) putTerms(status int, t oracle.Terms, now bool) {
	body := map[string]any{"name": "C", "plan": t.Plan, "timezone": t.Zone, "billing_anchor": t.Anchor}
	if status == 201 {
		body["test_clock"] = c.group.key
	}
	if t.Pin > 0 {
		body["plan_version"] = t.Pin
	}
	if status == 200 {
		body["change"] = "limits_now"
	}
	if now {
		body["change"] = "now"
	}
	tag := ""
	if status == 200 {
		tag = c.group.call(200, "GET", c.path, nil).header.Get("ETag")
	}
	c.group.call(status, "PUT", c.path, body, "If-Match", tag)
}

// did notes what the customer did, to be shown when something is wrong with it.
func (c *guest) did(format string, args ...any) {
	c.journal = append(c.journal, stamp(c.Clock.Now)+" "+fmt.Sprintf(format, args...))
}

// fail ends the test with all that is known of the customer.
func (c *guest) fail(format string, args ...any) {
	c.group.t.Helper()
	c.group.t.Fatalf("%s at %s (step %d): %s\njournal of %s:\n  %s", c.Key, stamp(c.Clock.Now), c.group.steps, fmt.Sprintf(format, args...), c.Key,
		strings.Join(c.journal, "\n  "))
}
