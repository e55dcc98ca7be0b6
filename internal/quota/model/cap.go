package model

import "math"

// A cap is a limit of a customer's own counter: how many units may be used in one billing period, by what
// they cost. Billing says how many. Its bucket has the units that are booked in the period, adjustments
// among them. Units that open reservations hold count beside them, in whichever period they were taken.
//
// So all that books units moves the bucket, by MoveCap where no charge does. A row without the bucket
// says nothing. Whoever charges it counts what is booked first (CountCap).

// CapName is the name of the limit that a cap is. No limit of a plan has it.
const CapName = "cap"

// capID is the identity of caps' buckets. Their aux is the start of the period that the units are booked
// in: so one that was counted for another period is none.
const capID = int64(1)

// NewCap is the limit of so many units, by an amount in minor units, in the billing period [start, end), µs. It counts in that period
// alone.
func NewCap(units, amountMinor, start, end int64) *Limit {
	return &Limit{
		Name: CapName, Algorithm: FixedWindow, Limit: units, Calendar: true, WindowText: "billing_period", ID: capID,
		facts: facts{kept: inPeriod}, rules: capped{start, end, amountMinor}, ends: end, notify: capNotify,
	}
}

// IsCap reports whether a limit is a cap.
func (l *Limit) IsCap() bool { return l.kept == inPeriod }

// capped has the rules of a cap.
type capped struct{ start, end, amountMinor int64 }

// AmountMinor is what a cap may cost, in minor units; 0: the limit is none.
func (l *Limit) AmountMinor() int64 {
	c, _ := l.rules.(capped)
	return c.amountMinor
}

// CapPeriod is the billing period that the target's cap is for, µs; capped is false without a cap.
func (t *Target) CapPeriod() (start, end int64, is bool) {
	if t.capped == nil {
		return 0, 0, false
	}
	c := t.capped.rules.(capped)
	return c.start, c.end, true
}

// Capped reports whether the target has a cap.
func (t *Target) Capped() bool { return t.capped != nil }

// Uncounted reports whether the target has a cap, and the state of its own counter does not say what is
// booked in the cap's period.
func (t *Target) Uncounted(state []int64) bool { return t.capped != nil && !t.capped.countedIn(state) }

// countedIn reports whether a state has the cap's bucket.
func (l *Limit) countedIn(state []int64) bool {
	i := capAt(state)
	return i >= 0 && state[i+2] == l.rules.(capped).start
}

// capAt is where a state has a cap's bucket; −1: nowhere.
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

// CapIn is what a cap's bucket in a state says: so many units are booked in the period from start on, µs. is
// is false where there is none.
func CapIn(state []int64) (booked, start int64, is bool) {
	i := capAt(state)
	if i < 0 {
		return 0, 0, false
	}
	return state[i+1], state[i+2], true
}

// CountCap is the state of the target's own counter with so many units booked in the cap's period. The
// target has a cap.
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

// MoveCap is the state of a customer's own counter after units were booked in an hour, below 0 taken off,
// without a charge. moved is false where that changes no cap.
func MoveCap(state []int64, hour, units int64) (next []int64, moved bool) {
	i := capAt(state)
	if i < 0 || units == 0 || hour < state[i+2] {
		return state, false
	}
	next = append(next, state...)
	next[i+1] = Within(next[i+1] + units)
	return next, true
}

// Within is a number of booked units, as far as a bucket can count. Adjustments may be below 0.
func Within(units int64) int64 { return min(max(units, -softCap), softCap) }

func (c capped) stand(_ *Limit, stored bucket, _ int64, _ moment) bucket {
	if stored.aux != c.start {
		return bucket{0, c.start}
	}
	return stored
}

// bringBack: what is booked is booked.
func (capped) bringBack(_ *Limit, stored bucket, _ int64, _ moment) bucket { return stored }

// held are the units that open reservations hold.
func (capped) held(m moment) int64 { return m.holds.open(capID, m.at) }

func (c capped) headroom(l *Limit, b bucket, m moment) int64 {
	return AddUpTo(l.Limit, -b.level) - c.held(m)
}

func (capped) charge(_ *Limit, b bucket, cost int64, _ moment) bucket {
	return bucket{Within(b.level + cost), b.aux}
}

// used: adjustments that took off more than was used leave nothing that counts.
func (c capped) used(_ *Limit, b bucket, m moment) int64 {
	return max(0, Within(b.level+c.held(m)))
}

// wait: a cap counts to the end of its period alone, which bounds all waits.
func (capped) wait(*Limit, bucket, int64, moment) int64 { return Never }

// resetAt: units that are held count in the next period, too.
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

// giveBack and backdate: MoveCap moves the bucket with what is booked.
func (capped) giveBack(_ *Limit, b bucket, _, _ int64, _ moment) bucket { return b }
func (capped) backdate(_ *Limit, b bucket, _, _ int64, _ moment) bucket { return b }

func (capped) countable(_ *Limit, b bucket, _ moment) int64 { return softCap - b.level }

// countsFrom: a hold counts, whenever it was taken.
func (capped) countsFrom(*Limit, bucket, moment) int64      { return 0 }
func (c capped) began(*Limit, bucket, moment) (int64, bool) { return c.start, true }
func (capped) sound(_ *Limit, b bucket, _ []int64) bool     { return b.level == Within(b.level) }
func (capped) lifetime(*Limit) int64                        { return 0 }
func (capped) mostIn(*Limit, int64, bool) int64             { return math.MaxInt64 }
