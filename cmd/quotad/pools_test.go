package main

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/testkit"
)

// Reads that last take all connections that reads have. A changed plan counts all the same,
// and what it needs to know of the customer is read.
func TestLongReadsHoldUpNoChange(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(fixed("l", 100))
	n.hit(1).is(200).has("limits.0.limit", 100)
	long, cancel := context.WithCancel(testkit.Context(t))
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	connections := n.node.reads.Config().MaxConns
	for range connections {
		reading.Go(func() {
			_, _ = n.node.reads.Exec(long, "SET statement_timeout = 0; SELECT pg_sleep(3600)", pgx.QueryExecModeSimpleProtocol)
		})
	}
	busy := func() bool { return n.node.reads.Stat().AcquiredConns() == connections }
	testkit.Eventually(t, "all connections are in use", busy)
	n.do("PUT", "/v1/plans/basic", planOf(fixed("l", 50)), "If-Match: *").is(201)
	n.hears()
	n.hit(1).is(200).has("limits.0.limit", 50)
	n.do("PUT", "/v1/customers/new", onPlan).is(201)
	n.do("POST", "/v1/hits", strings.Replace(hitOf("acme", "requests", ""), "acme", "new", 1)).is(200)
	if !busy() {
		t.Error("the reads ended before")
	}
}

// The planner is free where no hot table is read.
func TestOnlyReadsOfCountersAreBoundToKeys(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	for _, c := range []struct {
		want string
		of   interface {
			QueryRow(context.Context, string, ...any) pgx.Row
		}
	}{{"off", n.node.reads}, {"on", n.node.pool}} {
		var is string
		if err := c.of.QueryRow(testkit.Context(t), "SELECT current_setting('enable_hashjoin')").Scan(&is); err != nil || is != c.want {
			t.Errorf("hash joins are %s, not %s: %v", is, c.want, err)
		}
	}
}
