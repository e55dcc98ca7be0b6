package calendar

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWindowExamples(t *testing.T) {
	windows := map[string]func(int64, *time.Location) (int64, int64){"day": Day, "week": Week, "month": Month, "year": Year}
	for _, c := range []struct{ why, zone, window, at, start, end string }{
		{"plain", "UTC", "day", "2026-02-28T23:59:59.999999Z", "2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"the start belongs", "UTC", "day", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"Sunday ends a week", "UTC", "week", "2026-03-01T12:00:00Z", "2026-02-23T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"before the epoch", "UTC", "week", "1969-12-28T12:00:00Z", "1969-12-22T00:00:00Z", "1969-12-29T00:00:00Z"},
		{"leap February", "Asia/Kolkata", "month", "2028-02-29T18:29:59Z", "2028-01-31T18:30:00Z", "2028-02-29T18:30:00Z"},
		{"year", "Asia/Kathmandu", "year", "2026-12-31T18:15:00Z", "2026-12-31T18:15:00Z", "2027-12-31T18:15:00Z"},
		{"midnight does not exist", "America/Sao_Paulo", "day", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"the day before it", "America/Sao_Paulo", "day", "2018-11-04T02:59:59Z", "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z"},
		{"set back at midnight", "America/Sao_Paulo", "day", "2019-02-17T02:30:00Z", "2019-02-16T02:00:00Z", "2019-02-17T03:00:00Z"},
		{"midnight does not exist", "Asia/Beirut", "day", "2022-03-27T00:00:00Z", "2022-03-26T22:00:00Z", "2022-03-27T21:00:00Z"},
		{"midnight does not exist", "Africa/Cairo", "day", "2023-04-28T00:00:00Z", "2023-04-27T22:00:00Z", "2023-04-28T21:00:00Z"},
		{"midnight twice", "America/Havana", "day", "2022-11-06T05:30:00Z", "2022-11-06T04:00:00Z", "2022-11-07T05:00:00Z"},
		{"set back over midnight", "America/St_Johns", "day", "2006-10-29T02:31:00Z", "2006-10-29T02:30:00Z", "2006-10-30T03:30:00Z"},
		{"before a skipped day", "Pacific/Apia", "day", "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"after a skipped day", "Pacific/Apia", "day", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"six days", "Pacific/Apia", "week", "2011-12-30T10:00:00Z", "2011-12-26T10:00:00Z", "2012-01-01T10:00:00Z"},
		{"thirty days", "Pacific/Apia", "month", "2011-12-30T10:00:00Z", "2011-12-01T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"clock change inside", "Europe/Berlin", "month", "2026-03-31T21:59:59Z", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"},
	} {
		start, end := windows[c.window](us(t, c.at), mustLocation(t, c.zone))
		if start != us(t, c.start) || end != us(t, c.end) {
			t.Errorf("%s: %s of %s in %s: got [%s, %s), want [%s, %s)", c.why, c.window, c.at, c.zone, rfc(start), rfc(end), c.start, c.end)
		}
	}
}

func TestWindowsAreTheNaiveRecount(t *testing.T) {
	// The anchors by which the recount counts: a Monday for weeks.
	rapid.Check(t, func(t *rapid.T) {
		loc, sec := drawZone(t)
		local := time.Unix(naiveShows(sec, loc), 0).UTC()
		for _, c := range []struct {
			unit   Unit
			window func(int64, *time.Location) (int64, int64)
			anchor time.Time
		}{
			{Days, Day, time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC)},
			{Weeks, Week, time.Date(local.Year(), local.Month(), local.Day()-int(local.Weekday()+6)%7, 0, 0, 0, 0, time.UTC)},
			{Months, Month, time.Date(local.Year(), local.Month(), 1, 0, 0, 0, 0, time.UTC)},
			{Years, Year, time.Date(local.Year(), 1, 1, 0, 0, 0, 0, time.UTC)},
		} {
			start, end := c.window(sec*second, loc)
			_, wantStart, wantEnd := naivePeriod(c.anchor.Unix(), Interval{c.unit, 1}, loc, sec)
			if start != wantStart*second || end != wantEnd*second {
				t.Fatalf("%s of %s in %s: got [%s, %s), want [%s, %s)", c.unit, rfc(sec*second), loc,
					rfc(start), rfc(end), rfc(wantStart*second), rfc(wantEnd*second))
			}
		}
	})
}

// A larger window is a sum of whole smaller ones.
func TestWindowsNest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, sec := drawZone(t)
		for _, larger := range []func(int64, *time.Location) (int64, int64){Week, Month, Year} {
			start, end := larger(sec*second, loc)
			if s, _ := Day(start, loc); s != start {
				t.Fatalf("%s starts inside a day", rfc(start))
			}
			if _, e := Day(end-1, loc); e != end {
				t.Fatalf("%s ends inside a day", rfc(end))
			}
		}
	})
}

// Days later the clock of the zone shows the same time, by the rule for jumps.
func TestDaysLaterIsTheNaiveRecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, sec := drawZone(t)
		micros, days := rapid.Int64Range(0, second-1).Draw(t, "micros"), rapid.IntRange(0, 400).Draw(t, "days")
		want := max(sec, naiveInstant(naiveShows(sec, loc)+int64(days)*86400, loc))*second + micros
		if got := DaysLater(sec*second+micros, days, loc); got != want {
			t.Fatalf("%s and %d days in %s: %s, want %s", rfc(sec*second+micros), days, loc, rfc(got), rfc(want))
		}
	})
}
