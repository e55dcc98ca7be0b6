package calendar

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var allUnits = []Unit{Days, Weeks, Months, Years}

// us reads an RFC 3339 instant.
func us(t testing.TB, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMicro()
}

// drawAnchor draws an interval and an anchor whose boundaries come near a
// second: k intervals from a wall clock within two days of it.
func drawAnchor(t *rapid.T, loc *time.Location, sec int64) (Anchor, Interval) {
	interval := Interval{rapid.SampledFrom(allUnits).Draw(t, "unit"), rapid.IntRange(1, 3).Draw(t, "count")}
	near := rapid.SampledFrom([]int{0, 3600, 2 * 86400}).Draw(t, "near")
	w := naiveShows(sec, loc) + int64(rapid.IntRange(-near, near).Draw(t, "away"))
	anchor := naiveStep(w, interval.Unit, interval.Count*rapid.IntRange(-12, 12).Draw(t, "k"))
	if year := time.Unix(anchor, 0).UTC().Year(); year < MinAnchorYear {
		anchor = w
	}
	a, err := ParseAnchor(time.Unix(anchor, 0).UTC().Format(anchorLayout))
	if err != nil {
		t.Fatal(err)
	}
	return a, interval
}

func TestPeriodIsTheNaiveRecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, sec := drawZone(t)
		anchor, interval := drawAnchor(t, loc, sec)
		micros := rapid.Int64Range(0, second-1).Draw(t, "micros")

		n, start, end := Period(anchor, interval, loc, sec*second+micros)
		wantN, wantStart, wantEnd := naivePeriod(int64(anchor.wall)/second, interval, loc, sec)
		if n != wantN || start != wantStart*second || end != wantEnd*second {
			t.Fatalf("%s + n × %v in %s at %s: got %d [%s, %s), want %d [%s, %s)", anchor, interval, loc, rfc(sec*second),
				n, rfc(start), rfc(end), wantN, rfc(wantStart*second), rfc(wantEnd*second))
		}
	})
}

func TestPeriodsTileTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, sec := drawZone(t)
		anchor, interval := drawAnchor(t, loc, sec)
		n, start, end := Period(anchor, interval, loc, sec*second)
		for range 20 {
			if Boundary(anchor, interval, loc, n) != start || Boundary(anchor, interval, loc, n+1) != end || start >= end {
				t.Fatalf("period %d [%s, %s) is not between its boundaries", n, rfc(start), rfc(end))
			}
			if m, s, e := Period(anchor, interval, loc, end-1); m != n || s != start || e != end {
				t.Fatalf("the last instant of period %d falls in %d", n, m)
			}
			next, nextStart, nextEnd := Period(anchor, interval, loc, end)
			if nextStart != end || next <= n {
				t.Fatalf("period %d ends at %s, period %d starts at %s", n, rfc(end), next, rfc(nextStart))
			}
			for skipped := n + 1; skipped < next; skipped++ { // days that the zone skipped
				if Boundary(anchor, interval, loc, skipped) != end {
					t.Fatalf("period %d was passed over but is not empty", skipped)
				}
			}
			n, start, end = next, nextStart, nextEnd
		}
	})
}

// Every instant in range has its period, for the longest and shortest ones.
func TestPeriodIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc := mustLocation(t, rapid.SampledFrom(oddZones).Draw(t, "zone"))
		at := rapid.Int64Range(MinInstant, MaxInstant).Draw(t, "at")
		anchor := Anchor{wall(rapid.Int64Range(0, 7_289_654_399).Draw(t, "anchor") * second)}
		interval := Interval{rapid.SampledFrom(allUnits).Draw(t, "unit"), rapid.IntRange(1, 100).Draw(t, "count")}
		if n, start, end := Period(anchor, interval, loc, at); at < start || at >= end {
			t.Fatalf("period %d [%s, %s) does not hold %s", n, rfc(start), rfc(end), rfc(at))
		}
	})
}

func TestPeriodOutOfRangeIsTheNearest(t *testing.T) {
	loc := mustLocation(t, "America/New_York")
	for _, c := range [][2]int64{{math.MaxInt64, MaxInstant}, {MaxInstant + 1, MaxInstant}, {math.MinInt64, MinInstant}} {
		for _, unit := range allUnits {
			n, start, end := Period(Anchor{}, Interval{unit, 1}, loc, c[0])
			wantN, wantStart, wantEnd := Period(Anchor{}, Interval{unit, 1}, loc, c[1])
			if n != wantN || start != wantStart || end != wantEnd {
				t.Errorf("%d %s: got %d [%d, %d), want %d [%d, %d)", c[0], unit, n, start, end, wantN, wantStart, wantEnd)
			}
		}
	}
}

