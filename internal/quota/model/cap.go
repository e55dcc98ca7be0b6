package model

import "math"

// A cap is a limit on a customer's own counter. It specifies how many units may be used in one billing period, and
// is derived by billing from an amount of money. Its bucket contains the units that are booked in the period,
// including adjustments. Units of open reservations count, too, whatever the period in which they were reserved.
//
// Therefore every booking of units changes the bucket, by MoveCap if there is no charge. In a row without the
// bucket, the booked units are unknown, and whoever charges the row counts them first (CountCap).

// CapName is the name of the limit that represents a cap. No limit of a plan has this name.
const CapName = "cap"

// capID is the identity of the buckets of caps. Their aux is the start of the period in which the units are
// booked, so a bucket of another period is ignored.
const capID = int64(1)

// NewCap returns a cap of the given units in the billing period [start, end), µs. The cap counts in that period
// alone. amountMinor is the amount of money from which billing derived the units, in minor units.
func NewCap(units, amountMinor, start, end int64) *Limit {
	return &Limit{
		Name: CapName, Algorithm: FixedWindow, Limit: units, Calendar: true, WindowText: "billing_period", ID: capID,
		facts: facts{kept: inPeriod}, rules: capped{start, end, amountMinor}, ends: end, notify: capNotify,
	}
}

// IsCap reports whether a limit is a cap.
func (l *Limit) IsCap() bool { return l.kept == inPeriod }

// capped implements the rules of a cap.
type capped struct{ start, end, amountMinor int64 }

// AmountMinor returns the maximum cost of a cap in minor units, or 0 if the limit is not a cap.
func (l *Limit) AmountMinor() int64 {
	c, _ := l.rules.(capped)
	return c.amountMinor
}

// CapPeriod returns the billing period of the target's cap, µs. The last result is false if the target has no cap.
func (t *Target) CapPeriod() (start, end int64, is bool) {
	if t.capped == nil {
		return 0, 0, false
	}
	c := t.capped.rules.(capped)
	return c.start, c.end, true
}

// Capped reports whether the target has a cap.
func (t *Target) Capped() bool { return t.capped != nil }

// Uncounted reports whether the target has a cap and the state of its own counter lacks the units booked in the
// cap's period.
func (t *Target) Uncounted(state []int64) bool { return t.capped != nil && !t.capped.countedIn(state) }

// countedIn reports whether a state contains the cap's bucket.
func (l *Limit) countedIn(state []int64) bool {
	i := capAt(state)
	return i >= 0 && state[i+2] == l.rules.(capped).start
}

// capAt returns the index of a cap's bucket in a state, or −1 if there is no such bucket.
func capAt(state []int64) int {
	for i := 0; i+BucketLen <= len(state); i += BucketLen {
		if state[i] == capID {
			return i
		}
		if state[i] < 0 {
			i += int(state[i+2])
		}
	}
	return -1
}

// CapIn returns the units booked in the period that begins at start, µs, from a cap's bucket in a state. The last
// result is false if the state has no such bucket.
func CapIn(state []int64) (booked, start int64, is bool) {
	i := capAt(state)
	if i < 0 {
		return 0, 0, false
	}
	return state[i+1], state[i+2], true
}

// CountCap returns the state of the target's own counter with the given units booked in the cap's period. The
// target must have a cap.
func (t *Target) CountCap(state []int64, booked int64) []int64 {
	next := make([]int64, 0, len(state)+BucketLen)
	if i := capAt(state); i >= 0 {
		next = append(append(next, state[:i]...), state[i+BucketLen:]...)
	} else {
		next = append(next, state...)
	}
	start, _, _ := t.CapPeriod()
	return append(next, capID, Within(booked), start, 0)
}

// MoveCap returns the state of a customer's own counter after units were booked in an hour without a charge.
// Negative units are subtracted. moved is false if the booking affects no cap.
func MoveCap(state []int64, hour, units int64) (next []int64, moved bool) {
	i := capAt(state)
	if i < 0 || units == 0 || hour < state[i+2] {
		return state, false
	}
	next = append(next, state...)
	next[i+1] = Within(next[i+1] + units)
	return next, true
}

// Within bounds a number of booked units by the numbers that a bucket can count. Adjustments may make the number
// negative.
func Within(units int64) int64 { return min(max(units, -softCap), softCap) }

func (c capped) stand(_ *Limit, stored bucket, _ int64, _ moment) bucket {
	if stored.aux != c.start {
		return bucket{0, c.start}
	}
	return stored
}

// bringBack keeps the bucket, because bookings are final.
func (capped) bringBack(_ *Limit, stored bucket, _ int64, _ moment) bucket { return stored }

// held returns the units of open reservations.
func (capped) held(m moment) int64 { return m.holds.open(capID, m.at) }

func (c capped) headroom(l *Limit, b bucket, m moment) int64 {
	return AddUpTo(l.Limit, -b.level) - c.held(m)
}

func (capped) charge(_ *Limit, b bucket, cost int64, _ moment) bucket {
	return bucket{Within(b.level + cost), b.aux}
}

// used returns 0 if adjustments subtracted more than was used.
func (c capped) used(_ *Limit, b bucket, m moment) int64 {
	return max(0, Within(b.level+c.held(m)))
}

// wait returns Never, because a cap counts only until the end of its period, which bounds all waits.
func (capped) wait(*Limit, bucket, int64, moment) int64 { return Never }

// resetAt considers holds, because units of open reservations count in the next period, too.
func (c capped) resetAt(_ *Limit, b bucket, m moment) int64 {
	at := m.at
	if n := m.holds.Len(); n > 0 {
		at = max(at, m.holds.list[n-1].Expires)
	}
	if b.level > 0 {
		at = max(at, c.end)
	}
	return at
}

// giveBack and backdate change nothing, because MoveCap changes the bucket with each booking.
func (capped) giveBack(_ *Limit, b bucket, _, _ int64, _ moment) bucket { return b }
func (capped) backdate(_ *Limit, b bucket, _, _ int64, _ moment) bucket { return b }

func (capped) countable(_ *Limit, b bucket, _ moment) int64 { return softCap - b.level }

// countsFrom returns 0, because a hold counts whenever its reservation was charged.
func (capped) countsFrom(*Limit, bucket, moment) int64      { return 0 }
func (c capped) began(*Limit, bucket, moment) (int64, bool) { return c.start, true }
func (capped) sound(_ *Limit, b bucket, _ []int64) bool     { return b.level == Within(b.level) }
func (capped) lifetime(*Limit) int64                        { return 0 }
func (capped) mostIn(*Limit, int64, bool) int64             { return math.MaxInt64 }
