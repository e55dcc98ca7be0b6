package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"quotad/internal/testkit/oracle"
)

// act does something that customers and admins do. The first acts of the list are the common
// ones.
func (c *guest) act() {
	if c.gone {
		c.actGone()
		return
	}
	c.foreseen = nil
	y := c.group.year
	if c.Suspended && y.chance(4) {
		c.resume()
	}
	switch n := y.dice.IntN(100); {
	case n < 12:
		c.hold()
	case n < 39:
		c.hit()
	case n < 42:
		c.cap()
	case n < 47:
		c.refund()
	case n < 51:
		c.importLate()
	case n < 57:
		c.adjust()
	case n < 61:
		c.charge()
	case n < 65:
		c.grant()
	case n < 70:
		c.change()
	case n < 73:
		c.ownPrice()
	case n < 78:
		c.putAccount()
	case n < 79:
		c.standing()
	case n < 80:
		c.levels()
	case n < 81:
		c.upcoming()
	case n < 82 && y.chance(3) && !c.unsure():
		c.archive()
	case n < 82 && !c.Suspended:
		c.suspend()
	case n < 82:
	case n < 87:
		c.schedule()
	default:
		c.onInvoice()
	}
}

// actGone is what may still come after archiving.
func (c *guest) actGone() {
	if c.group.chance(2) {
		c.onInvoice()
	}
}

// hit uses units now, by a hit or by a reservation.
func (c *guest) hit() {
	y := c.group.year
	meter, cost, id := one(y, yearMeters...), one(y, y.between(1, 20), y.between(1, 400)), y.id()
	if capped := slices.Sorted(maps.Keys(c.Caps())); len(capped) > 0 && y.chance(2) {
		meter = one(y, capped...)
	}
	if edge := c.ToEdge(meter); edge > 0 && y.chance(3) {
		cost = edge
	}
	body := map[string]any{"customer": c.Key, "meter": meter, "cost": cost, "id": id}
	if why := c.Refuses(); why != "" {
		c.refused(why, body)
		return
	}
	if y.chance(8) && meter != "alpha" {
		var held struct{ ID string }
		body = map[string]any{"customer": c.Key, "meter": meter, "cost": cost, "ttl_ms": 60000}
		if cost > c.CapLeaves(meter) {
			c.capped("/v1/reservations", body)
			return
		}
		got := y.call(201, "POST", "/v1/reservations", body)
		check(y.t, json.Unmarshal([]byte(got.text), &held))
		cost = y.between(1, cost)
		y.call(200, "POST", "/v1/reservations/"+held.ID+"/commit", map[string]any{"cost": cost})
		c.Use(meter, cost, "")
		c.did("reservation %s %d", meter, cost)
		y.done("reservation")
		return
	}
	if y.chance(10) {
		body["overrun"] = true
	} else if left := c.CapLeaves(meter); left > 0 && left < 1000 && y.chance(2) {
		body["cost"], cost = left, left // the last that it admits
	} else if cost > left {
		c.capped("/v1/hits", body)
		return
	}
	if got := y.try("POST", "/v1/hits", body); got.status == 429 && meter == "alpha" && body["overrun"] == nil {
		y.done("hit refused")
		return
	} else if got.status != 200 {
		c.fail("hit %v: %d %s", body, got.status, got.text)
	}
	c.Use(meter, cost, id)
	c.did("hit %s %d %s", meter, cost, id)
	c.hits = append(c.hits, yearHit{id, meter, cost})
	y.done("hit")
}

// refused sends a hit or a reservation that whatever its limits say must be refused.
func (c *guest) refused(why string, body map[string]any) {
	y, path := c.group.year, "/v1/hits"
	if y.chance(4) {
		path, body["ttl_ms"] = "/v1/reservations", 60000
	}
	if got := y.try("POST", path, body); got.status != 403 || !strings.Contains(got.text, `"/problems/`+why+`"`) {
		c.fail("%s %v: %d %s, want %s", path, body, got.status, got.text, why)
	}
	y.done("hit " + why)
}

// capped sends a hit or a reservation that a cap must refuse.
func (c *guest) capped(path string, body map[string]any) {
	y := c.group.year
	got := y.try("POST", path, body)
	if got.status != 429 || !strings.Contains(got.text, `"cap"`) {
		c.fail("%s %v: %d %s, and its cap leaves %d", path, body, got.status, got.text, c.CapLeaves(body["meter"].(string)))
	}
	y.done("hit refused by a cap")
}

