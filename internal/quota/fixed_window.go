package quota

// fixedWindow: windows start at multiples of their length since the Unix epoch, and a hit
// is admitted when used + cost ≤ limit. The level is what was used.
type fixedWindow struct{}

// windowStart is the start of the clock-aligned window that holds at (at ≥ 0).
func windowStart(at, window int64) int64 { return at - at%window }

// level: nothing of an earlier window counts.
func (fixedWindow) level(l *Limit, stored, _, since, at int64) int64 {
	if since < windowStart(at, l.Window) {
		return 0
	}
	return stored
}

func (fixedWindow) room(l *Limit, level int64) int64 { return max(0, l.Limit-level) }
func (fixedWindow) weight(*Limit) int64              { return 1 }
func (fixedWindow) used(_ *Limit, level int64) int64 { return level }

func (fixedWindow) wait(l *Limit, _, at, cost int64) int64 {
	if cost > l.Limit {
		return Never
	}
	return windowStart(at, l.Window) + l.Window - at
}

func (fixedWindow) resetAt(l *Limit, level, at int64) int64 {
	if level == 0 {
		return at
	}
	return windowStart(at, l.Window) + l.Window
}

func (fixedWindow) encode(l *Limit, dst []int64, at int64) ([]int64, int64) {
	start := windowStart(at, l.Window)
	return append(dst, l.ID, int64(FixedWindow), l.Limit, start, 0), start + l.Window
}
