package api

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/throttle"
)

// fakeWall is a node's clock that goes where it is set.
type fakeWall struct{ past atomic.Int64 }

func (f *fakeWall) now() time.Time          { return time.Unix(1_700_000_000, f.past.Load()) }
func (f *fakeWall) pass(time time.Duration) { f.past.Add(int64(time)) }

// Whoever guesses is told to wait, before anything is looked up, on net/http and on the fast path;
// keys that are known, and keys that were, do not count.
func TestWrongKeysAreLimited(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(manyHits)
	var clock fakeWall
	n.server.Failures = throttle.New(5, clock.now)
	status := func(want int, key string) reply {
		t.Helper()
		return n.want(want, "POST", "/v1/hits", oneHit, "Authorization", "Bearer "+key)
	}
	was := n.want(201, "POST", "/v1/keys", `{"name":"a","scope":"backend"}`).json
	n.want(204, "DELETE", "/v1/keys/"+was["id"].(string), "")
	testkit.Eventually(t, "the revocation", func() bool {
		return n.do("POST", "/v1/hits", oneHit, "Authorization", "Bearer "+was["secret"].(string)).status == 401
	})
	for range 20 {
		status(401, was["secret"].(string))
	}
	for i := range 5 {
		status(401, "wrong-"+strconv.Itoa(i))
	}
	for range 3 {
		got := status(429, "wrong-again")
		if got.json["type"] != "/problems/too-many-failures" || got.header.Get("Retry-After") != "12" {
			t.Errorf("%v %s", got.header, got.text)
		}
	}
	status(429, strings.Repeat("x", 500))
	n.want(429, "GET", "/v1/customers/acme", "", "Authorization", "Bearer wrong")
	n.want(401, "POST", "/v1/hits", oneHit, "Authorization", "-") // no key is no guess
	n.want(200, "POST", "/v1/hits", oneHit)
	status(401, was["secret"].(string))
	text := n.want(200, "GET", "/metrics", "").text
	for _, line := range []string{`quotad_failed_keys_total{type="too-many-failures"} 5`, `quotad_failed_keys_total{type="unauthorized"} `} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("no %s in the metrics", line)
		}
	}
	clock.pass(12 * time.Second)
	status(401, "wrong-again")
	status(429, "wrong-again")
}

// The fast path goes through the same door.
func TestWrongKeysOnTheFastPath(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(manyHits)
	n.server.Failures = throttle.New(3, new(fakeWall).now)
	var fast atomic.Int64
	serve := n.server.single
	n.server.single = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, netHTTP := w.(http.Flusher); !netHTTP {
			fast.Add(1)
		}
		serve.ServeHTTP(w, r)
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
	check(t, err)
	defer conn.Close()
	check(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	in := bufio.NewReader(conn)
	send := func() int {
		_, err = fmt.Fprintf(conn, "POST /v1/hits HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			len(oneHit), oneHit)
		check(t, err)
		got, err := http.ReadResponse(in, nil)
		check(t, err)
		check(t, got.Body.Close())
		return got.StatusCode
	}
	for i, want := range []int{401, 401, 401, 429, 429, 429} {
		if got := send(); got != want {
			t.Errorf("request %d: %d, not %d", i, got, want)
		}
	}
	// A request that comes before net/http has put the one before away is net/http's.
	testkit.Eventually(t, "a request on the fast path", func() bool {
		if got := send(); got != 429 {
			t.Errorf("a later request: %d, not 429", got)
		}
		return fast.Load() > 0
	})
}

// Without the setting nobody is limited.
func TestWrongKeysWithoutALimit(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for range 200 {
		n.want(401, "GET", "/v1/meters", "", "Authorization", "Bearer wrong")
	}
}