// cap sets a cap, or takes it away.
func (c *guest) cap() {
	y := c.group.year
	meter := one(y, yearMeters...)
	path := c.path + "/caps/" + meter
	_, is := c.Caps()[meter]
	if is && y.chance(3) {
		y.call(204, "DELETE", path, nil)
		c.Cap(meter, -1)
		c.did("cap of %s deleted", meter)
		y.done("cap deleted")
		return
	}
	s := c.Standing(meter)
	minor := one(y, 0, y.between(1, 900), y.between(1, 90000), s.Minor, s.Minor+y.between(1, 300))
	if !s.Running {
		return
	}
	got := y.try("PUT", path, map[string]any{"amount_minor": minor})
	switch {
	case got.status == 422 && !s.Priced: // it may have a price from the next period on
		return
	case is && got.status != 200 || !is && got.status != 201:
		c.fail("cap of %s: %d %s", meter, got.status, got.text)
	}
	c.Cap(meter, minor)
	c.did("cap of %s at %d", meter, minor)
	c.capUnits(meter)
	y.done("cap")
}

// capUnits holds the units that a cap is against the oracle.
func (c *guest) capUnits(meter string) {
	var got struct{ Units *int64 }
	c.group.read(c.path+"/caps/"+meter, &got)
	if units, capped := c.CapUnits(meter); capped != (got.Units != nil) || capped && *got.Units != units {
		c.fail("the cap of %s is %s units, want %d, %t", meter, textOf(c.group.year, got.Units), units, capped)
	}
}

func (c *guest) suspend() {
	c.group.call(200, "PUT", c.path+"/suspension", map[string]string{"reason": "so it was drawn"})
	c.Suspended = true
	c.did("suspended")
	c.group.done("suspension")
}

func (c *guest) resume() {
	c.group.call(204, "DELETE", c.path+"/suspension", nil)
	c.Suspended = false
	c.did("resumed")
}

// refund gives units back, of a hit or of the open period.
func (c *guest) refund() {
	y := c.group.year
	body := map[string]any{"customer": c.Key, "meter": one(y, yearMeters...), "cost": y.between(1, 200), "id": y.id()}
	hit := ""
	if len(c.hits) > 0 && y.chance(2) {
		h := one(y, c.hits...)
		hit = h.id
		body["hit"], body["meter"], body["cost"] = h.id, h.meter, y.between(1, h.cost+1)
	}
	if _, _, running := c.Running(); hit == "" && !running {
		return
	}
	want := c.Refund(body["meter"].(string), body["cost"].(int64), hit)
	c.refunded, c.gaveBack = true, c.Clock.Now
	var done struct{ Refunded int64 }
	check(y.t, json.Unmarshal([]byte(y.call(200, "POST", "/v1/refunds", body).text), &done))
	if done.Refunded != want {
		c.fail("refund %v gave %d back, want %d", body, done.Refunded, want)
	}
	c.did("refund %v: %d", body, want)
	y.done("refund")
}

// past draws an instant of the customer's life, mostly of its last months.
func (c *guest) past() int64 {
	y := c.group.year
	return max(c.Clock.Now-one(y, y.between(0, yearDay), y.between(0, 40*yearDay), y.between(0, 120*yearDay)), c.Account.StartsAt)
}

func (c *guest) importLate() {
	y := c.group.year
	when := c.past()
	if when > c.Clock.Now {
		return
	}
	meter, cost := one(y, yearMeters...), y.between(1, 200)
	line := map[string]any{"id": y.id(), "customer": c.Key, "meter": meter, "cost": cost, "at": stamp(when)}
	if got := y.call(200, "POST", "/v1/imports", line).text; !strings.Contains(got, `"imported":1`) {
		y.t.Fatalf("%v: %s", line, got)
	}
	c.Book(meter, cost, when)
	c.gaveBack = c.Clock.Now
	c.did("import %s %d of %s", meter, cost, stamp(when))
	y.done("import")
}

