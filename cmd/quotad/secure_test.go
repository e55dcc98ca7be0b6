package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// speaking is the same node, asked over TLS in one protocol: "HTTP/1.1" or "HTTP/2.0".
func (n *testNode) speaking(proto string) *testNode {
	other := *n
	other.client = newClient()
	transport := other.client.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	transport.ForceAttemptHTTP2 = proto == "HTTP/2.0"
	n.t.Cleanup(other.client.CloseIdleConnections)
	return &other
}

// flood sends a request again and again from many callers, until stop is called or the test ends. The
// counts are of the answers by status.
func (n *testNode) flood(callers int, method, path, body string) (counts *sync.Map, stop func()) {
	counts = new(sync.Map)
	over := make(chan struct{})
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(pace()):
				}
				count, _ := counts.LoadOrStore(n.status(method, path, body), new(atomic.Int64))
				count.(*atomic.Int64).Add(1)
			}
		})
	}
	stop = sync.OnceFunc(func() {
		close(over)
		running.Wait()
	})
	n.t.Cleanup(stop) // a test that fails would send on, and slow down all others
	return counts, stop
}

// status is that of an answer, which is read and thrown away; 0 when there is none.
func (n *testNode) status(method, path, body string) int {
	r, err := http.NewRequestWithContext(n.t.Context(), method, n.url+path, strings.NewReader(body))
	if err != nil {
		n.t.Error(err)
		return 0
	}
	r.Header.Set("Authorization", "Bearer "+n.key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := n.client.Do(r)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0
	}
	return response.StatusCode
}

// answered is how many answers had a status.
func answered(counts *sync.Map, status int) int64 {
	if count, ok := counts.Load(status); ok {
		return count.(*atomic.Int64).Load()
	}
	return 0
}

// secureNodes are nodes on one database, over TLS.
func secureNodes(t *testing.T) (one, two *testNode) {
	t.Helper()
	cert, key := selfSigned(t, t.TempDir())
	one = start(t, "", "--tls-cert="+cert, "--tls-key="+key)
	two = start(t, one.databaseURL, "--tls-cert="+cert, "--tls-key="+key)
	return one, two
}

// TestRevokedKeyUnderLoadOverTLS revokes a key under a small load.
func TestRevokedKeyUnderLoadOverTLS(t *testing.T) { revokedUnderLoad(t, 4, 50) }

// TestMoreRevokedKeyUnderLoadOverTLS revokes a key under a large load.
func TestMoreRevokedKeyUnderLoadOverTLS(t *testing.T) { revokedUnderLoad(t, 20, 200) }

// revokedUnderLoad revokes a key on one node while callers flood both nodes with reads by the key, and after enough
// reads were answered. Over TLS, in HTTP/1.1 and in HTTP/2, each node refuses the key within a second.
func revokedUnderLoad(t *testing.T, callers int, enough int64) {
	t.Helper()
	t.Parallel()
	one, two := secureNodes(t)
	admin := one.speaking("HTTP/1.1")
	admin.setUp(fixed("l", 1_000_000))
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		id, secret := admin.newKey("backend")
		var stops []func()
		for _, node := range []*testNode{one, two} {
			holder := node.speaking(proto).as(secret)
			testkit.Eventually(t, "the key works", func() bool { return holder.status("GET", "/v1/customers/acme/quota", "") == 200 })
			if got := holder.do("GET", "/v1/customers/acme/quota", "").is(200).proto; got != proto {
				t.Fatalf("it speaks %s, not %s", got, proto)
			}
			counts, stop := holder.flood(callers, "GET", "/v1/customers/acme/quota", "")
			stops = append(stops, stop)
			testkit.Eventually(t, "the flood", func() bool { return answered(counts, 200) > enough })
		}
		began := time.Now()
		admin.do("DELETE", "/v1/keys/"+id, "").is(204)
		wrote := time.Since(began)
		for i, node := range []*testNode{one, two} {
			another := node.speaking(proto).as(secret)
			what := fmt.Sprintf("%s: node %d refuses the key, after a write of %s", proto, i+1, wrote)
			testkit.AtMost(t, what, node.hears(), within)
			if got := another.status("POST", "/v1/hits", hitOf("acme", "requests", "")); got != 401 {
				t.Errorf("%s: node %d has heard that a key is revoked, and answers it %d", proto, i+1, got)
			}
		}
		for _, stop := range stops {
			stop()
		}
	}
}

// TestBatchesOfOneKeyOverTLS sends a few hits of another key beside batches of one key.
func TestBatchesOfOneKeyOverTLS(t *testing.T) { batchesOfOneKey(t, 20) }

// TestMoreBatchesOfOneKeyOverTLS sends more hits of another key.
func TestMoreBatchesOfOneKeyOverTLS(t *testing.T) { batchesOfOneKey(t, 30) }

// batchesOfOneKey has one key send batches over many connections or streams of TLS. None of so many hits and
// batches of another key is refused.
func batchesOfOneKey(t *testing.T, hits int) {
	t.Helper()
	t.Parallel()
	one, _ := secureNodes(t)
	admin := one.speaking("HTTP/1.1")
	admin.setUp(fixed("l", 1_000_000_000))
	_, mine := admin.newKey("backend")
	_, others := admin.newKey("backend")
	hit := hitOf("acme", "requests", "")
	batch := `{"hits":[` + hit + strings.Repeat(","+hit, 999) + `]}`
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		counts, stop := one.speaking(proto).as(mine).flood(20, "POST", "/v1/hits/batch", batch)
		defer stop()
		testkit.Eventually(t, "the flood", func() bool { return answered(counts, 200) > 20 })
		other := one.speaking(proto).as(others)
		slowest := time.Duration(0)
		for range hits {
			began := time.Now()
			if got := other.status("POST", "/v1/hits", hit); got != 200 {
				t.Errorf("%s: another key's hit: %d", proto, got)
			}
			slowest = max(slowest, time.Since(began))
		}
		other.do("POST", "/v1/hits/batch", `{"hits":[`+hit+`]}`).is(200).has("results.0.allowed", true)
		stop()
		t.Logf("%s: the slowest hit of another key took %s, beside %d batches", proto, slowest, answered(counts, 200))
	}
}
