package api

import (
	"testing"
	"time"
)

// TestViewsWaitForAProcessor: while as many answers are being encoded as there are processors,
// another view waits, for no longer than its deadline. Hits go on.
func TestViewsWaitForAProcessor(t *testing.T) {
	n := newNode(t)
	n.setUp(benchLimits)
	n.server.options.Deadline = 300 * time.Millisecond
	for range cap(n.server.encoding) {
		n.server.encoding <- struct{}{}
	}
	n.want(503, "GET", "/v1/customers/acme/quota", "")
	n.want(200, "POST", "/v1/hits", benchHit)
	<-n.server.encoding
	n.want(200, "GET", "/v1/customers/acme/quota", "")
}