func TestBoundaryOfAnyNumberIsOrdered(t *testing.T) {
	loc := mustLocation(t, "Europe/Berlin")
	numbers := []int{math.MinInt, -1 << 40, -200_000, -1, 0, 1, 200_000, 1 << 40, math.MaxInt}
	for _, unit := range allUnits {
		for _, count := range []int{1, 100} {
			last := int64(math.MinInt64)
			for _, n := range numbers {
				b := Boundary(Anchor{}, Interval{unit, count}, loc, n)
				if b < last {
					t.Errorf("boundary %d of %d %s is before one of a lower number", n, count, unit)
				}
				last = b
			}
		}
	}
}

func TestBoundaryExamples(t *testing.T) {
	for _, c := range []struct {
		why, anchor string
		interval    Interval
		zone        string
		n           int
		want        string
	}{
		{"clamped to the last day", "2026-01-31T00:00:00", Interval{Months, 1}, "UTC", 1, "2026-02-28T00:00:00Z"},
		{"the clamp does not stick", "2026-01-31T00:00:00", Interval{Months, 1}, "UTC", 2, "2026-03-31T00:00:00Z"},
		{"a leap year", "2026-01-31T00:00:00", Interval{Months, 1}, "UTC", 25, "2028-02-29T00:00:00Z"},
		{"backwards", "2026-01-31T00:00:00", Interval{Months, 1}, "UTC", -2, "2025-11-30T00:00:00Z"},
		{"no leap year in 2100", "2096-02-29T01:00:00", Interval{Years, 4}, "UTC", 1, "2100-02-28T01:00:00Z"},
		{"gap of an hour", "2026-03-08T02:00:00", Interval{Days, 1}, "America/New_York", 0, "2026-03-08T07:00:00Z"},
		{"its last second", "2026-03-08T02:59:59", Interval{Days, 1}, "America/New_York", 0, "2026-03-08T07:59:59Z"},
		{"just after", "2026-03-08T03:00:00", Interval{Days, 1}, "America/New_York", 0, "2026-03-08T07:00:00Z"},
		{"overlap, first pass", "2026-11-01T01:00:00", Interval{Days, 1}, "America/New_York", 0, "2026-11-01T05:00:00Z"},
		{"just after", "2026-11-01T02:00:00", Interval{Days, 1}, "America/New_York", 0, "2026-11-01T07:00:00Z"},
		{"gap of half an hour", "2026-10-04T02:15:00", Interval{Days, 1}, "Australia/Lord_Howe", 0, "2026-10-03T15:45:00Z"},
		{"overlap of half an hour", "2026-04-05T01:45:00", Interval{Days, 1}, "Australia/Lord_Howe", 0, "2026-04-04T14:45:00Z"},
		{"a day that was skipped", "2011-12-30T12:00:00", Interval{Days, 1}, "Pacific/Apia", 0, "2011-12-30T22:00:00Z"},
		{"is the next one", "2011-12-30T12:00:00", Interval{Days, 1}, "Pacific/Apia", 1, "2011-12-30T22:00:00Z"},
		{"offset of seconds", "1971-01-01T00:00:00", Interval{Years, 1}, "Africa/Monrovia", 0, "1971-01-01T00:44:30Z"},
		{"gap after seconds", "1972-01-07T00:30:00", Interval{Years, 1}, "Africa/Monrovia", 0, "1972-01-07T01:14:30Z"},
		{"past the zone's table", "2026-07-31T02:30:00", Interval{Months, 1}, "Europe/Berlin", 12 * 50, "2076-07-31T00:30:00Z"},
		{"last day of a leap year", "2026-12-31T12:00:00", Interval{Years, 1}, "Europe/Berlin", 14, "2040-12-31T11:00:00Z"},
	} {
		anchor, err := ParseAnchor(c.anchor)
		if err != nil {
			t.Fatal(err)
		}
		if got := Boundary(anchor, c.interval, mustLocation(t, c.zone), c.n); got != us(t, c.want) {
			t.Errorf("%s: boundary %d of %s in %s: got %s, want %s", c.why, c.n, c.anchor, c.zone, rfc(got), c.want)
		}
	}
}

func BenchmarkPeriod(b *testing.B) {
	loc := mustLocation(b, "America/New_York")
	anchor, _ := ParseAnchor("2020-01-31T00:00:00")
	b.ReportAllocs()
	for i := range b.N {
		Period(anchor, Interval{Months, 1}, loc, 1_790_000_000*second+int64(i)*hour%(900*day))
	}
}

