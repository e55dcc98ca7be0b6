package api

import (
	"fmt"
	"testing"
)

// A draft waits for a correction that is too large, and other invoices become final meanwhile. The
// books agree at each step, and the correction is billed when it has become smaller.
func TestBooksAgreeWhileACorrectionWaits(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	n.settled("2026-02-01T01:00:10Z")
	adjust := func(id string, cost int) {
		t.Helper()
		n.want(201, "POST", "/v1/customers/acme/adjustments", fmt.Sprintf(`{"meter":"requests","cost":%d,"reason":"r","at":"2026-01-10T00:00:00Z","id":%q}`,
			cost, id))
	}
	const most = 999_999_999_999_999
	adjust("a", most)
	adjust("b", most)
	n.agreed("with a correction to come")
	n.settled("2026-03-01T01:00:10Z")
	n.agreed("while its draft is held")
	n.settled("2026-04-01T01:00:10Z")
	n.agreed("with a later invoice")
	adjust("c", -most)
	adjust("d", -most+3)
	n.agreed("before the draft is tried again")
	n.settled("2026-04-01T03:00:00Z")
	n.agreed("at last")
	sum := 0.0
	for _, i := range n.want(200, "GET", "/v1/invoices?customer=acme&test_clock=any&status=finalized", "").json["items"].([]any) {
		sum += i.(map[string]any)["total_minor"].(float64)
	}
	if sum != 3*2000+3 {
		t.Errorf("three months and three units cost %v", sum)
	}
}
