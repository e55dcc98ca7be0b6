package model

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxWindow is the longest window: ten years, far below the maximum of 64 bits of microseconds.
const MaxWindow int64 = 3660 * 86400 * 1e6

var durationUnits = map[string]int64{"us": 1, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6, "d": 86400e6}

// durationText formats µs in the form that ParseDuration accepts, in the largest unit that divides them.
func durationText(us int64) string {
	for _, unit := range []string{"d", "h", "m", "s", "ms"} {
		if n := durationUnits[unit]; us%n == 0 {
			return strconv.FormatInt(us/n, 10) + unit
		}
	}
	return strconv.FormatInt(us, 10) + "us"
}

var errDuration = errors.New(`must be a whole number above 0 and one of us, ms, s, m, h, d, such as "90s" or "1d", at most 3660d`)

// ParseDuration parses a duration of the contract: an integer and one of us ms s m h d. The result is in µs, 1 …
// MaxWindow.
func ParseDuration(s string) (int64, error) {
	digits := 0
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	unit, known := durationUnits[s[digits:]]
	n, err := strconv.ParseInt(s[:digits], 10, 64)
	if err != nil || !known || n < 1 || n > MaxWindow/unit {
		return 0, errDuration
	}
	return n * unit, nil
}

// windowWords are words that people use for a window: their beginning, the calendar window that may be meant, and
// the duration.
var windowWords = []struct{ word, calendar, duration string }{
	{"sec", "", `"1s"`},
	{"min", "", `"1m"`},
	{"hour", "", `"1h"`},
	{"day", "calendar_day", `"24h" or "1d"`},
	{"dai", "calendar_day", `"24h" or "1d"`},
	{"week", "calendar_week", `"168h" or "7d"`},
	{"month", "calendar_month", `"720h" or "30d"`},
	{"year", "calendar_year", `"8760h" or "365d"`},
	{"annual", "calendar_year", `"8760h" or "365d"`},
	{"billing", "billing_period", `"720h" or "30d"`},
}

// badWindow returns the correction for a window that is no duration. calendar means that a calendar window is
// allowed, too. err describes durations.
func badWindow(window string, calendar bool, err error) string {
	bare := strings.TrimLeft(strings.ToLower(strings.TrimPrefix(window, "calendar_")), "0123456789 ")
	for _, w := range windowWords {
		switch {
		case !strings.HasPrefix(bare, w.word), w.calendar == "" && strings.HasPrefix(window, "calendar_"):
		case calendar && w.calendar != "":
			return fmt.Sprintf(`must be %q for the calendar's in the customer's timezone, or a duration such as %s`, w.calendar, w.duration)
		default:
			return "must be a duration such as " + w.duration
		}
	}
	if calendar {
		return err.Error() + ", or calendar_day, calendar_week, calendar_month, calendar_year or billing_period"
	}
	return err.Error()
}
