package calendar

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestHourExamples(t *testing.T) {
	for _, c := range []struct{ why, zone, at, start, end string }{
		{"whole", "UTC", "2026-01-01T00:59:59.999999Z", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"},
		{"before the epoch", "UTC", "1969-12-31T23:59:59.999999Z", "1969-12-31T23:00:00Z", "1970-01-01T00:00:00Z"},
		{"half past", "Asia/Kolkata", "2026-01-01T00:30:00Z", "2026-01-01T00:30:00Z", "2026-01-01T01:30:00Z"},
		{"quarter past", "Asia/Kathmandu", "2026-01-01T00:14:59Z", "2025-12-31T23:15:00Z", "2026-01-01T00:15:00Z"},
		{"half an hour is skipped", "Australia/Lord_Howe", "2026-10-03T15:30:00Z", "2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z"},
		{"the hour before", "Australia/Lord_Howe", "2026-10-03T15:29:59Z", "2026-10-03T14:30:00Z", "2026-10-03T15:30:00Z"},
		{"half an hour twice", "Australia/Lord_Howe", "2026-04-04T15:00:00Z", "2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z"},
		{"its first pass", "Australia/Lord_Howe", "2026-04-04T14:59:59Z", "2026-04-04T14:00:00Z", "2026-04-04T15:00:00Z"},
		{"set back at one past", "America/St_Johns", "2006-10-29T02:30:30Z", "2006-10-29T02:30:00Z", "2006-10-29T02:31:00Z"},
		{"and after that", "America/St_Johns", "2006-10-29T02:31:00Z", "2006-10-29T02:31:00Z", "2006-10-29T03:30:00Z"},
		{"a quarter that never was", "Asia/Kathmandu", "1985-12-31T18:30:00Z", "1985-12-31T18:30:00Z", "1985-12-31T19:15:00Z"},
		{"offset of seconds", "Africa/Monrovia", "1971-01-01T00:44:30Z", "1971-01-01T00:44:30Z", "1971-01-01T01:44:30Z"},
		{"no cut at a year's end", "Australia/Adelaide", "2041-01-01T00:10:00Z", "2040-12-31T23:30:00Z", "2041-01-01T00:30:00Z"},
		{"nor before it", "Australia/Adelaide", "2040-12-31T23:50:00Z", "2040-12-31T23:30:00Z", "2041-01-01T00:30:00Z"},
		{"a leap year's last day", "Australia/Adelaide", "2040-12-31T00:10:00Z", "2040-12-30T23:30:00Z", "2040-12-31T00:30:00Z"},
		{"and the one before", "Australia/Adelaide", "2040-12-30T23:50:00Z", "2040-12-30T23:30:00Z", "2040-12-31T00:30:00Z"},
	} {
		start, end := Hour(us(t, c.at), mustLocation(t, c.zone))
		if start != us(t, c.start) || end != us(t, c.end) {
			t.Errorf("%s: hour of %s in %s: got [%s, %s), want [%s, %s)", c.why, c.at, c.zone, rfc(start), rfc(end), c.start, c.end)
		}
	}
}

func TestHourIsTheNaiveRecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, sec := drawZone(t)
		micros := rapid.Int64Range(0, second-1).Draw(t, "micros")
		start, end := Hour(sec*second+micros, loc)
		wantStart, wantEnd := naiveHour(sec, loc)
		if start != wantStart*second || end != wantEnd*second {
			t.Fatalf("hour of %s in %s: got [%s, %s), want [%s, %s)", rfc(sec*second), loc,
				rfc(start), rfc(end), rfc(wantStart*second), rfc(wantEnd*second))
		}
	})
}

// Around every jump of every odd zone: hours tile time, none is longer than an
// hour or empty, and every local day is a sum of whole ones.
func TestDaysAreSumsOfHours(t *testing.T) {
	for _, name := range oddZones {
		loc := mustLocation(t, name)
		for _, jump := range jumps(t, name) {
			at, last := Day((jump-2*86400)*second, loc)
			for range 4 {
				for at < last {
					start, end := Hour(at, loc)
					if start != at || end <= start || end > start+hour {
						t.Fatalf("%s: hour [%s, %s) at %s", name, rfc(start), rfc(end), rfc(at))
					}
					at = end
				}
				if at != last {
					t.Fatalf("%s: an hour runs over the day's end %s to %s", name, rfc(last), rfc(at))
				}
				_, last = Day(at, loc)
			}
		}
	}
}

func TestHourOutOfRangeIsTheNearest(t *testing.T) {
	loc := mustLocation(t, "Asia/Kathmandu")
	if start, end := Hour(math.MaxInt64, loc); start > MaxInstant || end <= MaxInstant {
		t.Errorf("got [%d, %d)", start, end)
	}
	if start, end := Hour(math.MinInt64, loc); start > MinInstant || end <= MinInstant {
		t.Errorf("got [%d, %d)", start, end)
	}
}

// Any anchor's periods are sums of whole hours cut at its boundaries.
func TestPeriodsAreSumsOfHours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, sec := drawZone(t)
		anchor, interval := drawAnchor(t, loc, sec)
		at := (sec - 3*86400) * second
		periods := Periods{Zone: loc, Anchor: anchor, Interval: interval}
		if rapid.Bool().Draw(t, "changed") {
			anchor, interval := drawAnchor(t, loc, sec)
			from := (sec + rapid.Int64Range(-2*86400, 2*86400).Draw(t, "from")) * second
			before := periods
			periods = Periods{Zone: loc, Anchor: anchor, Interval: interval, Before: &before, From: from}
		}
		periods.Cuts = drawCuts(t, sec)
		at, _ = Hour(at, loc)
		for range 100 {
			periodStart, periodEnd := periods.Period(at)
			start, end := periods.Hour(at)
			if at < start || at >= end || start < periodStart || end > periodEnd {
				t.Fatalf("hour [%s, %s) at %s leaves period [%s, %s)", rfc(start), rfc(end), rfc(at), rfc(periodStart), rfc(periodEnd))
			}
			if s, e := periods.Hour(end - 1); s != start || e != end {
				t.Fatalf("first and last instant of [%s, %s) disagree", rfc(start), rfc(end))
			}
			if whole, wholeEnd := Hour(at, loc); (start != whole && start != periodStart) || (end != wholeEnd && end != periodEnd) {
				t.Fatalf("hour [%s, %s) is cut for no reason", rfc(start), rfc(end))
			}
			at = end
		}
	})
}

func BenchmarkHour(b *testing.B) {
	for _, name := range []string{"UTC", "Asia/Kolkata", "America/New_York"} {
		b.Run(name, func(b *testing.B) {
			loc := mustLocation(b, name)
			b.ReportAllocs()
			for i := range b.N {
				Hour(1_790_000_000*second+int64(i), loc)
			}
		})
	}
}
