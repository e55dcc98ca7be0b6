// Package fastpath responds to requests that repeat on a connection, with less work than net/http needs for each
// request. It owns the connections that net/http reads.
//
// net/http reads, checks and serves the first request on a connection. If the same bytes arrive again on that
// connection as the head of another request, they have the same meaning. Only the parts that may vary are parsed
// again: the digits of Content-Length, and the values of headers that Options names. Such a request is passed
// directly to the handler. net/http always serves all other requests.
//
// The package also rejects requests whose end two readers may find at different positions, before net/http
// receives them. For this purpose it follows where requests begin and end, see framing. It parses nothing else
// of HTTP.
//
// The package must never judge the purpose of a request, read bytes that net/http has begun to read, or know of
// quotas.
//
// It saves the work of net/http for each request: new maps for the head, contexts, a copy of the headers, and a
// goroutine and two deadlines that detect a disconnected client. docs/internals/fast-path.md describes the rules
// and their reasons.
package fastpath

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is an http.Server with a fast path.
type Server struct {
	*http.Server

	handler http.Handler
	options Options

	mu     sync.Mutex
	ending map[*conn]struct{} // connections that end closes after their response
	closed bool               // Close was called, so connections are closed at once
}

// Options specifies the requests that may use the fast path.
type Options struct {
	// Serves reports whether a request that net/http has read may use the fast path when its head repeats. Its
	// handler must set Content-Type and a status that has a body. The handler must not keep or change the
	// request, its headers or its body. Its ResponseWriter has only the methods of that interface.
	Serves func(*http.Request) bool
	// Varies lists the headers whose values may differ in a repeated head, in canonical form.
	Varies []string
	// Below is the prefix of targets whose rest is ignored, such as a path that a proxy appends. net/http would
	// reject some of these targets, so the package replaces percent signs in such a path by _. If Below is
	// empty, there are no such targets.
	Below string
	// Wall is the node's own clock, time.Now.
	Wall func() time.Time
}

// New adds the fast path to a server that has a handler. It panics unless the server has a ReadTimeout, a
// WriteTimeout and an IdleTimeout. The fast path serves only connections of listeners that Listener has wrapped.
// net/http serves all other connections.
func New(server *http.Server, o Options) *Server {
	if min(server.ReadTimeout, server.WriteTimeout, server.IdleTimeout) <= 0 {
		panic("fastpath: a server needs all timeouts")
	}
	s := &Server{Server: server, handler: server.Handler, options: o, ending: make(map[*conn]struct{})}
	server.Handler = http.HandlerFunc(s.serveHTTP)
	server.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		c := connOf(nc)
		if c == nil {
			return ctx
		}
		c.server, c.framing.below = s, s.options.Below
		ctx = context.WithValue(ctx, connKey{}, c)
		c.ctx = newConnContext(ctx, c.Conn)
		return ctx
	}
	server.ConnState = func(nc net.Conn, state http.ConnState) {
		if c := connOf(nc); c != nil && state != http.StateClosed {
			c.enter(state)
		}
	}
	return s
}

// connKey is the context key of a request's *conn.
type connKey struct{}

// serveHTTP serves a request that net/http has read, and remembers its head.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.learn(r)
	}
	s.handler.ServeHTTP(w, r)
}

// Shutdown shuts down the http.Server. It also waits for requests on the fast path.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.Server.Shutdown(ctx)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.left() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// Close closes the http.Server. It also cuts off requests on the fast path.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.ending {
		_ = c.Conn.Close()
	}
	s.mu.Unlock()
	return s.Server.Close()
}

// ends records a busy connection that its end method will close. It returns false after Close, and then the
// connection must be closed at once.
func (s *Server) ends(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.ending[c] = struct{}{}
	}
	return !s.closed
}

func (s *Server) ended(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ending, c)
}

func (s *Server) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ending)
}

// Listener wraps a listener of connections without TLS: TCP or a Unix socket.
func Listener(inner net.Listener) net.Listener { return &listener{Listener: inner} }

type listener struct{ net.Listener }

func (l *listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: nc}, nil
}
