package respond

import (
	"strings"
	"time"
	"unicode"
)

// Time converts an instant, µs, to a time in UTC.
func Time(at int64) time.Time { return time.UnixMicro(at).UTC() }

// OrNull returns nil (null in JSON) for an empty text.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// FieldText returns a text for people as the value of a header field of HTTP/1.1 and HTTP/2 (RFC 9110, section
// 5.5; RFC 9113, section 8.2.1). The value is UTF-8, has a space for each control character, and has no white
// space at its ends.
func FieldText(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r // U+FFFD if a byte is not valid UTF-8
	}, text))
}

// InstantOrNull converts an optional instant, µs. It returns nil for nil.
func InstantOrNull(at *int64) *time.Time {
	if at == nil {
		return nil
	}
	t := Time(*at)
	return &t
}

// Listed returns the list, or an empty list for nil, because JSON would show nil as null.
func Listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
