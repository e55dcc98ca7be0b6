package faults

import (
	"fmt"
	"net/http"
	"strings"
)

// charge is a hit, alone or one of a batch.
type charge struct {
	place
	cost int64
	id   string // empty: it has none
	left int64  // of its units, once admitted
}

func (h *charge) body() string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"customer":%q,"meter":%q,"cost":%d%s`, keyOf(h.customer), h.meter, h.cost, attributes(h.region))
	if h.id != "" {
		fmt.Fprintf(&b, `,"id":%q`, h.id)
	}
	return b.String() + "}"
}

func attributes(region string) string {
	if region == "" {
		return ""
	}
	return fmt.Sprintf(`,"attributes":{"region":%q}`, region)
}

// randomCharge is a hit of some customer's, of a few units.
func (c *client) randomCharge(kind string) *charge {
	h := &charge{place: c.randomPlace(), cost: 1 + c.random.Int64N(8)}
	if c.run.ids {
		h.id = c.newID(kind)
	}
	return h
}

func (c *client) randomPlace() place {
	return place{c.random.IntN(numCustomers), meters[c.random.IntN(len(meters))], regions[c.random.IntN(len(regions))]}
}

// hit consumes units; its id is in the body, or in the header.
func (c *client) hit() error {
	h := c.randomCharge("hit")
	o := &op{request: request{http.MethodPost, "/v1/hits", h.body(), ""}, read: readHit}
	if id := h.id; id != "" && c.random.IntN(2) == 0 {
		h.id = ""
		o.body, o.idempotencyKey = h.body(), id
		h.id = id
	}
	o.book = func(_ *caller, _ *answer, v verdict) {
		if v == done {
			c.admitted(h)
		}
	}
	return c.perform(o)
}

func readHit(a *answer) (verdict, error) { return readDecision(&a.content, a.status, http.StatusOK) }

// readDecision reads a decision whose status is the given one when it admits.
func readDecision(d *content, status, admitted int) (verdict, error) {
	switch {
	case d.Degraded:
		return again, fmt.Errorf("let in although its limits say on_outage: deny")
	case status == admitted && d.admitted():
		return done, nil
	case status == http.StatusTooManyRequests && d.Allowed != nil && !*d.Allowed:
		return refused, nil
	}
	return again, fmt.Errorf("no decision")
}

// admitted books a hit, and keeps it for refunds.
func (c *client) admitted(h *charge) {
	c.run.ledger.charged(h.place, units{net: h.cost})
	if h.id == "" {
		return
	}
	h.left = h.cost
	c.keep(h)
}

// batch is hits of anybody's, each for itself, or all or none.
func (c *client) batch(atomic bool) error {
	hits := make([]*charge, 2+c.random.IntN(7))
	bodies := make([]string, len(hits))
	for i := range hits {
		hits[i] = c.randomCharge("batch")
		bodies[i] = hits[i].body()
	}
	text := `{"hits":[` + strings.Join(bodies, ",") + `]`
	if atomic {
		text += `,"atomic":true`
	}
	o := &op{request: request{http.MethodPost, "/v1/hits/batch", text + "}", ""}}
	o.read = func(a *answer) (verdict, error) { return readBatch(a, len(hits), atomic) }
	o.book = func(_ *caller, a *answer, _ verdict) {
		for i, h := range hits {
			if a.Results[i].admitted() {
				c.admitted(h)
			}
		}
	}
	return c.perform(o)
}

// readBatch: refused if any hit is.
func readBatch(a *answer, hits int, atomic bool) (verdict, error) {
	if a.status != http.StatusOK || len(a.Results) != hits {
		return again, fmt.Errorf("no results of %d hits", hits)
	}
	admitted := 0
	for i := range a.Results {
		r := &a.Results[i]
		status := r.Status
		if r.admitted() {
			status = http.StatusOK
		} else if atomic && r.Allowed != nil && status == 0 {
			status = http.StatusTooManyRequests // it would have fitted, and another does not
		}
		v, err := readDecision(r, status, http.StatusOK)
		if err != nil {
			return again, fmt.Errorf("result %d: %w", i, err)
		}
		if v == done {
			admitted++
		}
	}
	switch {
	case admitted == hits:
		return done, nil
	case atomic && admitted > 0:
		return again, fmt.Errorf("%d of %d hits of an atomic batch were admitted", admitted, hits)
	}
	return refused, nil
}

// refund gives units back: of a hit that this client knows, or of the present windows.
func (c *client) refund() error {
	h := c.pickHit()
	if h == nil {
		return c.hit()
	}
	cost, id := 1+c.random.Int64N(h.cost), c.newID("refund")
	text := fmt.Sprintf(`{"customer":%q,"meter":%q,"id":%q`, keyOf(h.customer), h.meter, id)
	if presently(h.customer) {
		// What was charged by others is not given back, or the order would decide.
		cost = min(cost, h.left)
		text += attributes(h.region)
	} else {
		text += fmt.Sprintf(`,"hit":%q`, h.id)
	}
	text += fmt.Sprintf(`,"cost":%d}`, cost)
	want := min(cost, h.left)
	c.run.ledger.expect(h.place, units{net: -cost})
	o := &op{request: request{http.MethodPost, "/v1/refunds", text, ""}}
	o.read = func(a *answer) (verdict, error) {
		switch {
		case a.status != http.StatusOK || a.Refunded == nil:
			return again, fmt.Errorf("no refund")
		case *a.Refunded != want:
			return again, fmt.Errorf("%d units refunded, not %d", *a.Refunded, want)
		}
		return done, nil
	}
	o.book = func(*caller, *answer, verdict) {
		c.run.ledger.book(h.place, units{net: -want})
		c.run.ledger.expect(h.place, units{net: cost - want})
		if h.left -= want; h.left > 0 {
			c.keep(h)
		}
	}
	return c.perform(o)
}
