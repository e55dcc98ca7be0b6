package plans

import "time"

// minClock and maxClock are the first and the last instant that a test clock may show, µs. The
// last one leaves room: every window or period that begins then has an end.
const minClock = int64(0)

var maxClock = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// AnyClock stands for all clocks where invoices are listed. So no new clock has this key.
const AnyClock = "any"

// AnyClockRule is what is said of a new clock with the key AnyClock.
const AnyClockRule = `must not be "any", which stands for all clocks where invoices are listed`

// ClockRule is what is said of an instant that a test clock cannot show.
const ClockRule = "must be from 1970-01-01T00:00:00Z to 9000-01-01T00:00:00Z"

// CheckTestClock is what is wrong with setting a test clock to now, µs, nil if nothing is.
func CheckTestClock(key string, now int64) error {
	var bad faults
	bad.key("key", key)
	if now < minClock || now > maxClock {
		bad.add("now", ClockRule)
	}
	return bad.err()
}
