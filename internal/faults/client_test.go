package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
)

const (
	// maxKept bounds the hits that a client remembers for refunds.
	maxKept = 500
	// maxHeld is how many reservations a client leaves open.
	maxHeld = 40
)

// client does operations of all kinds, one after the other. Only it refunds its hits and
// settles its reservations.
type client struct {
	caller
	name     string
	ids      int
	hits     []*charge
	bookings []*booking
}

func newClient(r *run, n int) *client {
	return &client{
		caller: caller{run: r, random: rand.New(rand.NewPCG(r.seed, uint64(n)))},
		name:   fmt.Sprintf("client-%d", n),
	}
}

// newID is an id that nobody used.
func (c *client) newID(kind string) string {
	c.ids++
	return fmt.Sprintf("%s/%s/%d", c.name, kind, c.ids)
}

// work does operations while the run has some left.
func (c *client) work(ctx context.Context) error {
	for ctx.Err() == nil && c.run.take() {
		if err := c.next(); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		c.run.finished.Add(1)
	}
	return nil
}

// next does one operation.
func (c *client) next() error {
	n := c.random.IntN(100)
	if !c.run.ids { // what works without
		if n < 75 {
			return c.hit()
		}
		return c.batch(false)
	}
	switch {
	case n < 30:
		return c.hit()
	case n < 38:
		return c.batch(false)
	case n < 50:
		return c.batch(true)
	case n < 66:
		return c.refund()
	case n < 82 && len(c.bookings) < maxHeld:
		return c.reserve()
	case n < 94:
		return c.commit()
	}
	return c.release()
}

// keep remembers a hit that has units left. When there are too many, one is forgotten.
func (c *client) keep(h *charge) {
	if len(c.hits) < maxKept {
		c.hits = append(c.hits, h)
		return
	}
	c.hits[c.random.IntN(maxKept)] = h
}

// pickHit takes one of the hits that are remembered.
func (c *client) pickHit() *charge { return pick(c.random, &c.hits) }

// pick takes one out of a list; nil when there is none.
func pick[T any](random *rand.Rand, list *[]*T) *T {
	n := len(*list)
	if n == 0 {
		return nil
	}
	i := random.IntN(n)
	x := (*list)[i]
	(*list)[i] = (*list)[n-1]
	*list = (*list)[:n-1]
	return x
}
