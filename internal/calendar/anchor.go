package calendar

import (
	"errors"
	"fmt"
	"time"
)

// ErrAnchor says that a text is not a wall clock that periods can hang on.
var ErrAnchor = errors.New("not a wall clock of the form 2026-01-31T00:00:00 in the years 1970 to 2200")

// The years an anchor may lie in. Periods reach beyond them on both sides.
const (
	MinAnchorYear = 1970
	MaxAnchorYear = 2200
)

const anchorLayout = "2006-01-02T15:04:05"

// Anchor is the wall clock, in whole seconds and without a zone, from which a
// customer's billing periods are counted. Anchors compare with ==; the zero
// Anchor is 1970-01-01T00:00:00.
type Anchor struct{ wall wall }

// ParseAnchor reads "2026-01-31T00:00:00". Fractions, zones and years outside
// MinAnchorYear to MaxAnchorYear are ErrAnchor. A wall clock that some zone
// skips is a good anchor: the rule for jumps says when it is.
func ParseAnchor(text string) (Anchor, error) {
	t, err := time.Parse(anchorLayout, text)
	// time.Parse also takes fractions and hours of one digit.
	if err != nil || t.Format(anchorLayout) != text {
		return Anchor{}, fmt.Errorf("%w: %.40q", ErrAnchor, text)
	}
	return newAnchor(t)
}

// AnchorAt returns the anchor that a clock in the zone shows at an instant, cut to its second.
// It is ErrAnchor when that year is out of range. Where the clock shows the anchor twice (an
// overlap), the period begins at the first time.
func AnchorAt(at int64, loc *time.Location) (Anchor, error) {
	return newAnchor(wallAt(clamp(at), loc).civil().Truncate(time.Second))
}

func newAnchor(t time.Time) (Anchor, error) {
	if t.Year() < MinAnchorYear || t.Year() > MaxAnchorYear {
		return Anchor{}, fmt.Errorf("%w: year %d", ErrAnchor, t.Year())
	}
	return Anchor{wall(t.UnixMicro())}, nil
}

// AnchorOf returns the anchor of a wall clock in seconds since 1970-01-01T00:00:00, what
// Seconds gave, or ErrAnchor.
func AnchorOf(seconds int64) (Anchor, error) { return newAnchor(time.Unix(seconds, 0).UTC()) }

// Instant returns when a clock of the zone shows the wall clock, µs since the Unix epoch. Where that
// clock jumps (a gap or an overlap), the offset before the jump counts.
func (a Anchor) Instant(loc *time.Location) int64 { return a.wall.instant(loc) }

// Seconds are the wall clock's since 1970-01-01T00:00:00, never below 0.
func (a Anchor) Seconds() int64 { return int64(a.wall) / second }

// String returns the form that ParseAnchor reads.
func (a Anchor) String() string { return a.wall.civil().Format(anchorLayout) }