func (c *guest) adjust() {
	y := c.group.year
	when := c.past()
	if when > c.Clock.Now {
		return
	}
	meter, cost := one(y, yearMeters...), y.between(1, 150)*one[int64](y, 1, -1)
	body := map[string]any{"meter": meter, "cost": cost, "reason": "r", "at": stamp(when), "id": y.id()}
	c.preview(body, meter, cost, when)
	y.call(201, "POST", c.path+"/adjustments", body)
	c.Adjust(meter, cost, when)
	c.did("adjustment %s %d of %s", meter, cost, stamp(when))
	y.done("adjustment")
}

func (c *guest) charge() {
	y := c.group.year
	for range y.between(1, 3) { // of one instant: they keep their order, whatever their ids are
		minor := y.between(1, 9000) * one[int64](y, 1, 1, -1)
		id := one(y, "a", "b", "c") + y.id()
		y.call(201, "POST", c.path+"/charges", map[string]any{"description": "Setup", "amount_minor": minor, "currency": c.Currency, "id": id})
		c.Charge(minor)
		c.did("charge %d", minor)
		y.done("charge")
	}
}

func (c *guest) grant() {
	y := c.group.year
	k := oracle.Credit{ID: y.id(), Kind: one(y, "promotional", "paid"), Minor: y.between(1, 20000), Priority: one(y, 50, 50, int(y.between(0, 100)))}
	body := map[string]any{"id": k.ID, "kind": k.Kind, "amount_minor": k.Minor, "priority": k.Priority, "currency": c.Currency}
	if y.chance(2) {
		expires := c.Clock.Now + y.between(1, 120*yearDay)
		if _, end, ok := c.Running(); ok && y.chance(2) {
			expires = end + one[int64](y, -1, 0, 0, 1)
		}
		if expires > c.Clock.Now {
			k.ExpiresAt = &expires
			body["expires_at"] = stamp(expires)
		}
	}
	y.call(201, "POST", c.path+"/credits", body)
	c.Grant(k)
	c.did("credit %v", body)
	y.done("credit")
}

// change puts the customer on other terms, at the next boundary or now.
func (c *guest) change() {
	y := c.group.year
	t, now := c.Terms(), y.chance(2)
	switch y.dice.IntN(6) {
	case 0:
		t.Zone = c.group.zone()
	case 1:
		t.Anchor = c.group.anchor(t.Zone)
	case 2:
		t.Pin = 0
		if newest := y.world.Newest(t.Plan).N; y.chance(2) {
			t.Pin = int(y.between(1, int64(newest)))
		}
	default:
		t.Plan, t.Pin = one(y, y.plans[c.Currency]...), 0
	}
	if _, _, running := c.Running(); !running || c.unsure() {
		now = false
	}
	var f *foreseen
	if was := c.Terms(); t.Zone == was.Zone && t.Anchor == was.Anchor {
		f = c.foresee(200, planBody(t, map[bool]string{true: "now", false: "limits_now"}[now]))
	}
	c.putTerms(200, t, now)
	c.Put(t, now)
	if f != nil {
		c.foresaw(f)
	}
	c.did("terms %+v now=%t", t, now)
	y.done(fmt.Sprintf("terms now=%t", now))
}

func (c *guest) ownPrice() {
	y := c.group.year
	meter := one(y, slices.Concat(yearMeters, yearLevels)...)
	if c.First() && c.refunded {
		return // whether a hit that was refunded is a billed one, nobody says
	}
	if c.OwnPrices()[meter] != nil && y.chance(3) {
		y.call(204, "DELETE", c.path+"/prices/"+meter, nil)
		c.PutOwn(meter, nil)
		c.did("own price of %s deleted", meter)
		y.done("own price deleted")
		return
	}
	p := y.price()
	if slices.Contains(yearLevels, meter) {
		p = y.levelPrice(meter)
		p.Meter = ""
	}
	status := 201
	if c.OwnPrices()[meter] != nil {
		status = 200
	}
	y.call(status, "PUT", c.path+"/prices/"+meter, p)
	c.PutOwn(meter, &p)
	c.did("own price %s %s", meter, textOf(y, p))
	y.done("own price")
}

// unsure reports whether something was given back or imported at this very instant. What ends then may lie at
// the instant, or just after it: nobody says which.
func (c *guest) unsure() bool { return c.gaveBack == c.Clock.Now }

func (c *guest) archive() {
	y := c.group.year
	y.call(204, "DELETE", c.path, nil)
	c.Archive()
	c.gone = true
	c.did("archived")
	y.done("archived")
}
