package model

import "math/bits"

// slidingWindow counts with two clock-aligned counters. If e is the time since the current window began, a hit is
// admitted if cur + ⌊prev·(W−e)/W⌋ + cost ≤ limit. The level is cur, and aux is prev.
type slidingWindow struct{ counted }

var slidingWindowDescriptor = descriptor{
	facts:  facts{kept: inBucket, twoWindows: true},
	number: SlidingWindow, name: "sliding_window", window: durationWindow, hours: spreadByHour, compared: true,
	compile: func(*Limit, *Spec, refusal) rules { return slidingWindow{} },
}

func (slidingWindow) stand(l *Limit, stored bucket, since int64, m moment) bucket {
	switch start := windowStart(m.at, l.Window); {
	case since >= start:
		return stored
	case since >= start-l.Window:
		return bucket{0, stored.level}
	}
	return bucket{}
}

// bringBack adds the units of both windows to the running window if another window runs at m.at.
func (slidingWindow) bringBack(l *Limit, stored bucket, since int64, m moment) bucket {
	if windowStart(since, l.Window) == windowStart(m.at, l.Window) {
		return stored
	}
	return bucket{min(stored.level+stored.aux, softCap), 0}
}

func (slidingWindow) used(l *Limit, b bucket, m moment) int64 {
	return b.level + shareOf(b.aux, l.Window-m.at%l.Window, l.Window)
}

func (s slidingWindow) headroom(l *Limit, b bucket, m moment) int64 {
	return l.Limit - s.used(l, b, m)
}

func (slidingWindow) charge(_ *Limit, b bucket, cost int64, _ moment) bucket {
	return bucket{min(b.level+cost, softCap), b.aux}
}

func (slidingWindow) wait(l *Limit, b bucket, cost int64, m moment) int64 {
	if cost > l.Limit {
		return Never
	}
	elapsed := m.at % l.Window
	if left := l.Limit - b.level - cost; left >= 0 {
		return fadesTo(left, b.aux, l.Window) - elapsed
	}
	// The cost does not fit in this window, whatever remains of prev. In the next window, cur is prev.
	return l.Window - elapsed + fadesTo(l.Limit-cost, b.level, l.Window)
}

func (slidingWindow) resetAt(l *Limit, b bucket, m moment) int64 {
	start := windowStart(m.at, l.Window)
	switch {
	case b.level > 0:
		return start + l.Window + fadesTo(0, b.level, l.Window)
	case b.aux > 0:
		return max(m.at, start+fadesTo(0, b.aux, l.Window))
	}
	return m.at
}

// giveBack subtracts a charge of the previous window from prev, so the subtracted units fade with that window.
func (slidingWindow) giveBack(l *Limit, b bucket, charged, cost int64, m moment) bucket {
	start := windowStart(m.at, l.Window)
	switch {
	case charged == Present:
		now := min(cost, b.level)
		return bucket{b.level - now, max(0, b.aux-(cost-now))}
	case charged >= start:
		return bucket{max(0, b.level-cost), b.aux}
	case charged >= start-l.Window:
		return bucket{b.level, max(0, b.aux-cost)}
	}
	return b
}

func (slidingWindow) backdate(l *Limit, b bucket, at, cost int64, m moment) bucket {
	start := windowStart(m.at, l.Window)
	switch {
	case at >= start:
		b.level = min(b.level+cost, softCap)
	case at >= start-l.Window:
		b.aux = min(b.aux+cost, softCap)
	}
	return b
}

func (slidingWindow) countsFrom(l *Limit, _ bucket, m moment) int64 {
	return windowStart(m.at, l.Window) - l.Window
}

func (slidingWindow) began(l *Limit, _ bucket, m moment) (int64, bool) {
	return windowStart(m.at, l.Window), true
}

func (slidingWindow) sound(_ *Limit, b bucket, _ []int64) bool {
	return counts(b.level) && counts(b.aux)
}

// lifetime is two windows, because a hit still counts in part in the window after its own.
func (slidingWindow) lifetime(l *Limit) int64 { return 2 * l.Window }

func (slidingWindow) mostIn(l *Limit, time int64, whole bool) int64 { return l.inWindows(time, whole) }

// shareOf returns ⌊n·part/whole⌋ for 0 ≤ part ≤ whole. The product is computed in 128 bits.
func shareOf(n, part, whole int64) int64 {
	high, low := bits.Mul64(uint64(n), uint64(part))
	q, _ := bits.Div64(high, low, uint64(whole))
	return int64(q)
}

// fadesTo returns the smallest e, 0 ≤ e ≤ w, for which the remaining part of prev, ⌊prev·(w−e)/w⌋, is at most
// left. left must not be negative.
func fadesTo(left, prev, w int64) int64 {
	if left >= prev {
		return 0
	}
	// ⌊prev·x/w⌋ ≤ left ⟺ prev·x < (left+1)·w ⟺ x ≤ ⌈(left+1)·w/prev⌉ − 1, x = w − e.
	high, low := bits.Mul64(uint64(left+1), uint64(w))
	q, r := bits.Div64(high, low, uint64(prev)) // left < prev, so q ≤ w
	if r > 0 {
		q++
	}
	return w - (int64(q) - 1)
}
