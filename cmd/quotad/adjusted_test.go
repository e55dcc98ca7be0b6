package main

import (
	"context"
	"strings"
	"testing"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// The engine of a node queues adjustments for billing.
func TestANodeQueuesAdjustments(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.NewDatabase(t)
	n := start(t, databaseURL)
	n.do("PUT", "/v1/meters/requests", `{"unit":"request"}`).is(201)
	n.do("PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","prices":[{"meter":"requests","model":"per_unit","unit_price":"0.01"}]}`).is(201)
	n.do("PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro"}`).is(201)
	n.do("POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":3,"reason":"x","id":"a"}`).is(201)
	const same = `SELECT count(*) FROM open_adjustments q JOIN adjustments a ON a.customer = q.customer AND a.hour = q.hour AND a.meter = q.meter AND a.key = q.key`
	if got := pgtest.Query[int](t, databaseURL, same); got != 1 {
		t.Errorf("%d adjustments are in the queue", got)
	}
}

// TestCloseStepTimeout holds a row that the closing of a customer's period writes, and sees that the node
// blocks the customer after --close-step-timeout.
func TestCloseStepTimeout(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.NewDatabase(t)
	n := startBrief(t, databaseURL, "--close-delay=0s", "--close-step-timeout=1100ms")
	n.do("PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month"}`).is(201)
	n.do("PUT", "/v1/test-clocks/months", `{"now":"2026-01-15T00:00:00Z"}`).is(201)
	n.do("PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","timezone":"UTC","billing_anchor":"2026-01-01T00:00:00","test_clock":"months"}`).is(201)
	n.do("POST", "/v1/customers/acme/charges", `{"id":"one","description":"Setup","amount_minor":900,"currency":"USD"}`).is(201)
	conn, err := postgres.Connect(t.Context(), databaseURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), "BEGIN; SELECT FROM charges FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, databaseURL, "UPDATE test_clocks SET now = now + 30::bigint * 24 * 3600 * 1000000")
	testkit.Eventually(t, "the customer is blocked", func() bool {
		return pgtest.Query[int](t, databaseURL, "SELECT count(*)::int FROM open_periods WHERE blocked IS NOT NULL") > 0
	})
	if why := pgtest.Query[string](t, databaseURL, "SELECT blocked FROM open_periods"); !strings.HasPrefix(why, "it takes too long, more than 1.1s: ") {
		t.Errorf("blocked: %q", why)
	}
}
