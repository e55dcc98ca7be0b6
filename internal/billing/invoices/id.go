package invoices

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// newID returns a UUID of version 7 (RFC 9562) with the milliseconds of now, µs, and 74 random bits. Ids of
// the same time are adjacent in indexes.
func newID(now int64) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(now/1000)<<16)
	_, _ = rand.Read(b[6:]) // rand.Read never fails
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return uuid(b)
}

// uuid formats a UUID.
func uuid(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// validID reports whether s has the format of an invoice id.
func validID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		if hyphen != (c == '-') || !hyphen && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
