package respond

import (
	"strings"
	"time"
	"unicode"
)

// Time is an instant, µs.
func Time(at int64) time.Time { return time.UnixMicro(at).UTC() }

// OrNull is null for an empty text.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// FieldText returns a text for people as the value of a header field, which HTTP/1.1 and HTTP/2 take (RFC
// 9110, section 5.5; RFC 9113, section 8.2.1): UTF-8, with a space for each control character, and without
// white space at the ends.
func FieldText(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r // U+FFFD for a byte that is no UTF-8
	}, text))
}

// InstantOrNull is null for none.
func InstantOrNull(at *int64) *time.Time {
	if at == nil {
		return nil
	}
	t := Time(*at)
	return &t
}

// Listed is an empty list for none, which JSON would show as null.
func Listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
