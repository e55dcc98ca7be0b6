package fastpath

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// connContext is the context of a request on the fast path. It does not end when the client
// goes away, as net/http's does: nobody reads from the connection meanwhile. A handler that
// waits for long asks Gone.
type connContext struct {
	context.Context
	raw syscall.RawConn // nil: a connection that Gone cannot look at
}

func newConnContext(ctx context.Context, nc net.Conn) *connContext {
	c := &connContext{Context: ctx}
	if s, ok := nc.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn() // nil then
	}
	return c
}

// Gone reports whether the client of a request with this very context has gone away. It leaves
// the bytes that the client may have sent. It is false for other contexts. It must not be
// called after the request's handler has returned: it would wait while the next request is
// read.
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
