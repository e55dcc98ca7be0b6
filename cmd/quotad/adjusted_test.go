package main

import (
	"testing"

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
