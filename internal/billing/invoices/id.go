package invoices

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// newID is a UUID of version 7 (RFC 9562): the milliseconds of now, µs, and 74 random bits. Ids of one
// time are neighbours in indexes.
func newID(now int64) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(now/1000)<<16)
	_, _ = rand.Read(b[6:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return uuid(b)
}

// uuid is how a UUID is written.
func uuid(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// validID reports whether s is written as the ids of invoices are.
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
