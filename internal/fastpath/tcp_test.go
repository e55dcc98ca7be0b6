package fastpath

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// A node is a server with the fast path on a TCP port.
type node struct {
	*Server
	address string
	conns   *meter
	fast    atomic.Int64 // requests that were served fast
	ahead   atomic.Int64 // how far the server's clock is
	states  chan http.ConnState
	serving chan *http.Request // those that wait
	release chan struct{}      // they go on
}

// startNode starts one whose handler waits when the body says so.
func startNode(t testing.TB, change func(*http.Server)) *node {
	t.Helper()
	n := &node{serving: make(chan *http.Request, 10), release: make(chan struct{}), states: make(chan http.ConnState, 1000)}
	server := testServer(http.HandlerFunc(n.serve))
	if change != nil {
		change(server)
	}
	options := testOptions()
	options.Wall = n.now
	n.Server = New(server, options)
	inner := server.ConnState
	server.ConnState = func(nc net.Conn, state http.ConnState) {
		inner(nc, state)
		n.states <- state
	}
	n.listen(t)
	return n
}

// now is the server's clock.
func (n *node) now() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) }

// pass sets the server's clock on; back, where d is below 0.
func (n *node) pass(d time.Duration) { n.ahead.Add(int64(d)) }

func (n *node) listen(t testing.TB) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	n.address = listener.Addr().String()
	ended := make(chan error, 1)
	n.conns = &meter{Listener: listener}
	go func() { ended <- n.Serve(Listener(n.conns)) }()
	t.Cleanup(func() {
		_ = n.Close()
		serverEnded(t, ended)
	})
}

func (n *node) serve(w http.ResponseWriter, r *http.Request) {
	if _, fast := w.(*answer); fast {
		n.fast.Add(1)
	}
	w.Header().Set("Content-Type", "text/plain")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestTimeout)
		return
	}
	switch string(body) {
	case "wait":
		n.serving <- r
		<-n.release
	case "wait and panic":
		n.serving <- r
		<-n.release
		panic("late")
	case "miscount":
		w.Header().Set(contentLength, "5")
		body = []byte("longer than that")
	case "abort":
		_, _ = io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	case "panic":
		_, _ = io.WriteString(w, "half")
		panic("a handler's mistake")
	case "much":
		w.Header().Set("Content-Length", "60000")
		_, _ = w.Write(make([]byte, 60000))
		return
	}
	_, _ = w.Write(body)
}

// A client is one connection to it.
type client struct {
	t testing.TB
	*net.TCPConn
	in   *bufio.Reader
	sent int64
	far  *metered // the server's end
}

// dial opens a connection on which one request was answered, so the next is served fast.
func (n *node) dial(t testing.TB) *client {
	t.Helper()
	nc, err := net.Dial("tcp", n.address)
	check(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	check(t, nc.SetDeadline(time.Now().Add(patient)))
	c := &client{t: t, TCPConn: nc.(*net.TCPConn), in: bufio.NewReader(nc)}
	c.ask("first")
	n.until(t, http.StateIdle)
	c.far = n.conns.last.Load()
	return c
}

func (n *node) until(t testing.TB, want http.ConnState) {
	t.Helper()
	timeout := time.After(patient)
	for {
		select {
		case state := <-n.states:
			if state == want {
				return
			}
		case <-timeout:
			t.Fatalf("no connection became %s", want)
		}
	}
}

func (c *client) send(text string) {
	c.t.Helper()
	n, err := io.WriteString(c, text)
	check(c.t, err)
	c.sent += int64(n)
}

// answer reads one, and returns its body.
func (c *client) answer() (*http.Response, string) {
	c.t.Helper()
	response, err := http.ReadResponse(c.in, nil)
	check(c.t, err)
	body, err := io.ReadAll(response.Body)
	check(c.t, err)
	return response, string(body)
}

// ask sends a request and reads its answer.
func (c *client) ask(body string) {
	c.t.Helper()
	c.send(post(body))
	if _, got := c.answer(); got != body {
		c.t.Fatalf("answered %q, want %q", got, body)
	}
}

// ends reads until the server closes the connection.
func (c *client) ends() {
	c.t.Helper()
	rest, err := io.ReadAll(c.in)
	var timeout net.Error
	if len(rest) > 0 || errors.As(err, &timeout) && timeout.Timeout() {
		c.t.Errorf("the connection did not end: %q, %v", rest, err)
	}
}

// waits starts a request on the fast path and returns it while its handler waits.
func (n *node) waits(t testing.TB, c *client) *http.Request {
	t.Helper()
	return n.begins(t, c, "wait")
}

func (n *node) begins(t testing.TB, c *client, body string) *http.Request {
	t.Helper()
	before := n.fast.Load()
	c.send(post(body))
	select {
	case r := <-n.serving:
		if n.fast.Load() != before+1 {
			t.Fatal("served by net/http")
		}
		return r
	case <-time.After(patient):
		t.Fatal("no request came")
		return nil
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// poll waits until it is so.
func poll(t testing.TB, what string, so func() bool) {
	t.Helper()
	testkit.Eventually(t, what, so)
}

// TestKeptAlive has an ordinary client repeat itself.
func TestKeptAlive(t *testing.T) {
	n := startNode(t, nil)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	web := &http.Client{Transport: transport, Timeout: patient}
	for i := range 20 {
		body := strings.Repeat("b", i)
		request, err := http.NewRequest(http.MethodPost, "http://"+n.address+hitsPath, strings.NewReader(body))
		check(t, err)
		request.Header.Set("Idempotency-Key", "key"+body)
		response, err := web.Do(request)
		check(t, err)
		got, err := io.ReadAll(response.Body)
		check(t, err)
		check(t, response.Body.Close())
		if string(got) != body || response.ContentLength != int64(i) {
			t.Fatalf("answered %q", got)
		}
	}
	// The first has no Content-Length, and net/http may get some more while it finishes.
	if fast := n.fast.Load(); fast < 10 {
		t.Errorf("%d of 20 were served fast", fast)
	}
}
