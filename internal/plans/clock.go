package plans

import "time"

// minClock and maxClock are the first and the last instant that a test clock may show, µs. After maxClock
// there is still time for every window or period that begins then to end.
const minClock = int64(0)

var maxClock = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// AnyClock is the word that selects all clocks when invoices are listed, so no new clock may have this
// key.
const AnyClock = "any"

// AnyClockRule is the error text for a new clock whose key is AnyClock.
const AnyClockRule = `must not be "any", which stands for all clocks where invoices are listed`

// ClockRule is the error text for an instant that a test clock cannot show.
const ClockRule = "must be from 1970-01-01T00:00:00Z to 9000-01-01T00:00:00Z"

// CheckTestClock returns the errors of setting a test clock to now, µs, or nil if there are no errors.
func CheckTestClock(key string, now int64) error {
	var bad faults
	bad.key("key", key)
	if now < minClock || now > maxClock {
		bad.add("now", ClockRule)
	}
	return bad.err()
}
