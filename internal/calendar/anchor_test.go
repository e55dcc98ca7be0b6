package calendar

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestParseAnchor(t *testing.T) {
	for _, good := range []string{
		"1970-01-01T00:00:00", "2026-01-31T23:59:59", "2024-02-29T12:00:00", "2200-12-31T23:59:59",
		"2026-03-08T02:30:00", // skipped in New York, and good
	} {
		if a, err := ParseAnchor(good); err != nil || a.String() != good {
			t.Errorf("%s: got %s, %v", good, a, err)
		}
	}
	for _, bad := range []string{
		"", "2026-01-31", "2026-01-31T00:00", "2026-01-31 00:00:00", "2026-01-31T00:00:00Z",
		"2026-01-31T00:00:00+01:00", "2026-01-31T00:00:00.5", "2026-01-31T00:00:00,5", "2026-01-31T5:00:00",
		"2026-02-29T00:00:00", "2026-13-01T00:00:00", "2026-01-31T24:00:00", "2026-01-31T23:59:60",
		"1969-12-31T23:59:59", "2201-01-01T00:00:00", "12026-01-31T00:00:00", " 2026-01-31T00:00:00",
	} {
		if a, err := ParseAnchor(bad); !errors.Is(err, ErrAnchor) || a != (Anchor{}) {
			t.Errorf("%q: got %s, %v", bad, a, err)
		}
	}
}

func TestAnchorAt(t *testing.T) {
	for _, c := range []struct{ zone, at, want string }{
		{"UTC", "2026-01-31T12:34:56.789Z", "2026-01-31T12:34:56"},
		{"Asia/Kathmandu", "2026-01-31T18:30:00Z", "2026-02-01T00:15:00"},
		{"America/New_York", "2026-11-01T06:30:00Z", "2026-11-01T01:30:00"},
	} {
		if a, err := AnchorAt(us(t, c.at), mustLocation(t, c.zone)); err != nil || a.String() != c.want {
			t.Errorf("%s in %s: got %s, %v, want %s", c.at, c.zone, a, err, c.want)
		}
	}
	for _, bad := range []int64{-second, MinInstant, MaxInstant, 1 << 62} {
		if _, err := AnchorAt(bad, mustLocation(t, "UTC")); !errors.Is(err, ErrAnchor) {
			t.Errorf("%d: got %v", bad, err)
		}
	}
}

// The period anchored at an instant is the first one: it holds that instant.
func TestAnchorAtHoldsItsInstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc, sec := drawZone(t)
		at := sec*second + rapid.Int64Range(0, second-1).Draw(t, "micros")
		anchor, err := AnchorAt(at, loc)
		if err != nil {
			t.Fatal(err)
		}
		// Kwajalein and Apia skipped a day, none repeated one since 1970.
		if n, _, _ := Period(anchor, Interval{Months, 1}, loc, at); n != 0 {
			t.Fatalf("%s in %s anchors %s, whose period %d holds it", rfc(at), loc, anchor, n)
		}
	})
}

// Where a clock jumps, the offset before the jump counts, as for the boundaries of periods.
func TestAnchorInstant(t *testing.T) {
	berlin, err := Location("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for text, utc := range map[string]string{
		"2026-01-31T12:00:00": "2026-01-31T11:00:00Z",
		"2026-03-29T02:30:00": "2026-03-29T01:30:00Z", // skipped
		"2026-10-25T02:30:00": "2026-10-25T00:30:00Z", // shown twice
	} {
		a, err := ParseAnchor(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Instant(berlin); got != us(t, utc) {
			t.Errorf("%s is %s, not %s", text, rfc(got), utc)
		}
	}
}
