package api

import (
	"testing"

	"quotad/internal/testkit/pgtest"
)

// The reissue of a void opening stays, and is finalized, though a price of the customer's own comes to
// count for its period, too.
func TestReissuedOpeningOutlivesAPrice(t *testing.T) {
	t.Parallel()
	n := scheduledNode(t, pgtest.NewDatabase(t))
	n.joins("small")
	opening := n.billed("2026-01-10T02:00:00Z", "finalized")["id"].(string)
	n.want(200, "POST", "/v1/invoices/"+opening+"/void", `{"reason":"x","reissue":true}`)
	n.want(201, "PUT", "/v1/customers/acme/prices/calls", `{"model":"per_unit","unit_price":"0.05"}`)
	n.settled("2026-01-11T00:00:00Z")
	again := n.billed("2026-01-11T00:00:00Z", "finalized")
	if again["of"] != opening || again["kind"] != "opening" || again["total_minor"] != 710. {
		t.Errorf("%v", again)
	}
}
