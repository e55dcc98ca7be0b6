package model

import (
	"fmt"
	"strings"
)

// windowWords are words that people write for a window: how they begin, the calendar's
// window that may be meant, and the duration.
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

// badWindow says what to write instead of a window that is no duration; err says what
// durations are.
func badWindow(window string, a Algorithm, err error) string {
	bare := strings.TrimLeft(strings.ToLower(strings.TrimPrefix(window, "calendar_")), "0123456789 ")
	for _, w := range windowWords {
		switch {
		case !strings.HasPrefix(bare, w.word), w.calendar == "" && strings.HasPrefix(window, "calendar_"):
		case a == FixedWindow && w.calendar != "":
			return fmt.Sprintf(`must be %q for the calendar's in the customer's timezone, or a duration such as %s`, w.calendar, w.duration)
		default:
			return "must be a duration such as " + w.duration
		}
	}
	if a == FixedWindow {
		return err.Error() + ", or calendar_day, calendar_week, calendar_month, calendar_year or billing_period"
	}
	return err.Error()
}
