package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"time"

	"quotad/internal/plans"
)

const (
	beatEvery = 5 * time.Second
	beatLimit = 3 * time.Second // one write, waiting for a connection included
)

// heartbeat tells of a node, for the overview of all nodes: that it serves, how it is, and how much
// it has decided. One goroutine uses it at a time.
type heartbeat struct {
	node   *node
	row    plans.Node
	minute int64         // that the last write counted in, µs
	before plans.Decided // what the node had decided when the minute began
	told   plans.Decided // by the last write that worked
}

func (n *node) newHeartbeat() *heartbeat {
	name, _ := os.Hostname() // without one the port alone has to do
	if u, err := url.Parse(n.url); err == nil && u.Port() != "" {
		name += ":" + u.Port()
	}
	return &heartbeat{node: n, row: plans.Node{ID: rand.Text(), Name: cmp.Or(name, n.url), Version: version}}
}

// run writes every few seconds until ctx ends. The log says when it begins to fail and when it
// works again.
func (h *heartbeat) run(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for failing := false; ; {
		err := h.beat(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			h.node.log.Warn("this node cannot be told of in the overview now", "error", err)
		case err == nil && failing:
			h.node.log.Info("this node is told of in the overview again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// beat writes once. Of a minute it writes the sum so far, so that nothing counts twice where the
// answer to a write was lost. Only the first write of a minute may count again what such a one had.
func (h *heartbeat) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.node.atLeast(beatLimit))
	defer cancel()
	now, err := h.node.clock.Now(ctx)
	if err != nil {
		return err
	}
	if minute := now - now%time.Minute.Microseconds(); minute != h.minute {
		h.minute, h.before = minute, h.told
	}
	state, reason := h.node.state()
	h.row.State, h.row.Reason, h.row.SeenAt = string(state), reason, now
	h.row.StartedAt = cmp.Or(h.row.StartedAt, now)
	h.row.CheckedAt, h.row.Disagreeing = h.node.api.Service.Checked()
	stats := h.node.engine.Stats()
	decided := plans.Decided{Admitted: stats.Admitted, Refused: stats.Refused}
	err = h.node.store.Beat(ctx, &h.row, h.minute, plans.Decided{Admitted: decided.Admitted - h.before.Admitted, Refused: decided.Refused - h.before.Refused})
	if err == nil {
		h.told = decided
	}
	return err
}

// end tells what was decided last, and that the node is gone.
func (h *heartbeat) end(ctx context.Context) {
	err := h.beat(ctx)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, h.node.atLeast(beatLimit))
		defer cancel()
		err = h.node.store.EndNode(ctx, h.row.ID)
	}
	if err != nil {
		h.node.log.Warn("the overview could not be told that this node stops", "error", err)
	}
}
