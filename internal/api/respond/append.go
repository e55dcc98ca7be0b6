package respond

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

// AppendString appends a JSON string. Keys and names are nearly always plain ASCII, which is
// copied. Other text is escaped, and invalid UTF-8 in it is replaced.
func AppendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			b, _ = jsontext.AppendQuote(b, s) // its error says that UTF-8 was replaced
			return b
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// AppendTime appends an instant in µs as a JSON string: RFC 3339 in UTC, with up to six
// decimals. An instant outside the years 0 to 9999 becomes the nearest one inside.
func AppendTime(b []byte, at int64) []byte {
	at = min(max(at, calendar.MinInstant), calendar.MaxInstant)
	b = append(b, '"')
	b = time.UnixMicro(at).UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// appendReset appends the instant of a reset, or null for never.
func appendReset(b []byte, at int64) []byte {
	if at == model.NoReset {
		return append(b, "null"...)
	}
	return AppendTime(b, at)
}

// appendWait appends a wait in whole milliseconds, rounded up, or null for never.
func appendWait(b []byte, wait int64) []byte {
	if wait == model.Never {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, ceilDiv(wait, 1000), 10)
}

// ceilDiv is a/b rounded up, for b > 0; a below 0 counts as 0.
func ceilDiv(a, b int64) int64 {
	if a <= 0 {
		return 0
	}
	return (a-1)/b + 1
}
