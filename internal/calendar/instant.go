package calendar

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// ErrInstant reports that a text is not an instant in the supported range.
var ErrInstant = errors.New("not an RFC 3339 time in the years 0 to 9999 of UTC")

// rfc3339 is the grammar of RFC 3339, section 5.6, in which T and Z may be lower case. time.Parse accepts more:
// hours of one digit, a decimal comma, and offsets of 24 hours.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// ParseInstant parses an RFC 3339 time, truncated to microseconds since the Unix epoch. It returns ErrInstant
// for a time outside MinInstant to MaxInstant in UTC, whatever year the time shows in its own offset. It also
// returns ErrInstant for a leap second, which an instant cannot represent.
func ParseInstant(text string) (int64, error) {
	const most = 64 // more characters than any real time with a fraction
	if len(text) > most || !rfc3339.MatchString(text) {
		return 0, fmt.Errorf("%w: %.40q", ErrInstant, text)
	}
	t, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text))
	if err != nil {
		return 0, fmt.Errorf("%w: %.40q", ErrInstant, text)
	}
	at := t.UnixMicro()
	if at < MinInstant || at > MaxInstant {
		return 0, fmt.Errorf("%w: %.40q", ErrInstant, text)
	}
	return at, nil
}
