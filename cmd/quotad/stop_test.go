package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// balancer is a proxy that passes connections on, as a load balancer in TCP mode does: it reads no
// request. It asks each node whether it is ready, and gives the next connection to one that is.
type balancer struct {
	listener net.Listener
	nodes    []*testNode
	ready    []atomic.Bool
	made     []atomic.Int64 // connections to each node
	open     []atomic.Int64 // of these, those that last
}

func newBalancer(t *testing.T, nodes ...*testNode) *balancer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{
		listener: listener, nodes: nodes, ready: make([]atomic.Bool, len(nodes)), made: make([]atomic.Int64, len(nodes)),
		open: make([]atomic.Int64, len(nodes)),
	}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		running.Wait()
	})
	b.look(ctx)
	running.Go(func() {
		for ctx.Err() == nil {
			b.look(ctx)
			time.Sleep(50 * time.Millisecond)
		}
	})
	running.Go(func() {
		for turn := 0; ; turn++ {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { b.pass(ctx, from, turn) })
		}
	})
	return b
}

// look asks each node.
func (b *balancer) look(ctx context.Context) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testkit.Patience}
	for i, n := range b.nodes {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/readyz", http.NoBody)
		if err != nil {
			continue
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		b.ready[i].Store(err == nil && response.StatusCode == http.StatusOK)
	}
}

// pass joins a client's connection with one to a ready node, until either side closes its own.
func (b *balancer) pass(ctx context.Context, from net.Conn, turn int) {
	defer from.Close()
	for i := range b.nodes {
		at := (turn + i) % len(b.nodes)
		b.open[at].Add(1) // before it is seen to be ready: none comes later that was not counted
		if !b.ready[at].Load() {
			b.open[at].Add(-1)
			continue
		}
		defer b.open[at].Add(-1)
		to, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(b.nodes[at].url, "http://"))
		if err != nil {
			return
		}
		b.made[at].Add(1)
		ended := make(chan struct{}, 2)
		for _, way := range [2][2]net.Conn{{from, to}, {to, from}} {
			go func() {
				_, _ = io.Copy(way[1], way[0])
				ended <- struct{}{}
			}()
		}
		select {
		case <-ended:
		case <-ctx.Done():
		}
		_ = to.Close()
		_ = from.Close()
		<-ended
		return
	}
}

// rawHit is a hit of acme's as it goes over the wire.
func rawHit() string {
	body := hitOf("acme", "requests", "")
	return fmt.Sprintf("POST /v1/hits HTTP/1.1\r\nHost: quotad\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		testAdminKey, len(body), body)
}

// rawClient sends a request on one connection, and makes another only where an answer ended the last one.
// It sends nothing twice.
type rawClient struct {
	address, request string
	conn             net.Conn
	reader           *bufio.Reader
	header           http.Header // of the last answer
}

func (c *rawClient) hit() (status int, err error) {
	if c.conn == nil {
		if c.conn, err = net.Dial("tcp", c.address); err != nil {
			return 0, err
		}
		c.reader = bufio.NewReader(c.conn)
	}
	if _, err = io.WriteString(c.conn, c.request); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return 0, err
	}
	c.header = response.Header
	if _, err = io.Copy(io.Discard, response.Body); err == nil && response.Close {
		c.close()
	}
	return response.StatusCode, err
}

