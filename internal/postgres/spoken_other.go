//go:build !unix

package postgres

import "net"

// hasSpoken returns true, because this operating system has no such check. Therefore a round trip tests each
// connection.
func hasSpoken(net.Conn) bool { return true }
