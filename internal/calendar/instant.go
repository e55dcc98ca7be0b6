package calendar

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// ErrInstant says that a text is not an instant that can be kept and shown.
var ErrInstant = errors.New("not an RFC 3339 time in the years 0 to 9999 of UTC")

// rfc3339 is the grammar of RFC 3339, 5.6, which lets T and Z be small. time.Parse takes
// more than that: hours of one digit, a comma, and offsets of 24 hours.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// ParseInstant reads an RFC 3339 time, cut to microseconds since the Unix epoch. A time
// outside MinInstant to MaxInstant in UTC is ErrInstant, whatever year its offset shows. So is
// a leap second, which no instant here can hold.
func ParseInstant(text string) (int64, error) {
	const most = 64 // more digits of a fraction than anybody has
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
