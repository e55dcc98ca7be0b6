package fastpath

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// conn is a connection as net/http sees it. Only the goroutine that serves it reads and sets
// deadlines while net/http waits for a request, so what is above the lock needs none.
type conn struct {
	net.Conn
	server *Server
	ctx    *connContext

	answered bool      // net/http is done with a request
	waiting  bool      // and waits for the next
	first    []byte    // of what it was given then: the head, in whole, or nothing
	head     *head     // of a request that was served before; nil: none
	vain     int       // heads that were learned and did not come again, less those that did
	renewed  time.Time // when the deadlines were set

	mu     sync.Mutex
	busy   bool // a request is served here
	closed bool // if it is busy, once it is not
}

// bufferSize is what net/http reads at once. That it asks for so much says that it has read
// nothing of the next request yet: neither did that come with the one before, nor was its
// first byte taken while that was served.
const bufferSize = 4 << 10

// maxVain bounds vain: for clients that send another head each time, learning is not worth
// what it costs.
const maxVain = 8

// renewAfter is how old deadlines get: setting them for each request would cost as much as
// reading its head.
const renewAfter = time.Second

// enter is called when net/http takes a connection for another state.
func (c *conn) enter(state http.ConnState) {
	c.waiting = false
	c.answered = state == http.StateNew || state == http.StateIdle
	c.renewed = time.Time{} // the deadlines are net/http's
}

// SetReadDeadline is how net/http says what it reads next: the first one after an answer is
// of its wait for a request, the second of the request that has begun.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.answered || c.waiting {
		c.waiting, c.answered = c.answered, false
	}
	return c.Conn.SetReadDeadline(t)
}

// CloseWrite is that of TCP: net/http says so that it will read no more.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Read reads for net/http. While it waits for a request, what repeats the last head is
// answered here; the first that does not is what it gets.
func (c *conn) Read(p []byte) (int, error) {
	if !c.waiting || len(p) != bufferSize {
		return c.Conn.Read(p)
	}
	for {
		n, err := c.Conn.Read(p)
		for err == nil && n > 0 {
			var used int
			if used, n, err = c.serve(p, n); err != nil {
				return 0, err
			}
			if used == 0 {
				c.waiting = false
				c.remember(p[:n])
				return n, nil
			}
			n = copy(p, p[used:n])
		}
		if err != nil {
			return n, err
		}
	}
}

// serve answers the request that the first n bytes of p begin with, if it repeats the head
// and fits. It returns how many bytes it was long, 0 if it is not served here, and how many
// there are now.
func (c *conn) serve(p []byte, n int) (used, have int, err error) {
	body, end, ok := c.head.match(p[:n])
	if !ok || end > len(p) {
		return 0, n, nil
	}
	if !c.begin() {
		return 0, 0, net.ErrClosed
	}
	defer c.end()
	if n = c.rest(p, n, end); n < end {
		return 0, n, nil
	}
	return end, n, c.reply(p[body:end])
}

// rest reads the rest of a request that ends at end, and returns how much there is of it. If
// that is less, net/http learns why, after another ReadTimeout at most.
func (c *conn) rest(p []byte, n, end int) int {
	if n >= end {
		return n
	}
	c.renewed = time.Time{}
	if c.Conn.SetReadDeadline(c.server.options.Wall().Add(c.server.ReadTimeout)) != nil {
		return n
	}
	for n < end {
		more, err := c.Conn.Read(p[n:])
		n += more
		if err != nil {
			break
		}
	}
	return n
}

// reply has the handler answer a request whose head is c.head.
func (c *conn) reply(body []byte) error {
	if err := c.renew(c.server.options.Wall()); err != nil {
		return err
	}
	c.vain = max(c.vain-1, 0)
	a := getAnswer()
	defer putAnswer(a)
	c.server.handler.ServeHTTP(a, c.head.request(body))
	closes := c.closing()
	if err := a.send(c.Conn, c.server.options.Wall(), closes); err != nil {
		return err
	}
	if closes || a.closes {
		return io.EOF
	}
	return nil
}

// renew sets the deadlines of the answer and of the next request's arrival.
func (c *conn) renew(now time.Time) error {
	if now.Sub(c.renewed) < renewAfter {
		return nil
	}
	c.renewed = now
	if err := c.SetWriteDeadline(now.Add(c.server.WriteTimeout)); err != nil {
		return err
	}
	return c.Conn.SetReadDeadline(now.Add(c.server.IdleTimeout))
}

// begin begins a request, unless the connection is closed.
func (c *conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = !c.closed
	return c.busy
}

// end ends it, and closes a connection that was to be closed meanwhile.
func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if c.closed {
		_ = c.Conn.Close()
		c.server.ended(c)
	}
}

func (c *conn) closing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Close closes the connection, or has that done by the request that is being served here.
// To net/http the connection is idle then, and its Shutdown would cut the request off.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy && (c.closed || c.server.ends(c)) {
		c.closed = true
		return nil
	}
	c.closed = true
	return c.Conn.Close()
}

// remember keeps the head that net/http is given, for learn.
func (c *conn) remember(p []byte) {
	if c.vain < maxVain {
		c.first = append(c.first, p[:headEnd(p)]...)
	}
}

// learn makes the head that was given to net/http last the one to compare with, if r is
// what it means.
func (c *conn) learn(r *http.Request) {
	if len(c.first) > 0 && c.server.options.Serves(r) {
		c.vain++
		if h := newHead(c.first, r, c.server.options.Varies); h != nil {
			h.like = r.WithContext(c.ctx)
			c.head = h
		}
	}
	c.first = c.first[:0]
}
