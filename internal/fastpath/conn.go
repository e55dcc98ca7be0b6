package fastpath

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// conn is a connection as net/http sees it. Only the goroutine that serves it reads while
// net/http waits for a request, so what is above the lock needs none.
type conn struct {
	net.Conn
	server *Server
	ctx    *connContext

	waiting bool      // net/http has answered and read all that it was given
	first   []byte    // of what it was given then: the head, in whole, or nothing
	head    *head     // of a request that was served before; nil: none
	taught  int       // heads that were learned since one was repeated
	renewed time.Time // when the deadlines were set

	mu     sync.Mutex
	busy   bool // a request is served here
	closed bool // if it is busy, once it is not
}

// maxTaught is how many heads are learned, none of which comes again: clients that send
// another one each time are not worth it.
const maxTaught = 8

// renewAfter is how old deadlines get: setting them for each request would cost as much as
// reading its head.
const renewAfter = time.Second

// await is called when net/http begins to wait for a request.
func (c *conn) await() {
	c.waiting = true
	c.renewed = time.Time{} // the deadlines are net/http's
}

// Read reads for net/http. While it waits for a request, what repeats the last head is
// answered here; the first that does not is what it gets.
func (c *conn) Read(p []byte) (int, error) {
	if !c.waiting {
		return c.Conn.Read(p)
	}
	n, err := c.Conn.Read(p)
	for err == nil {
		body, end, ok := c.head.match(p[:n])
		if ok && end > n && end <= len(p) {
			n = c.rest(p, n, end)
		}
		if !ok || end > n {
			c.waiting = false
			c.remember(p[:n])
			return n, nil
		}
		if err = c.serve(p[body:end]); err != nil {
			return 0, err
		}
		if n = copy(p, p[end:n]); n == 0 {
			n, err = c.Conn.Read(p)
		}
	}
	return n, err
}

// rest reads the rest of a request that ends at end, and returns how much there is of it: if
// that is less, net/http learns why.
func (c *conn) rest(p []byte, n, end int) int {
	c.renewed = time.Time{}
	if c.SetReadDeadline(c.server.options.Wall().Add(c.server.ReadTimeout)) != nil {
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

// serve answers a request whose head is c.head.
func (c *conn) serve(body []byte) error {
	if !c.begin() {
		return net.ErrClosed
	}
	defer c.done()
	now := c.server.options.Wall()
	if err := c.renew(now); err != nil {
		return err
	}
	c.taught = 0
	a := getAnswer()
	defer putAnswer(a)
	c.server.handler.ServeHTTP(a, c.head.request(body))
	if c.closing() {
		a.header["Connection"] = closeAfter
	}
	if err := a.send(c.Conn, now); err != nil {
		return err
	}
	if a.header.Get("Connection") == closeAfter[0] {
		return io.EOF
	}
	return nil
}

var closeAfter = []string{"close"}

// renew sets the deadlines of the answer and of the next request's arrival.
func (c *conn) renew(now time.Time) error {
	if now.Sub(c.renewed) < renewAfter {
		return nil
	}
	c.renewed = now
	if err := c.SetWriteDeadline(now.Add(c.server.WriteTimeout)); err != nil {
		return err
	}
	return c.SetReadDeadline(now.Add(c.server.IdleTimeout))
}

// begin begins a request, unless the connection is closed.
func (c *conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = !c.closed
	return c.busy
}

// done ends it, and closes a connection that was to be closed meanwhile.
func (c *conn) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if c.closed {
		_ = c.Conn.Close()
		c.server.ending.Add(-1)
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
	if !c.busy {
		c.closed = true
		return c.Conn.Close()
	}
	if !c.closed {
		c.closed = true
		c.server.ending.Add(1)
	}
	return nil
}

// remember keeps the head that net/http is given, for learn.
func (c *conn) remember(p []byte) {
	c.first = c.first[:0]
	if c.taught < maxTaught {
		if end := headEnd(p); end > 0 {
			c.first = append(c.first, p[:end]...)
		}
	}
}

// learn makes the head that was given to net/http last the one to compare with, if r is
// what it means.
func (c *conn) learn(r *http.Request) {
	if len(c.first) == 0 || !c.server.options.Serves(r) {
		return
	}
	if h := newHead(c.first, r, c.server.options.Varies); h != nil {
		h.like = r.WithContext(c.ctx)
		c.head, c.taught = h, c.taught+1
	}
	c.first = c.first[:0]
}
