package fastpath

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// connContext is the context of requests that are served fast. It does not end by itself
// when the client goes away, as that of net/http does, for nobody reads meanwhile: who
// waits for long asks Gone.
type connContext struct {
	context.Context
	raw syscall.RawConn // nil: a connection of which nothing can be asked
}

func newConnContext(ctx context.Context, nc net.Conn) *connContext {
	c := &connContext{Context: ctx}
	if s, ok := nc.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn() // nil then
	}
	return c
}

// Gone reports whether the client of a request with this very context has gone away, without
// taking what it may have sent. It is false for other contexts. It must not be called when
// the request's handler has returned: it would wait for the next request.
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
