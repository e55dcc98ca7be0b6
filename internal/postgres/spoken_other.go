//go:build !unix

package postgres

import "net"

// hasSpoken always returns true, because this system has no such check. Therefore each connection is checked by
// a round trip.
func hasSpoken(net.Conn) bool { return true }
