// Package fastpath answers requests that repeat on a connection, with less work than net/http
// does for each. It owns the connections that net/http reads.
//
// net/http reads, judges and answers the first request on a connection. When the same bytes
// come again on that connection, as the head of another request, they mean the same again.
// Only what varies in them by rule is read again: the digits of Content-Length, and the values
// of headers that Options names. Such a request goes straight to the handler. All other
// requests stay net/http's, at any time.
//
// It also refuses requests whose end two readers may see in two places, before net/http has them.
// For that it follows where requests begin and end, see framing. It reads nothing else of HTTP.
//
// The package must never judge what a request asks for, look into what net/http has begun to read,
// or know of quotas.
//
// It saves what net/http does for each request. These are new maps for the head, contexts, a
// copy of the headers, and a goroutine and two deadlines to notice that the client goes away.
// docs/internals/fast-path.md has the rules and their reasons.
package fastpath

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is an http.Server with the fast path under it.
type Server struct {
	*http.Server

	handler http.Handler
	options Options

	mu     sync.Mutex
	ending map[*conn]struct{} // connections that end closes after their answer
	closed bool               // Close was called: connections are closed at once
}

// Options says what may be served fast.
type Options struct {
	// Serves reports whether a request that net/http has read may be served fast when its head
	// comes again. Its handler must set Content-Type and a status that has a body. The handler
	// must not keep or change the request, its headers or its body. Its ResponseWriter has the
	// methods of that interface and no others.
	Serves func(*http.Request) bool
	// Varies names the headers whose values may differ in a repeated head, in canonical form.
	Varies []string
	// Below is the beginning of targets of which nothing more is read, as of a path that a proxy appends. net/http
	// would refuse some of these targets itself: a percent sign in such a path becomes _. Empty: there are none.
	Below string
	// Wall is the node's own clock, time.Now.
	Wall func() time.Time
}

// New puts the fast path under a server that has its handler. It panics unless the server has
// a ReadTimeout, a WriteTimeout and an IdleTimeout. The fast path serves connections of
// listeners that Listener has wrapped. net/http serves all others.
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

// serveHTTP serves what net/http has read, and remembers its head.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.learn(r)
	}
	s.handler.ServeHTTP(w, r)
}

// Shutdown is that of the http.Server. It also waits for requests on the fast path.
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

// Close is that of the http.Server. It also cuts off requests on the fast path.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.ending {
		_ = c.Conn.Close()
	}
	s.mu.Unlock()
	return s.Server.Close()
}

// ends notes a busy connection, which its own end will close. It returns false after Close:
// then the connection must be closed at once.
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

// Listener wraps a listener whose connections are read as they are: TCP or a Unix socket,
// without TLS.
func Listener(inner net.Listener) net.Listener { return &listener{Listener: inner} }

type listener struct{ net.Listener }

func (l *listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: nc}, nil
}
