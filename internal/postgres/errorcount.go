package postgres

import (
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// digits are the characters of a SQLSTATE.
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// errorCounts are the numbers of errors that servers returned on any connection, by the class of their SQLSTATE.
// The class is the first two characters.
var errorCounts [len(digits) * len(digits)]atomic.Int64

// usualClasses are the classes that are reported even before their first error, so that an alert detects the
// first error, too.
var usualClasses = []string{"08", "25", "28", "40", "42", "53", "55", "57", "58", "XX"}

// countError counts an error that a server returned.
func countError(err *pgconn.PgError) {
	if len(err.Code) != len("00000") {
		return
	}
	if a, b := digitOf(err.Code[0]), digitOf(err.Code[1]); a >= 0 && b >= 0 {
		errorCounts[len(digits)*a+b].Add(1)
	}
}

func digitOf(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'Z':
		return int(c-'A') + 10
	}
	return -1
}

// ErrorCounts returns the numbers of errors that servers have returned to this process since its start, by the
// class of their SQLSTATE. The class is the first two characters.
func ErrorCounts() map[string]int64 {
	counts := make(map[string]int64, len(usualClasses))
	for _, class := range usualClasses {
		counts[class] = 0
	}
	for i := range errorCounts {
		if n := errorCounts[i].Load(); n > 0 {
			counts[string([]byte{digits[i/len(digits)], digits[i%len(digits)]})] = n
		}
	}
	return counts
}
