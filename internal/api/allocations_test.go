package api

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// What a hit may allocate in this process, all included: net/http's server, the lane and its
// session. Some 37 when this was written, of which net/http takes 25.
const mostAllocations = 40

// Those of the API alone for a refusal from memory, which nobody else has a part in.
const mostOfARefusal = 9

// oneClient sends one request over and over on a connection of its own, without an allocation.
type oneClient struct {
	conn     net.Conn
	request  []byte
	answer   []byte
	lastLine []byte // an answer ends with it
}

func (c *oneClient) hit(t *testing.T) bool {
	if _, err := c.conn.Write(c.request); err != nil {
		t.Error(err)
		return false
	}
	n := 0
	for !bytes.HasSuffix(c.answer[:n], c.lastLine) {
		more, err := c.conn.Read(c.answer[n:])
		if err != nil {
			t.Errorf("%v after %s", err, c.answer[:n])
			return false
		}
		n += more
	}
	return true
}

// Over the wire, with enough clients at once for batches of some hits.
func TestAllocationsOfAHit(t *testing.T) {
	n := newNode(t)
	n.setUp(`{"name":"daily","meter":"requests","algorithm":"fixed_window","limit":999999999,"window":"1d"},
		{"name":"burst","meter":"requests","algorithm":"token_bucket","limit":999999999,"window":"1m"}`)
	const clients, hits = 64, 100
	all := make([]*oneClient, clients)
	for i := range all {
		key := fmt.Sprint("customer-", i)
		n.want(201, "PUT", "/v1/customers/"+key, `{"name":"C","plan":"pro","timezone":"UTC"}`)
		conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
		check(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		check(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
		body := `{"customer":"` + key + `","meter":"requests"}`
		all[i] = &oneClient{
			conn: conn, answer: make([]byte, 4<<10), lastLine: []byte(`"window":"1m"}]}`),
			request: fmt.Appendf(nil, "POST /v1/hits HTTP/1.1\r\nHost: quotad\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				adminSecret, len(body), body),
		}
	}
	run := func(times int) {
		var running sync.WaitGroup
		for _, c := range all {
			running.Go(func() {
				for i := 0; i < times && c.hit(t); i++ {
				}
			})
		}
		running.Wait()
	}
	run(10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run(hits)
	runtime.ReadMemStats(&after)
	each := float64(after.Mallocs-before.Mallocs) / (clients * hits)
	t.Logf("%.1f allocations a hit", each)
	most := float64(mostAllocations)
	if testing.Short() {
		most *= 1.25 // that is how the race detector's run is, which empties pools
	}
	if each > most {
		t.Errorf("%.1f allocations a hit, more than %.0f", each, most)
	}
	if got := n.want(200, "GET", "/v1/customers/customer-0/quota", ""); !strings.Contains(got.text, `"used":110,`) {
		t.Errorf("not all hits were charged: %s", got.text)
	}
}

func TestAllocationsOfARefusal(t *testing.T) {
	n := newNode(t)
	n.setUp(benchLimits)
	n.want(200, "POST", "/v1/hits", benchHit)
	n.want(429, "POST", "/v1/hits", benchHit)
	refuse := hammer(t, n, benchHit, 429)
	most := float64(mostOfARefusal)
	if testing.Short() {
		most *= 1.6 // see above: the race detector empties pools at random, so 12 to 13.5 are usual
	}
	if each := testing.AllocsPerRun(1000, refuse); each > most {
		t.Errorf("%.1f allocations a refusal from memory, more than %.0f", each, most)
	}
}
