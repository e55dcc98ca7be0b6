package calendar

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The naive recount: it knows only what the zone's clock shows at one instant,
// and looks for boundaries by walking. Seconds since the epoch throughout.

// oddZones have offsets of half and quarter hours, jumps at and over midnight,
// by half an hour, by a day, twice around Ramadan, and negative summer time.
var oddZones = []string{
	"UTC", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "America/New_York",
	"Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "Africa/Casablanca",
	"America/St_Johns", "Asia/Beirut", "Africa/Cairo", "America/Havana", "Europe/Dublin",
	"Australia/Adelaide", "Asia/Pyongyang", "Pacific/Kwajalein", "America/Nuuk", "Asia/Gaza",
}

func mustLocation(t interface{ Fatal(...any) }, name string) *time.Location {
	loc, err := Location(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func naiveOffset(sec int64, loc *time.Location) int64 {
	_, offset := time.Unix(sec, 0).In(loc).Zone()
	return int64(offset)
}

func naiveShows(sec int64, loc *time.Location) int64 { return sec + naiveOffset(sec, loc) }

// naiveInstant walks to the first second at which the clock shows w or has
// jumped over it. The steps of a minute cannot pass w unseen, as they start a
// whole number of minutes before it and offsets are whole minutes.
func naiveInstant(w int64, loc *time.Location) int64 {
	sec := w - 27*3600
	for naiveShows(sec, loc) < w {
		sec += 60
	}
	for naiveShows(sec-1, loc) >= w {
		sec--
	}
	if naiveShows(sec, loc) == w {
		return sec
	}
	return w - naiveOffset(sec-1, loc)
}

// naiveStep moves a wall clock by n units, a month at a time.
func naiveStep(w int64, unit Unit, n int) int64 {
	t := time.Unix(w, 0).UTC()
	year, month, d := t.Date()
	switch unit {
	case Days:
		return w + int64(n)*86400
	case Weeks:
		return w + int64(n)*7*86400
	case Years:
		n *= 12
	}
	for ; n > 0; n-- {
		if month++; month == 13 {
			year, month = year+1, 1
		}
	}
	for ; n < 0; n++ {
		if month--; month == 0 {
			year, month = year-1, 12
		}
	}
	lengths := [13]int{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	last := lengths[month]
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		last = 29
	}
	return time.Date(year, month, min(d, last), 0, 0, 0, 0, time.UTC).Unix() + (w%86400+86400)%86400
}

func naivePeriod(anchor int64, interval Interval, loc *time.Location, sec int64) (n int, start, end int64) {
	boundary := func(n int) int64 {
		return naiveInstant(naiveStep(anchor, interval.Unit, n*interval.Count), loc)
	}
	for boundary(n) > sec {
		n--
	}
	for boundary(n+1) <= sec {
		n++
	}
	return n, boundary(n), boundary(n + 1)
}

func naiveHour(sec int64, loc *time.Location) (start, end int64) {
	cut := func(sec int64) bool {
		return naiveShows(sec, loc)%3600 == 0 || naiveOffset(sec, loc) != naiveOffset(sec-1, loc)
	}
	start = sec - sec%60
	end = start + 60
	for !cut(start) {
		start -= 60
	}
	for !cut(end) {
		end += 60
	}
	return start, end
}

var jumpsOf sync.Map // zone name → []int64

// jumps returns the seconds, 1973 to 2061, at which a zone's offset changes,
// and some at which the library's ZoneBounds claims so or worse: the ends of
// years and the last days of leap years past the end of the zone's table.
func jumps(t interface{ Fatal(...any) }, name string) []int64 {
	if found, ok := jumpsOf.Load(name); ok {
		return found.([]int64)
	}
	loc := mustLocation(t, name)
	var found []int64
	for sec := int64(100_000_000); sec < 2_900_000_000; sec += 6 * 3600 {
		lo, hi := sec, sec+6*3600
		if naiveOffset(lo, loc) == naiveOffset(hi, loc) {
			continue
		}
		for hi-lo > 1 {
			if mid := (lo + hi) / 2; naiveOffset(mid, loc) == naiveOffset(lo, loc) {
				lo = mid
			} else {
				hi = mid
			}
		}
		found = append(found, hi)
	}
	for year := 2036; year < 2062; year += 4 {
		found = append(found, time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC).Unix())
		found = append(found, time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	}
	jumpsOf.Store(name, found)
	return found
}

// drawZone draws a zone and a second within two days, often two hours, of one
// of its jumps.
func drawZone(t *rapid.T) (loc *time.Location, sec int64) {
	name := rapid.SampledFrom(oddZones).Draw(t, "zone")
	jump := rapid.SampledFrom(jumps(t, name)).Draw(t, "jump")
	around := rapid.SampledFrom([]int{60, 7200, 2 * 86400}).Draw(t, "around")
	return mustLocation(t, name), jump + int64(rapid.IntRange(-around, around).Draw(t, "after"))
}

func TestNaiveFindsTheJumps(t *testing.T) {
	for name, want := range map[string]int64{
		"America/New_York": 1772953200, // 2026-03-08T07:00:00Z
		"Pacific/Apia":     1325239200, // 2011-12-30T10:00:00Z
	} {
		found := false
		for _, sec := range jumps(t, name) {
			found = found || sec == want
		}
		if !found {
			t.Errorf("%s: no jump found at %d", name, want)
		}
	}
}