func (c *rawClient) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// A node that stops behind a balancer in TCP mode takes no request with it: the clients that it has
// are told to come again elsewhere, and the listener takes those that come meanwhile.
func TestDrainLosesNothing(t *testing.T) {
	t.Parallel()
	first := start(t, "", "--drain-delay=1m")
	first.setUp(fixed("l", 1_000_000))
	second := start(t, first.databaseURL)
	second.hit(1).is(200)
	b := newBalancer(t, first, second)
	clientsEnd, end := context.WithCancel(testkit.Context(t))
	var sent, failed atomic.Int64
	var clients sync.WaitGroup
	t.Cleanup(func() { // also of a test that has failed
		end()
		clients.Wait()
	})
	for range 16 {
		clients.Go(func() {
			c := rawClient{address: b.listener.Addr().String(), request: rawHit()}
			defer c.close()
			for {
				select {
				case <-clientsEnd.Done():
					return
				case <-time.After(10 * time.Millisecond):
				}
				sent.Add(1)
				if status, err := c.hit(); err != nil || status != http.StatusOK {
					failed.Add(1)
					t.Errorf("status %d, %v", status, err)
					c.close()
				}
			}
		})
	}
	testkit.Eventually(t, "both nodes have connections", func() bool { return b.made[0].Load() > 4 && b.made[1].Load() > 4 && sent.Load() > 500 })
	stopped := make(chan error, 1)
	go func() { stopped <- first.stop() }()
	testkit.Eventually(t, "all clients are told to go", func() bool { return !b.ready[0].Load() && b.open[0].Load() == 0 })
	first.endDrain()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	after := sent.Load()
	testkit.Eventually(t, "the other node has all of it", func() bool { return sent.Load() > after+500 })
	end()
	clients.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d of %d hits failed", failed.Load(), sent.Load())
	}
}

// While it drains, each answer ends its connection, whatever it is and whoever makes it; and new
// connections are taken.
func TestDrainEndsConnections(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--drain-delay=1m")
	n.setUp(fixed("l", 100))
	repeating := &rawClient{address: strings.TrimPrefix(n.url, "http://"), request: rawHit()}
	for range 3 { // net/http reads the first one, and the fast path serves those that repeat it
		if status, err := repeating.hit(); err != nil || status != 200 || repeating.conn == nil {
			t.Fatalf("status %d, %v, its connection is %v", status, err, repeating.conn)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- n.stop() }()
	testkit.Eventually(t, "/readyz says that it is stopping", func() bool { return n.do("GET", "/readyz", "").status == 503 })
	if status, err := repeating.hit(); err != nil || status != 200 || repeating.conn != nil {
		t.Errorf("a hit on the fast path: status %d, %v, its connection is %v", status, err, repeating.conn)
	}
	for _, head := range []string{"GET /livez", "GET /readyz", "GET /nowhere", "PATCH /v1/hits", "GET /v1/customers/acme/quota", "GET /admin"} {
		c := &rawClient{address: repeating.address, request: head + " HTTP/1.1\r\nHost: quotad\r\n\r\n"}
		if status, err := c.hit(); err != nil || c.conn != nil {
			t.Errorf("%s: status %d, %v, its connection is %v", head, status, err, c.conn)
			c.close()
		}
	}
	n.endDrain()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// freeze stops all processes of a server. They hold their connections, and answer nothing.
func freeze(t *testing.T, server *pgtest.Instance) {
	t.Helper()
	all := []int{server.Embedded().PID()}
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[0]))
	if err != nil || len(children) == 0 {
		t.Fatalf("the processes of the server: %v %v", children, err)
	}
	for _, file := range children {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, pid)
		}
	}
	for _, pid := range all {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}
}

// A database that hangs keeps no node from ending.
func TestStopBesideAHungDatabase(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	n := startBrief(t, server.URL())
	n.setUp(fixed("l", 1_000_000))
	n.hit(1).is(200)
	freeze(t, server)
	var callers sync.WaitGroup
	var waited atomic.Bool // a hit, for as long as it may
	for range 8 {
		callers.Go(func() {
			for range 3 { // more than one round: some are sent, others wait
				_, _, _ = n.post(hitOf("acme", "requests", "")) // the node ends meanwhile
				waited.Store(true)
				_, _ = n.try("GET", "/v1/customers/acme/quota", "")
			}
		})
	}
	testkit.Eventually(t, "hits wait for the database", func() bool { return n.node.engine.Stats().Queued > 0 || waited.Load() })
	began := time.Now()
	err := n.stop()
	t.Logf("it ended with: %v", err)
	testkit.AtMost(t, "the end", time.Since(began), stopLimit+goodbye+time.Second)
	n.cutOff = true
	callers.Wait()
}
