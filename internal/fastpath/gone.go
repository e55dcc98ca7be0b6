package fastpath

import (
	"context"
	"net"
	"syscall"
)

// connContext is the context of requests that are served fast. It does not end by itself
// when the client goes away, as that of net/http does, for nobody reads meanwhile: who
// waits for long asks Gone.
type connContext struct {
	context.Context
	conn net.Conn
}

// Gone reports whether the client of a request with this context has gone away: without
// waiting, and without taking what it may have sent. It is false for other contexts.
func Gone(ctx context.Context) bool {
	c, ok := ctx.(*connContext)
	if !ok {
		return false
	}
	s, ok := c.conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		gone = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
		return true
	})
	return gone || err != nil
}
