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
	beatLimit = 3 * time.Second // one write, including the wait for a connection
)

// heartbeat writes a node's state for the overview of all nodes: that the node serves, whether it is degraded,
// and the number of its decisions. It must not be used concurrently.
type heartbeat struct {
	node   *node
	row    plans.Node
	minute int64         // minute of the last write, µs
	before plans.Decided // the node's decisions before the minute began
	told   plans.Decided // decisions in the last successful write
}

func (n *node) newHeartbeat() *heartbeat {
	name, _ := os.Hostname() // the port alone identifies the node if there is no name
	if u, err := url.Parse(n.url); err == nil && u.Port() != "" {
		name += ":" + u.Port()
	}
	return &heartbeat{node: n, row: plans.Node{ID: rand.Text(), Name: cmp.Or(name, n.url), Version: version}}
}

// run writes every few seconds until ctx ends. It logs the begin and the end of failures.
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

// beat writes once. For the current minute it writes the sum so far, so that nothing is counted twice if the
// response to a write was lost. Only the first write of a minute may repeat counts of such a write.
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

// end writes the last decisions and marks the node as gone.
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
