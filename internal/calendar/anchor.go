package calendar

import (
	"errors"
	"fmt"
	"time"
)

// ErrAnchor reports that a text is not a wall-clock time from which periods can be counted.
var ErrAnchor = errors.New("not a wall clock of the form 2026-01-31T00:00:00 in the years 1970 to 2200")

// The first and the last year of an anchor. Periods may lie in earlier and later years.
const (
	MinAnchorYear = 1970
	MaxAnchorYear = 2200
)

const anchorLayout = "2006-01-02T15:04:05"

// Anchor is the wall-clock time, in whole seconds and without a zone, from which a customer's billing periods
// are counted. Anchors can be compared with ==. The zero Anchor is 1970-01-01T00:00:00.
type Anchor struct{ wall wall }

// ParseAnchor parses "2026-01-31T00:00:00". It returns ErrAnchor for fractions, zones, and years outside
// MinAnchorYear to MaxAnchorYear. A wall-clock time that a zone skips is a valid anchor, because the package's
// rule for clock jumps assigns an instant to it.
func ParseAnchor(text string) (Anchor, error) {
	t, err := time.Parse(anchorLayout, text)
	// time.Parse also accepts fractions and hours of one digit.
	if err != nil || t.Format(anchorLayout) != text {
		return Anchor{}, fmt.Errorf("%w: %.40q", ErrAnchor, text)
	}
	return newAnchor(t)
}

// AnchorAt returns the anchor that a clock in the zone shows at an instant, truncated to its second. It returns
// ErrAnchor if the year is out of range. If the clock shows the anchor twice (an overlap), the period begins at
// the first time.
func AnchorAt(at int64, loc *time.Location) (Anchor, error) {
	return newAnchor(wallAt(clamp(at), loc).civil().Truncate(time.Second))
}

func newAnchor(t time.Time) (Anchor, error) {
	if t.Year() < MinAnchorYear || t.Year() > MaxAnchorYear {
		return Anchor{}, fmt.Errorf("%w: year %d", ErrAnchor, t.Year())
	}
	return Anchor{wall(t.UnixMicro())}, nil
}

// AnchorOf returns the anchor of a wall-clock time in seconds since 1970-01-01T00:00:00, as returned by Seconds,
// or ErrAnchor.
func AnchorOf(seconds int64) (Anchor, error) { return newAnchor(time.Unix(seconds, 0).UTC()) }

// Instant returns the instant at which a clock in the zone shows the anchor, in µs since the Unix epoch. If the
// clock jumps at that time (a gap or an overlap), Instant uses the offset before the jump.
func (a Anchor) Instant(loc *time.Location) int64 { return a.wall.instant(loc) }

// Seconds returns the seconds of the wall-clock time since 1970-01-01T00:00:00, which are never negative.
func (a Anchor) Seconds() int64 { return int64(a.wall) / second }

// String returns the form that ParseAnchor accepts.
func (a Anchor) String() string { return a.wall.civil().Format(anchorLayout) }
