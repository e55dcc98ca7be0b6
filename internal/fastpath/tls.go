package fastpath

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// handshakeTimeout is how long a client has for the handshake of TLS.
const handshakeTimeout = 5 * time.Second

// TLSListener wraps a listener whose connections speak TLS. HTTP/2 is net/http's, which has to see
// the TLS connection for that. Of HTTP/1.1 the framing is followed, as without TLS, but nothing is
// served fast.
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

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

// run accepts until the listener is closed. A client that is slow to shake hands delays no other.
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

// shake does the handshake. A connection on which it fails is net/http's, which sees the same error
// and says it.
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

// secureConn is a connection of HTTP/1.1 over TLS as net/http sees it.
type secureConn struct {
	conn
	secure *tls.Conn
}

// ConnectionState is how net/http learns that the connection is secure.
func (c *secureConn) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }

// connOf is the connection under one of net/http's; nil: it is none of ours.
func connOf(nc net.Conn) *conn {
	switch c := nc.(type) {
	case *conn:
		return c
	case *secureConn:
		return &c.conn
	}
	return nil
}
