package fastpath

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// connContext is the context of a request on the fast path. Unlike the context of net/http, it does not end when
// the client disconnects, because nobody reads from the connection during the request. A handler that waits for
// a long time calls Gone.
type connContext struct {
	context.Context
	raw syscall.RawConn // nil if Gone cannot inspect the connection
}

func newConnContext(ctx context.Context, nc net.Conn) *connContext {
	c := &connContext{Context: ctx}
	if s, ok := nc.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn() // nil after an error
	}
	return c
}

// Gone reports whether the client of a request with this very context has disconnected. It does not consume
// bytes that the client may have sent. It returns false for other contexts. It must not be called after the
// request's handler has returned, because it would then wait while the next request is read.
func Gone(ctx context.Context) bool {
	c, ok := ctx.(*connContext)
	if !ok || c.raw == nil {
		return false
	}
	gone := false
	err := c.raw.Read(func(fd uintptr) bool {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		silent := errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
		gone = !silent && (n == 0 || err != nil)
		return true
	})
	return gone || err != nil
}
