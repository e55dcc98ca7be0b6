package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"quotad/internal/testkit"
)

// post sends a hit and checks nothing of its answer, so as to be fast.
func (n *testNode) post(body string) (status int, answer []byte, err error) {
	request, err := http.NewRequest("POST", n.url+"/v1/hits", strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+n.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := n.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// pace returns how long a caller of a steady load pauses between two requests. In the long form the load is as heavy as
// the machine allows; else a load that lasts for seconds would take all of the machine's time.
func pace() time.Duration {
	if longForm() {
		return 0
	}
	return 5 * time.Millisecond
}

// hammer sends the same hit over and over from several connections and counts the
// answers by status.
func (n *testNode) hammer(connections, each int, body string) map[int]int64 {
	n.t.Helper()
	var counts [600]atomic.Int64
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			for range each {
				status, _, err := n.post(body)
				if err != nil {
					n.t.Error(err)
					return
				}
				counts[status].Add(1)
			}
		})
	}
	all.Wait()
	byStatus := map[int]int64{}
	for status := range counts {
		if c := counts[status].Load(); c > 0 {
			byStatus[status] = c
		}
	}
	return byStatus
}

// tally is what callers know of one customer's units.
type tally struct {
	customer              string
	limit                 int64
	acknowledged, unknown atomic.Int64 // units
	refused               atomic.Int64 // hits
}

// fire sends hits of random costs for all customers from several callers, until stop is
// closed or nobody answers any more; the returned function waits for all of them.
func (n *testNode) fire(callers int, stop <-chan struct{}, customers ...*tally) (wait func()) {
	var all sync.WaitGroup
	seed := testkit.Seed(n.t)
	for caller := range callers {
		r := rand.New(rand.NewPCG(seed, uint64(caller)))
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, cost := customers[r.IntN(len(customers))], 1+r.Int64N(3)
				status, answer, err := n.post(hitOf(c.customer, "requests", fmt.Sprintf(`,"cost":%d`, cost)))
				switch {
				case err != nil:
					c.unknown.Add(cost)
					return
				case status == 200:
					c.acknowledged.Add(cost)
				case status == 429:
					c.refused.Add(1)
				case bytes.Contains(answer, []byte("/problems/outcome-unknown")):
					c.unknown.Add(cost)
				case status != 503:
					n.t.Errorf("a hit is answered %d: %s", status, answer)
					return
				}
			}
		})
	}
	return all.Wait
}

// settle holds what was charged against what the callers know, and returns how many units
// had an unknown outcome; all of them are settled from then on.
func (n *testNode) settle(customers ...*tally) (unknown int64) {
	n.t.Helper()
	for _, c := range customers {
		var a *answer
		testkit.Eventually(n.t, "counters can be read", func() bool { // over connections that broke, too
			a = n.do("POST", "/v1/hits", hitOf(c.customer, "requests", `,"cost":0`))
			return a.status == 200
		})
		used := a.num("limits.0.used")
		known, lost := c.acknowledged.Load(), c.unknown.Swap(0)
		n.t.Logf("%s: %d units acknowledged, %d unknown, %d charged, %d refusals", c.customer, known, lost, used, c.refused.Load())
		if used < known || used > known+lost || used > c.limit {
			n.t.Errorf("%s: %d units charged, %d acknowledged, %d unknown, limit %d", c.customer, used, known, lost, c.limit)
		}
		c.acknowledged.Store(used)
		unknown += lost
	}
	return unknown
}