// Where one schedule gives way to another the last period of the first ends and the first
// of the second begins; all of them tile time.
func TestPeriodsChange(t *testing.T) {
	anchor := func(text string) Anchor {
		a, err := ParseAnchor(text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	monthly := Periods{Zone: time.UTC, Anchor: anchor("2026-01-31T00:00:00"), Interval: Interval{Months, 1}}
	weekly := Periods{
		Zone: time.UTC, Anchor: anchor("2026-01-05T06:00:00"), Interval: Interval{Weeks, 1},
		Before: &monthly, From: us(t, "2026-03-31T00:00:00Z"), // at a period's end
	}
	cut := Periods{
		Zone: time.UTC, Anchor: anchor("2026-01-15T00:00:00"), Interval: Interval{Years, 1},
		Before: &weekly, From: us(t, "2026-04-08T12:00:00Z"), // in its midst
	}
	for _, c := range []struct{ at, start, end string }{
		{"2026-03-30T23:59:59Z", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"},
		{"2026-03-31T00:00:00Z", "2026-03-31T00:00:00Z", "2026-04-06T06:00:00Z"},
		{"2026-04-06T06:00:00Z", "2026-04-06T06:00:00Z", "2026-04-08T12:00:00Z"},
		{"2026-04-08T12:00:00Z", "2026-04-08T12:00:00Z", "2027-01-15T00:00:00Z"},
		{"2027-01-15T00:00:00Z", "2027-01-15T00:00:00Z", "2028-01-15T00:00:00Z"},
		{"2026-01-30T00:00:00Z", "2025-12-31T00:00:00Z", "2026-01-31T00:00:00Z"},
	} {
		if start, end := cut.Period(us(t, c.at)); start != us(t, c.start) || end != us(t, c.end) {
			t.Errorf("the period of %s is [%s, %s), want [%s, %s)", c.at, rfc(start), rfc(end), c.start, c.end)
		}
	}
}

// drawCuts draws up to four cuts within three days of a second, ascending; two may be equal.
func drawCuts(t *rapid.T, sec int64) []int64 {
	cuts := rapid.SliceOfN(rapid.Int64Range((sec-3*86400)*second, (sec+3*86400)*second), 0, 4).Draw(t, "cuts")
	slices.Sort(cuts)
	return cuts
}

// A cut is one more boundary, in former periods as in the present ones, and no other boundary
// goes. What is cut is part of the full period of the anchor that counts there.
func TestCutsAreBoundariesBesideTheOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, sec := drawZone(t)
		anchor, interval := drawAnchor(t, loc, sec)
		periods := Periods{Zone: loc, Anchor: anchor, Interval: interval}
		uncut := periods
		if rapid.Bool().Draw(t, "changed") {
			anchor, interval := drawAnchor(t, loc, sec)
			before, cut := periods, periods
			from := (sec + rapid.Int64Range(-2*86400, 2*86400).Draw(t, "from")) * second
			cut.Cuts = []int64{sec * second, from - 1} // by themselves, cuts of former periods do not count
			uncut = Periods{Zone: loc, Anchor: anchor, Interval: interval, Before: &before, From: from}
			periods = Periods{Zone: loc, Anchor: anchor, Interval: interval, Before: &cut, From: from}
		}
		periods.Cuts = drawCuts(t, sec)
		for _, near := range append([]int64{sec * second}, periods.Cuts...) {
			at := near + rapid.SampledFrom([]int64{-1, 0, 1, -hour, hour}).Draw(t, "away")
			wantStart, wantEnd := uncut.Period(at)
			for _, cut := range periods.Cuts { // whatever their order
				if cut <= at {
					wantStart = max(wantStart, cut)
				} else {
					wantEnd = min(wantEnd, cut)
				}
			}
			start, end := periods.Period(at)
			if start != wantStart || end != wantEnd || at < start || at >= end {
				t.Fatalf("[%s, %s) holds %s, want [%s, %s)", rfc(start), rfc(end), rfc(at), rfc(wantStart), rfc(wantEnd))
			}
			in := &periods
			for in.Before != nil && at < in.From {
				in = in.Before
			}
			_, wantStart, wantEnd = Period(in.Anchor, in.Interval, in.Zone, at)
			fullStart, fullEnd := periods.Full(at)
			if fullStart != wantStart || fullEnd != wantEnd || fullStart > start || fullEnd < end {
				t.Fatalf("[%s, %s) is cut from [%s, %s), want [%s, %s)", rfc(start), rfc(end), rfc(fullStart), rfc(fullEnd), rfc(wantStart), rfc(wantEnd))
			}
		}
	})
}

func BenchmarkPeriodsHour(b *testing.B) {
	loc := mustLocation(b, "America/New_York")
	anchor, _ := ParseAnchor("2020-01-31T00:00:00")
	for name, cuts := range map[string][]int64{"uncut": nil, "cut": {1_790_000_000 * second, 1_791_000_000 * second}} {
		b.Run(name, func(b *testing.B) {
			p := Periods{Zone: loc, Anchor: anchor, Interval: Interval{Months, 1}, Cuts: cuts}
			b.ReportAllocs()
			for i := range b.N {
				p.Hour(1_790_000_000*second + int64(i)*hour%(900*day))
			}
		})
	}
}
