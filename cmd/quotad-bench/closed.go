package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// hitEach sends a node one hit for each of a set's customers from one to another, by many
// connections, each customer once.
func (b *bench) hitEach(ctx context.Context, n *node, set string, from, to int) error {
	t := templateOf(&row{set: set, load: load{pick: uniform}}, b.service.backend, "")
	if len(t.list) > 0 {
		return fmt.Errorf("%s: no customers to choose from", set)
	}
	deadline := time.Now().Add(requestWait + time.Duration(to-from)*time.Millisecond)
	var next atomic.Int64
	next.Store(int64(from))
	all, ctx := errgroup.WithContext(ctx)
	for range manyConns {
		all.Go(func() error {
			c, err := dial(ctx, n.address, deadline)
			if err != nil {
				return err
			}
			defer c.Close()
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= to {
					return nil
				}
				c.out = t.append(c.out[:0], i, 0)
				if status, err := c.roundTrip(); err != nil || status != 200 {
					return fmt.Errorf("the hit of customer %d is answered %d %s (%w)", i, status, c.got, err)
				}
			}
			return ctx.Err()
		})
	}
	return all.Wait()
}

// pairs is a closed loop of reservations, each committed before its connection makes the
// next one. wrk's scripts cannot tell connections apart, so it is the bench's own.
type pairs struct {
	template template
	address  string
	key      string
	conns    int
	seed     uint64
}

// run keeps the connections busy for d. An operation is a reservation and its commit.
func (p *pairs) run(ctx context.Context, d time.Duration) (closed, error) {
	parts := make([]closed, p.conns)
	cpu, began := ownCPU(), time.Now()
	all, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		all.Go(func() error {
			c, err := dial(ctx, p.address, began.Add(d+requestWait))
			if err != nil {
				return err
			}
			defer c.Close()
			choose := p.template.chooser(p.seed<<16 + uint64(i))
			for ctx.Err() == nil && time.Since(began) < d {
				if err := p.one(c, choose(), &parts[i]); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	err := all.Wait()
	sum := closed{}
	for _, part := range parts {
		sum = sum.beside(part)
	}
	sum.took, sum.cpu = time.Since(began), ownCPU()-cpu
	return sum, err
}

// one reserves and commits.
func (p *pairs) one(c *conn, number int, to *closed) error {
	c.out = p.template.append(c.out[:0], number, 0)
	status, err := c.roundTrip()
	if err != nil {
		return err
	}
	_, rest, ok := bytes.Cut(c.got, []byte(`"id":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	if status != 201 || !ok {
		return fmt.Errorf("%w: a reservation is answered %d: %s", errAnswers, status, c.got)
	}
	c.out = append(c.out[:0], post("/v1/reservations/"+string(id)+"/commit", p.key, `{"cost":1}`)...)
	if status, err = c.roundTrip(); err != nil {
		return err
	}
	if status/100 != 2 {
		return fmt.Errorf("%w: a commit is answered %d: %s", errAnswers, status, strings.TrimSpace(string(c.got)))
	}
	to.operations++
	return nil
}
