package fastpath

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// conn is a connection as net/http sees it. The fields above mu need no lock, because only the goroutine that
// serves the connection uses them, while net/http waits for a request.
type conn struct {
	net.Conn
	server *Server
	ctx    *connContext

	answered bool      // net/http has finished a request
	waiting  bool      // net/http waits for the next request
	first    []byte    // the complete head that net/http received after its wait, or empty
	head     *head     // the head of an earlier request; nil if there is none
	vain     int       // the number of learned heads less the number of repeats
	renewed  time.Time // the time at which the deadlines were set
	overdue  time.Time // the missed deadline of a request passed to net/http; zero if none was missed
	framing  framing   // of the bytes that net/http receives

	mu     sync.Mutex
	busy   bool // the fast path serves a request
	closed bool // Close was called; if busy, end closes the connection
}

// bufferSize is the size of net/http's read buffer. If net/http calls Read with this size, its buffer is empty,
// so it has no byte of the next request. With a smaller size, net/http already has some bytes of the next
// request: they came with the previous request, or net/http read the first byte while it served that request.
const bufferSize = 4 << 10

// maxVain is the value of vain from which on no head is learned. If a client's heads do not repeat, learning
// costs more than it saves.
const maxVain = 8

// renewAfter is the maximum age of deadlines. Setting deadlines for each request would cost as much as reading
// its head.
const renewAfter = time.Second

// enter is called when net/http changes the state of the connection (http.Server.ConnState).
func (c *conn) enter(state http.ConnState) {
	c.waiting = false
	c.answered = state == http.StateNew || state == http.StateIdle
	c.renewed = time.Time{} // net/http sets its own deadlines
	c.overdue = time.Time{}
}

// SetReadDeadline implements net.Conn and detects what net/http reads next. The first call after a response is
// for the wait for a request, and the second call is for a request that has begun. If the time for a request has
// already passed on the fast path, net/http gets no additional time for it.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.answered || c.waiting {
		c.waiting, c.answered = c.answered, false
	}
	if !c.overdue.IsZero() {
		t = c.overdue
	}
	return c.Conn.SetReadDeadline(t)
}

// CloseWrite closes the sending side of a TCP connection. With it, net/http signals to the client that no more
// data follows.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Read reads for net/http. While net/http waits for a request, Read answers requests that repeat the last head.
// It passes the first request with another head to net/http.
func (c *conn) Read(p []byte) (int, error) {
	if !c.waiting || len(p) != bufferSize || c.framing.faulty {
		return c.framing.read(c.Conn, p)
	}
	c.framing.begin()
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
				return c.framing.pass(p, n, nil)
			}
			n = copy(p, p[used:n])
		}
		if err != nil {
			return c.framing.pass(p, n, err)
		}
	}
}

// serve answers the request at the start of p[:n] if the request repeats the head and fits into p. used is the
// length of the request, or 0 if net/http must serve it. have is the number of bytes that p contains afterwards.
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

// rest reads the rest of a request that ends at end, and returns the number of bytes read so far. If bytes are
// missing, net/http gets the reason from its next read.
func (c *conn) rest(p []byte, n, end int) int {
	if n >= end {
		return n
	}
	c.renewed = time.Time{}
	until := c.server.options.Wall().Add(c.server.ReadTimeout)
	if c.Conn.SetReadDeadline(until) != nil {
		return n
	}
	for n < end {
		more, err := c.Conn.Read(p[n:])
		n += more
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.overdue = until
		}
		if err != nil {
			break
		}
	}
	return n
}

// reply calls the handler for a request whose head is c.head, and sends the response.
func (c *conn) reply(body []byte) error {
	if err := c.renew(c.server.options.Wall()); err != nil {
		return err
	}
	c.vain = max(c.vain-1, 0)
	a := getAnswer()
	defer putAnswer(a)
	a.bare = c.head.like.Method == http.MethodHead
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

// renew sets the write deadline of the response and the read deadline for the next request.
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

// begin marks the connection as busy, unless it is closed.
func (c *conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = !c.closed
	return c.busy
}

// end marks the connection as no longer busy. It closes the connection if Close was called while the connection
// was busy.
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

// Close closes the connection. While the fast path serves a request, Close only marks the connection, and the
// method end closes it after the response. net/http considers such a connection idle, so its Shutdown would
// otherwise cut off the request.
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

// remember stores the head that net/http receives, for learn.
func (c *conn) remember(p []byte) {
	if c.vain < maxVain {
		c.first = append(c.first, p[:headEnd(p)]...)
	}
}

// learn makes the last head that net/http received the head with which later requests are compared. It does so
// only if the head certainly belongs to r.
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

// An answer is the ResponseWriter of a request on the fast path. It sends the whole response when the handler
// has returned.
type answer struct {
	header http.Header
	status int
	length string // the handler's Content-Length
	closes bool   // the handler has set Connection: close
	body   []byte
	bare   bool // the body is not sent, because the request is a HEAD request
	out    bytes.Buffer

	second int64  // the second in date, Unix time
	date   []byte // the value of Date, cached because formatting it costs more than all other headers
}

// maxKept is the maximum size in bytes of an answer that is reused for another request. Larger answers are left
// to the garbage collector.
const maxKept = 64 << 10

var answers = sync.Pool{New: func() any { return &answer{header: make(http.Header, 16)} }}

func getAnswer() *answer { return answers.Get().(*answer) }

func putAnswer(a *answer) {
	if cap(a.body) > maxKept || a.out.Cap() > maxKept {
		return
	}
	a.reset()
	answers.Put(a)
}

// reset prepares the answer for the next request.
func (a *answer) reset() {
	clear(a.header)
	a.status, a.length, a.closes, a.bare = 0, "", false, false
	a.body = a.body[:0]
	a.out.Reset()
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	a.status, a.length, a.closes = status, a.header.Get(contentLength), a.header.Get("Connection") == "close"
	b := append(a.out.AvailableBuffer(), "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	b = append(b, "\r\n"...)
	a.out.Write(b)
	_ = a.header.Write(&a.out) // writing to a bytes.Buffer never fails
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.body = append(a.body, p...)
	return len(p), nil
}

// errLength reports that the length of the body differs from the handler's Content-Length. The connection is
// then closed, because the client would read the next response as a part of this one.
var errLength = errors.New("the handler's Content-Length is not that of its answer")

// send writes the response as net/http would: the handler's headers, then Date, Content-Length and, if closes is
// true, Connection. now is the time of the response.
func (a *answer) send(to io.Writer, now time.Time, closes bool) error {
	a.WriteHeader(http.StatusOK)
	if a.length != "" && a.length != strconv.Itoa(len(a.body)) {
		return errLength
	}
	if second := now.Unix(); second != a.second || len(a.date) == 0 {
		a.second, a.date = second, now.UTC().AppendFormat(a.date[:0], http.TimeFormat)
	}
	b := append(a.out.AvailableBuffer(), "Date: "...)
	b = append(b, a.date...)
	if a.length == "" && (len(a.body) > 0 || !a.bare) {
		b = append(b, "\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(a.body)), 10)
	}
	if closes && !a.closes {
		b = append(b, "\r\nConnection: close"...)
	}
	b = append(b, "\r\n\r\n"...)
	if !a.bare {
		b = append(b, a.body...)
	}
	a.out.Write(b)
	_, err := a.out.WriteTo(to)
	return err
}
