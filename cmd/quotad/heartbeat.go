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
	beatLimit = 3 * time.Second // for one write, including the wait for a connection
)

// heartbeat records in the database that a node serves, its state, and the number of its decisions, for the
// overview of all nodes. Only one goroutine may use it at a time.
type heartbeat struct {
	node   *node
	row    plans.Node
	minute int64         // the minute of the last write, µs
	before plans.Decided // the node's decisions when the minute began
	told   plans.Decided // the decisions in the last successful write
}

func (n *node) newHeartbeat() *heartbeat {
	name, _ := os.Hostname() // without a hostname, the port alone is the name
	if u, err := url.Parse(n.url); err == nil && u.Port() != "" {
		name += ":" + u.Port()
	}
	return &heartbeat{node: n, row: plans.Node{ID: rand.Text(), Name: cmp.Or(name, n.url), Version: version}}
}

// run writes the heartbeat to the database every few seconds until ctx ends. It logs when these writes begin to
// fail and when they succeed again.
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

// beat writes the heartbeat once, with the minute's total so far, so that nothing counts twice if the response
// to a write is lost. Only the first write of a minute may repeat decisions that such a lost write already
// counted.
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

// end writes the last decisions and records that the node has ended.
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
