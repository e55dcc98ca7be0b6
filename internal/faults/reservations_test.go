package faults

import (
	"fmt"
	"net/http"
)

// booking is an open reservation.
type booking struct {
	place
	cost int64
	id   string // quotad's
}

// reserve holds units for later.
func (c *client) reserve() error {
	b := &booking{place: c.randomPlace(), cost: 1 + c.random.Int64N(8)}
	text := fmt.Sprintf(`{"customer":%q,"meter":%q,"cost":%d%s,"ttl_ms":%d,"id":%q}`,
		keyOf(b.customer), b.meter, b.cost, attributes(b.region), ttl, c.newID("reservation"))
	o := &op{request: request{http.MethodPost, "/v1/reservations", text, ""}}
	o.read = func(a *answer) (verdict, error) {
		status := a.status
		if status == http.StatusOK {
			status = http.StatusCreated // of a replay
		}
		v, err := readDecision(&a.content, status, http.StatusCreated)
		if err == nil && v == done && a.ID == "" {
			err = fmt.Errorf("a reservation without an id")
		}
		return v, err
	}
	o.book = func(_ *caller, a *answer, v verdict) {
		if v == done {
			b.id = a.ID
			c.run.ledger.charged(b.place, units{held: b.cost})
			c.bookings = append(c.bookings, b)
		}
	}
	return c.perform(o)
}

// commit books what a reservation was for: less, as much, or more.
func (c *client) commit() error {
	b := pick(c.random, &c.bookings)
	if b == nil {
		return c.reserve()
	}
	cost := []int64{b.cost, c.random.Int64N(b.cost + 1), b.cost + 1 + c.random.Int64N(8)}[c.random.IntN(3)]
	return c.perform(c.commitment(b, b.cost, cost))
}

// commitment is the commit of so many units. held is what the reservation still holds.
func (c *client) commitment(b *booking, held, cost int64) *op {
	c.run.ledger.expect(b.place, units{held: -held})
	o := &op{request: request{http.MethodPost, "/v1/reservations/" + b.id + "/commit", fmt.Sprintf(`{"cost":%d}`, cost), ""}}
	o.read = func(a *answer) (verdict, error) {
		switch {
		case a.Late == nil || *a.Late != (held == 0):
		case a.status == http.StatusOK && a.Cost == cost && a.Reserved != nil && *a.Reserved == b.cost:
			return done, nil
		case a.status == http.StatusConflict && a.Type == "/problems/does-not-fit" && cost > held &&
			a.Committable != nil && *a.Committable >= held && *a.Committable < cost:
			return refused, nil
		}
		return again, fmt.Errorf("a commit of %d units, of %d reserved and %d held", cost, b.cost, held)
	}
	o.book = func(_ *caller, _ *answer, v verdict) {
		if v == refused {
			c.run.ledger.expect(b.place, units{held: held})
			c.bookings = append(c.bookings, b)
			return
		}
		c.run.ledger.book(b.place, units{net: cost, held: -held})
		c.run.ledger.expect(b.place, units{net: cost})
	}
	return o
}

// commitLate commits what is left of a client's reservations when all have expired.
func (c *client) commitLate() error {
	open := c.bookings
	c.bookings = nil
	for _, b := range open {
		if err := c.perform(c.commitment(b, 0, 1+c.random.Int64N(b.cost))); err != nil {
			return err
		}
	}
	return nil
}

// release gives a reservation back.
func (c *client) release() error {
	b := pick(c.random, &c.bookings)
	if b == nil {
		return c.reserve()
	}
	c.run.ledger.expect(b.place, units{held: -b.cost})
	o := &op{request: request{http.MethodDelete, "/v1/reservations/" + b.id, "", ""}}
	o.read = func(a *answer) (verdict, error) {
		if a.status != http.StatusNoContent {
			return again, fmt.Errorf("not released")
		}
		return done, nil
	}
	o.book = func(*caller, *answer, verdict) { c.run.ledger.book(b.place, units{held: -b.cost}) }
	return c.perform(o)
}
