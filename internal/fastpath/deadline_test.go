package fastpath

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Deadlines of these tests are minutes away: what they are is seen where they are set. Where one must
// be met, the server's clock is set back, so that it is a moment away.

// soon is how far away a deadline is that is met.
const soon = 50 * time.Millisecond

// TestIdle ends connections on which nothing more comes, of which the last request was
// served fast.
func TestIdle(t *testing.T) {
	t.Parallel()
	const idle = patient
	n := startNode(t, func(s *http.Server) { s.IdleTimeout, s.WriteTimeout = idle, 2*idle })
	c := n.dial(t)
	for i := range 4 { // in use for longer than that
		if i > 1 {
			n.pass(idle / 2)
		}
		before := n.now()
		c.ask("fast")
		if by := *c.far.readBy.Load(); by.Before(before.Add(idle-renewAfter)) || by.After(n.now().Add(idle)) {
			t.Errorf("it is closed %v after the last request", by.Sub(before))
		}
	}
	c.send(get("/other")) // the next deadline is a new one, whatever the clock says
	c.answer()
	n.until(t, http.StateIdle)
	n.ahead.Store(int64(soon - idle))
	c.ask("last")
	c.ends()
	n.until(t, http.StateClosed)
}

// TestSlowBody is as patient with a body that does not come as net/http: for one ReadTimeout,
// and not for another one once net/http has the request.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	const read = 2 * patient // another one is longer than the client waits
	for _, sent := range []string{"", "b"} {
		n := startNode(t, func(s *http.Server) { s.ReadTimeout = read })
		c := n.dial(t)
		n.ahead.Store(int64(soon - read))
		before := n.now()
		c.send(strings.TrimSuffix(post("body"), "body") + sent)
		if response, _ := c.answer(); response.StatusCode != http.StatusRequestTimeout {
			t.Errorf("answered %d", response.StatusCode)
		}
		if ended := n.now(); ended.Sub(before) < soon || n.fast.Load() != 0 {
			t.Errorf("ended after %v; %d served fast", ended.Sub(before), n.fast.Load())
		}
		c.ends()
		n.until(t, http.StateClosed)
	}
}

// TestBodyInTime does not keep the deadline of a body for what comes after it.
func TestBodyInTime(t *testing.T) {
	t.Parallel()
	const read, idle = patient, 10 * patient
	n := startNode(t, func(s *http.Server) { s.ReadTimeout, s.IdleTimeout = read, idle })
	c := n.dial(t)
	text := post("body")
	c.send(post("sync") + text[:len(text)-2])
	if _, body := c.answer(); body != "sync" {
		t.Fatal(body)
	}
	poll(t, "the body has a deadline of its own", func() bool { return c.far.readBy.Load().Before(n.now().Add(idle / 2)) })
	before := n.now()
	c.send(text[len(text)-2:])
	if _, body := c.answer(); body != "body" {
		t.Fatal(body)
	}
	if by := *c.far.readBy.Load(); by.Before(before.Add(idle)) {
		t.Errorf("the next request must come within %v", by.Sub(before))
	}
	c.ask("later")
	if n.fast.Load() != 3 {
		t.Errorf("%d were served fast", n.fast.Load())
	}
}

// TestSlowReader lets go of a client that does not read its answers, even when net/http has
// just removed the deadline of its own.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	const write = patient
	n := startNode(t, func(s *http.Server) { s.WriteTimeout, s.IdleTimeout = write, 2*write })
	c := n.dial(t)
	check(t, c.SetReadBuffer(1<<12))
	c.ask("fast")
	c.send(get("/other"))
	c.answer()
	n.until(t, http.StateIdle)
	n.ahead.Store(int64(10*soon - write))
	requests := strings.Repeat(post("much"), 500) // 30 MB of answers
	go func() { _, _ = c.Write([]byte(requests)) }()
	n.until(t, http.StateClosed)
	if by := *c.far.writeBy.Load(); time.Now().Before(by) || n.fast.Load() < 2 || n.fast.Load() > 500 {
		t.Errorf("ended %v before its time; %d served fast", time.Until(by), n.fast.Load())
	}
}

// TestNewDeadlines gives each request its time to be answered, however long the connection
// lives.
func TestNewDeadlines(t *testing.T) {
	t.Parallel()
	const write = patient
	n := startNode(t, func(s *http.Server) { s.WriteTimeout = write })
	c := n.dial(t)
	ask := func(least time.Duration) {
		t.Helper()
		before := n.now()
		c.ask("fast")
		if by := *c.far.writeBy.Load(); by.Before(before.Add(least)) {
			t.Errorf("a request must be answered within %v", by.Sub(before))
		}
	}
	ask(write)
	for range 4 {
		n.pass(write / 2)
		ask(write)
	}
	ask(write - renewAfter)
	n.ahead.Store(0)
	c.send(get("/other")) // and net/http its own
	c.answer()
	n.until(t, http.StateIdle)
	ask(write)
}
