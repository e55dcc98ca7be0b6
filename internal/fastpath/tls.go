package fastpath

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// handshakeTimeout is the maximum duration of a client's TLS handshake.
const handshakeTimeout = 5 * time.Second

// TLSListener wraps a listener whose connections use TLS. net/http serves HTTP/2 and therefore receives the TLS
// connection itself. For HTTP/1.1 the framing is tracked as without TLS, but no request is served on the fast
// path.
func TLSListener(inner net.Listener, config *tls.Config) net.Listener {
	l := &tlsListener{Listener: inner, config: config, accepted: make(chan accepted), closed: make(chan struct{})}
	go l.run()
	return l
}

type tlsListener struct {
	net.Listener
	config   *tls.Config
	accepted chan accepted
	closed   chan struct{}
	once     sync.Once
}

// accepted is a result of Accept.
type accepted struct {
	conn net.Conn
	err  error
}

// run accepts connections until the listener is closed. A client with a slow handshake does not delay other
// clients.
func (l *tlsListener) run() {
	for {
		nc, err := l.Listener.Accept()
		if err == nil {
			go l.shake(nc)
			continue
		}
		select {
		case l.accepted <- accepted{nil, err}:
		case <-l.closed:
			return
		}
	}
}

// shake performs the handshake. If the handshake fails, net/http receives the connection, encounters the same
// error, and reports it.
func (l *tlsListener) shake(nc net.Conn) {
	secure := tls.Server(nc, l.config)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	next := accepted{conn: secure}
	if err := secure.HandshakeContext(ctx); err == nil && secure.ConnectionState().NegotiatedProtocol != "h2" {
		next.conn = &secureConn{conn{Conn: secure, vain: maxVain}, secure}
	}
	select {
	case l.accepted <- next:
	case <-l.closed:
		_ = nc.Close()
	}
}

// Accept implements net.Listener.
func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *tlsListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// secureConn is an HTTP/1.1 connection over TLS as net/http sees it.
type secureConn struct {
	conn
	secure *tls.Conn
}

// ConnectionState returns the state of the TLS connection. net/http calls it to detect that the connection is
// secure.
func (c *secureConn) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }

// connOf returns the conn that belongs to one of net/http's connections, or nil if no listener of this package
// accepted the connection.
func connOf(nc net.Conn) *conn {
	switch c := nc.(type) {
	case *conn:
		return c
	case *secureConn:
		return &c.conn
	}
	return nil
}
