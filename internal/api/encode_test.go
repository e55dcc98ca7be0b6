package api

import (
	"testing"
	"time"
)

// TestViewsWaitForAProcessor: while as many answers are being encoded as there are processors,
// another view waits, and so does a
// batch, for no longer than its deadline. Hits go on.
func TestViewsWaitForAProcessor(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(benchLimits)
	hasty := n.hasty(300 * time.Millisecond)
	takeAll(hasty.server.Processing)
	hasty.want(503, "GET", "/v1/customers/acme/quota", "")
	hasty.want(503, "POST", "/v1/hits/batch", `{"hits":[`+benchHit+`]}`)
	takeAll(n.server.Processing)
	n.want(200, "POST", "/v1/hits", benchHit)
	n.server.Processing.GiveBack()
	n.want(200, "GET", "/v1/customers/acme/quota", "")
	n.want(200, "POST", "/v1/hits/batch", `{"hits":[`+benchHit+`]}`)
}
