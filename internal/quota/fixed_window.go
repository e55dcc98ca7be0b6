package quota

// A fixed window starts at multiples of its length since the Unix epoch and admits a hit
// when used + cost ≤ limit. Its level is what was used; scale is always 1.

// windowStart is the start of the clock-aligned window that holds at (at ≥ 0).
func windowStart(at, window int64) int64 { return at - at%window }

// fixedWindowLevel is the level at an instant: nothing of an earlier window counts.
func (l *Limit) fixedWindowLevel(used, since, at int64) int64 {
	if since < windowStart(at, l.Window) {
		return 0
	}
	return used
}
