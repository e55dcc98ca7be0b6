package calendar

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseInstant(t *testing.T) {
	for text, want := range map[string]int64{
		"1970-01-01T00:00:00Z":              0,
		"1970-01-01t00:00:00z":              0,
		"1970-01-01T02:00:00+02:00":         0,
		"1969-12-31T23:59:59.9999999-00:00": -1,
		"1970-01-01T00:00:00.123456789Z":    123456,
		"2026-01-31T12:00:00.1+23:59":       1769774460_100000,
		"0000-01-01T00:00:00Z":              MinInstant,
		"9999-12-31T23:59:59.999999Z":       MaxInstant,
	} {
		got, err := ParseInstant(text)
		if err != nil || got != want {
			t.Errorf("%s: %d %v, want %d", text, got, err, want)
		}
	}
	for _, bad := range []string{
		"", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31 12:00:00Z", "20260131T120000Z", " 2026-01-31T12:00:00Z",
		"2026-01-31T12:00:00Z\n", "2030-01-01T1:00:00Z", "2030-01-01T00:00:00,5Z", "2030-01-01T00:00:00.Z",
		"2030-01-01T00:00:00+24:00", "2030-01-01T00:00:00+23:60", "2030-01-01T00:00:00+0100", "2030-01-01T24:00:00Z",
		"2030-02-30T00:00:00Z", "2030-01-01T00:60:00Z", "2016-12-31T23:59:60Z", "+2030-01-01T00:00:00Z",
		"9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00+00:01", "2030-01-01T00:00:00." + strings.Repeat("0", 50) + "Z",
	} {
		if got, err := ParseInstant(bad); !errors.Is(err, ErrInstant) {
			t.Errorf("%q is %d, %v", bad, got, err)
		}
	}
}

// What is shown reads back, in any zone.
func TestInstantsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Int64Range(MinInstant+86400*second, MaxInstant-86400*second).Draw(t, "at")
		zone := time.FixedZone("", 60*rapid.IntRange(-23*60-59, 23*60+59).Draw(t, "offset"))
		text := time.UnixMicro(at).In(zone).Format(time.RFC3339Nano)
		if got, err := ParseInstant(text); err != nil || got != at {
			t.Fatalf("%s is %d, not %d: %v", text, got, at, err)
		}
	})
}
