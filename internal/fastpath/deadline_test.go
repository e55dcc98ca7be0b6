package fastpath

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// ended waits for the end of a connection, and returns how long after start it came.
func (n *node) ended(t *testing.T, start time.Time) time.Duration {
	t.Helper()
	n.until(t, http.StateClosed)
	return time.Since(start)
}

// TestIdle ends connections on which nothing more comes, of which the last request was
// served fast.
func TestIdle(t *testing.T) {
	t.Parallel()
	const idle = 1200 * time.Millisecond
	n := startNode(t, func(s *http.Server) { s.IdleTimeout = idle })
	c := n.dial(t)
	start := time.Now()
	for time.Since(start) < idle+100*time.Millisecond { // in use for longer than that
		c.ask("fast")
		time.Sleep(10 * time.Millisecond)
	}
	start = time.Now()
	c.ask("last")
	c.ends()
	if took := n.ended(t, start); took < idle-renewAfter || took > idle+time.Second {
		t.Errorf("closed after %v", took)
	}
}

// TestSlowBody is as patient with a body that does not come as net/http: for one ReadTimeout,
// and not for another one once net/http has the request.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	const read = time.Second
	for _, sent := range []string{"", "b"} {
		n := startNode(t, func(s *http.Server) { s.ReadTimeout = read })
		c := n.dial(t)
		start := time.Now()
		c.send(strings.TrimSuffix(post("body"), "body") + sent)
		if response, _ := c.answer(); response.StatusCode != http.StatusRequestTimeout {
			t.Errorf("answered %d", response.StatusCode)
		}
		c.ends()
		if took := n.ended(t, start); took < read || took > 2*read-100*time.Millisecond || n.fast.Load() != 0 {
			t.Errorf("ended after %v; %d served fast", took, n.fast.Load())
		}
	}
}

// TestBodyInTime does not keep the deadline of a body for what comes after it.
func TestBodyInTime(t *testing.T) {
	t.Parallel()
	const read = 150 * time.Millisecond
	n := startNode(t, func(s *http.Server) { s.ReadTimeout = read })
	c := n.dial(t)
	text := post("body")
	c.send(post("sync") + text[:len(text)-2])
	if _, body := c.answer(); body != "sync" {
		t.Fatal(body)
	}
	c.send(text[len(text)-2:])
	if _, body := c.answer(); body != "body" {
		t.Fatal(body)
	}
	time.Sleep(2 * read) // a deadline that must not be there
	c.ask("later")
	if n.fast.Load() != 3 {
		t.Errorf("%d were served fast", n.fast.Load())
	}
}

// TestSlowReader lets go of a client that does not read its answers, even when net/http has
// just removed the deadline of its own.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	const write = 300 * time.Millisecond
	n := startNode(t, func(s *http.Server) { s.WriteTimeout = write })
	c := n.dial(t)
	check(t, c.SetReadBuffer(1<<12))
	c.ask("fast")
	c.send(get("/other"))
	c.answer()
	n.until(t, http.StateIdle)
	start := time.Now()
	requests := strings.Repeat(post("much"), 500) // 30 MB of answers
	go func() { _, _ = c.Write([]byte(requests)) }()
	if took := n.ended(t, start); took < write/2 || n.fast.Load() < 2 || n.fast.Load() > 500 {
		t.Errorf("ended after %v; %d served fast", took, n.fast.Load())
	}
}

// TestNewDeadlines gives each request its time to be answered, however long the connection
// lives.
func TestNewDeadlines(t *testing.T) {
	t.Parallel()
	const write = 1200 * time.Millisecond
	n := startNode(t, func(s *http.Server) { s.WriteTimeout = write })
	c := n.dial(t)
	for start := time.Now(); time.Since(start) < write+200*time.Millisecond; {
		c.ask("fast")
		time.Sleep(20 * time.Millisecond)
	}
	c.send(get("/other")) // and net/http its own
	c.answer()
	c.ask("fast")
}
