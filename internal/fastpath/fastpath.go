// Package fastpath answers requests that repeat on a connection, with less work per request than net/http. It
// owns the connections from which net/http reads.
//
// net/http reads, validates and answers the first request on a connection. If the same bytes arrive again on
// that connection as the head of another request, they have the same meaning. Only two parts are parsed again:
// the digits of Content-Length, and the values of headers that Options names. Such a request goes directly to
// the handler. net/http serves all other requests, at any time.
//
// The package also rejects requests whose end two readers could find at two places, before net/http receives
// them. To do so, it tracks the start and end of each request, see framing. It parses nothing else of HTTP.
//
// The package must never judge the content of a request, inspect a request that net/http has begun to read, or
// depend on quotas.
//
// The package avoids the work that net/http does for each request: new maps for the head, contexts, a copy of
// the headers, and a goroutine and two deadlines to detect a client's disconnect. docs/internals/fast-path.md
// describes the rules and their reasons.
package fastpath

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is an http.Server with the fast path underneath.
type Server struct {
	*http.Server

	handler http.Handler
	options Options

	mu     sync.Mutex
	ending map[*conn]struct{} // connections that conn.end closes after their response
	closed bool               // Close was called, so connections are closed at once
}

// Options specifies which requests may be served on the fast path.
type Options struct {
	// Serves reports whether a request that net/http has read may be served on the fast path when its head is
	// repeated. The handler must set Content-Type and a status that has a body. The handler must not keep or
	// change the request, its headers or its body. Its ResponseWriter has only the methods of that interface.
	Serves func(*http.Request) bool
	// Varies contains the headers whose values may differ in a repeated head, in canonical form.
	Varies []string
	// Below is the prefix of targets whose rest has no meaning for the handler, such as a path that a proxy
	// appends. net/http would reject some of these targets, so a percent sign in such a path becomes an
	// underscore. An empty Below means that there are no such targets.
	Below string
	// Wall is the node's own clock, time.Now.
	Wall func() time.Time
}

// New puts the fast path under a server whose handler is set. It panics unless the server has a ReadTimeout, a
// WriteTimeout and an IdleTimeout. The fast path serves the connections of listeners that Listener has wrapped.
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

// serveHTTP serves a request that net/http has read, and learns its head.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.learn(r)
	}
	s.handler.ServeHTTP(w, r)
}

// Shutdown is like http.Server.Shutdown, but also waits for requests on the fast path.
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

// Close is like http.Server.Close, but also cuts off requests on the fast path.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.ending {
		_ = c.Conn.Close()
	}
	s.mu.Unlock()
	return s.Server.Close()
}

// ends records a busy connection, which conn.end closes later. It returns false after Close, when the connection
// must be closed at once.
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

// Listener wraps a TCP or Unix listener whose connections do not use TLS.
func Listener(inner net.Listener) net.Listener { return &listener{Listener: inner} }

type listener struct{ net.Listener }

func (l *listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: nc}, nil
}
