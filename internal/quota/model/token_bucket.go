package model

import (
	"fmt"
	"math"
	"math/bits"
)

// tokenBucket is the rule of a bucket that is full at first and is refilled continuously at Limit units per
// Window. With g = gcd(Limit, Window), a unit is Window/g parts, and Limit/g parts are replenished each µs.
// Therefore every level is a whole number of parts, and nothing drifts.
//
// The level is the number of missing parts, 0 … capacity. It exceeds the capacity after an overrun, or after burst
// was lowered. aux specifies the limit whose parts are counted, see ratedBy.
type tokenBucket struct{}

var tokenBucketDescriptor = descriptor{
	facts:  facts{kept: inBucket, refills: true},
	number: TokenBucket, name: "token_bucket", window: durationWindow, takes: []string{"burst"}, hours: spreadByHour, compared: true,
	compile: func(*Limit, *Spec, refusal) rules { return tokenBucket{} },
	reduce:  func(l *Limit, s *Spec) *FieldError { return l.reduce(s.Burst) },
	defaults: func(s *Spec) {
		if s.Burst == nil {
			burst := s.Limit
			s.Burst = &burst
		}
	},
}

// ratedBy returns the aux of a bucket that was written under a limit.
func ratedBy(limit int64) int64 { return -1 - limit }

// stand subtracts the replenished parts. If the limit was edited in the meantime, the replenished parts are summed
// over all rates and rounded once, so that no part is lost.
//
// The parts of a lowered limit may be so small that 64 bits cannot represent the missing parts. In that case the
// bucket stays in parts of the limit under which it was written, so that the used units are kept.
func (tokenBucket) stand(l *Limit, stored bucket, since int64, m moment) bucket {
	own := ratedBy(l.Limit)
	if stored.level == 0 || stored.aux == own && since >= l.edited {
		return bucket{refilled(stored.level, l.refill, m.at-since), own}
	}
	if level := l.convert(stored, since, m.at, own); level < math.MaxInt64 {
		return bucket{level, own}
	}
	return bucket{l.convert(stored, since, m.at, stored.aux), stored.aux}
}

// missing returns the missing parts of a bucket, in parts of the limit, as far as 64 bits can count.
func (l *Limit) missing(b bucket) int64 {
	if own := ratedBy(l.Limit); b.level != 0 && b.aux != own {
		return l.convert(b, 0, 0, own)
	}
	return b.level
}

// bringBack keeps the missing parts, which are replenished from m.at on.
func (tokenBucket) bringBack(_ *Limit, stored bucket, _ int64, _ moment) bucket { return stored }

// refilled returns the parts that are still missing after a time, µs.
func refilled(missing, refill, elapsed int64) int64 {
	switch {
	case refill == 0:
		return missing
	case elapsed > missing/refill:
		return 0
	}
	return missing - elapsed*refill
}

func (tokenBucket) headroom(l *Limit, b bucket, _ moment) int64 {
	return floorDiv(l.capacity-l.missing(b), l.scale)
}

func (t tokenBucket) used(l *Limit, b bucket, m moment) int64 {
	return l.Burst - max(0, t.headroom(l, b, m))
}

func (tokenBucket) charge(l *Limit, b bucket, cost int64, _ moment) bucket {
	unit := l.partsOf(b)
	if high, parts := bits.Mul64(uint64(max(cost, 0)), uint64(unit)); high > 0 || parts > uint64(math.MaxInt64-b.level) {
		return bucket{math.MaxInt64, b.aux}
	}
	return bucket{b.level + cost*unit, b.aux}
}

func (tokenBucket) wait(l *Limit, b bucket, cost int64, _ moment) int64 {
	if cost > l.Burst || l.refill == 0 {
		return Never
	}
	return ceilDiv(l.missing(b)-(l.capacity-cost*l.scale), l.refill)
}

// resetAt returns the last instant of 64 bits of µs if the bucket is full only later.
func (tokenBucket) resetAt(l *Limit, b bucket, m moment) int64 {
	if b.level == 0 || l.refill == 0 {
		return m.at
	}
	return m.at + min(ceilDiv(l.missing(b), l.refill), NoReset-m.at)
}

// giveBack adds tokens, up to the burst. It does not matter whether time has replenished some of the charged
// tokens, because the bucket counts tokens and not their users.
func (tokenBucket) giveBack(l *Limit, b bucket, _, cost int64, _ moment) bucket {
	return bucket{max(0, b.level-min(b.level, mulUpTo(cost, l.partsOf(b)))), b.aux}
}

// partsOf returns the number of parts of a unit in a bucket, for the limit under which the bucket was written.
func (l *Limit) partsOf(b bucket) int64 {
	if b.aux == ratedBy(l.Limit) {
		return l.scale
	}
	return l.Window / common(-1-b.aux, l.Window)
}

// mulUpTo returns the product of two numbers that are at least 0. The product stops at the limit of 64 bits.
func mulUpTo(a, b int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

// backdate adds only the parts that would still be missing at m.at, at the rates since the charge.
func (tokenBucket) backdate(l *Limit, b bucket, at, cost int64, m moment) bucket {
	missing := mulUpTo(cost, l.partsOf(b))
	if at < l.edited || b.aux != ratedBy(l.Limit) {
		missing = l.convert(bucket{missing, b.aux}, at, m.at, b.aux)
	} else {
		missing = refilled(missing, l.refill, m.at-at)
	}
	if missing > math.MaxInt64-b.level {
		return bucket{math.MaxInt64, b.aux}
	}
	return bucket{b.level + missing, b.aux}
}

// countsFrom returns 0, because a bucket does not know which charge used the missing tokens.
func (tokenBucket) countsFrom(*Limit, bucket, moment) int64 { return 0 }

func (tokenBucket) countable(l *Limit, b bucket, _ moment) int64 {
	return (math.MaxInt64 - b.level) / l.partsOf(b)
}

// sound accepts any aux in a bucket without missing parts, because an untouched bucket belongs to no limit.
func (tokenBucket) sound(_ *Limit, b bucket, _ []int64) bool {
	return b.level == 0 || b.level > 0 && b.aux < 0 && -1-b.aux <= MaxNumber
}

// FillTime returns the time in which an empty bucket of a limit that refills is full again, µs, rounded up. ok is
// false if the bucket is never full, or not within 64 bits.
func (l *Limit) FillTime() (us int64, ok bool) {
	if l.Limit == 0 {
		return 0, false
	}
	us = mulDivUp(l.Burst, l.Window, l.Limit)
	return us, us < math.MaxInt64
}

func (tokenBucket) lifetime(l *Limit) int64 {
	us, _ := l.FillTime()
	return min(us, MaxWindow)
}

func (tokenBucket) began(*Limit, bucket, moment) (int64, bool) { return 0, false }

func (tokenBucket) mostIn(l *Limit, time int64, _ bool) int64 {
	return AddUpTo(l.Burst, mulDivUp(l.Limit, time, l.Window))
}

// mulDivUp returns ⌈a·b/c⌉ for a, b ≥ 0 and c > 0. The result stops at the limit of 64 bits.
func mulDivUp(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(c) {
		return math.MaxInt64
	}
	q, r := bits.Div64(high, low, uint64(c))
	if r > 0 {
		q++
	}
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(q)
}

// reduce reduces the limit, and refuses a limit that 64 bits cannot represent.
func (l *Limit) reduce(burst *int64) *FieldError {
	l.Burst = l.Limit
	if burst != nil {
		l.Burst = *burst
	}
	g := common(l.Limit, l.Window)
	l.scale, l.refill = l.Window/g, l.Limit/g
	if l.Burst > math.MaxInt64/l.scale {
		return l.cannotHold(burst != nil)
	}
	l.capacity = l.Burst * l.scale
	return nil
}

// cannotHold returns an error that names a representable limit near the requested limit: the nearest lower
// multiple of a divisor of the window that is large enough to keep the parts in 64 bits.
func (l *Limit) cannotHold(ownBurst bool) *FieldError {
	least := ceilDiv(l.Window, math.MaxInt64/l.Burst) // the smallest gcd that suffices
	near := l.Limit - l.Limit%divisorFrom(l.Window, least)
	detail := fmt.Sprintf("limit %d per %s cannot be counted exactly with a burst of %d: ", l.Limit, l.WindowText, l.Burst)
	if near > 0 {
		return &FieldError{"limit", detail + fmt.Sprintf("limit %d can be held", near)}
	}
	field := "limit"
	if ownBurst {
		field = "burst"
	}
	return &FieldError{field, detail + fmt.Sprintf("a burst of at most %d can be held", math.MaxInt64/l.scale)}
}

// divisorFrom returns the smallest divisor of n that is at least least (1 ≤ least ≤ n). It only serves the text of
// an error, so it tries at most a million numbers instead of all numbers up to √n. In that case the divisor may be
// a larger one.
func divisorFrom(n, least int64) int64 {
	best := n
	for d := int64(1); d <= min(n/d, 1e6); d++ {
		if n%d != 0 {
			continue
		}
		if d >= least {
			return d
		}
		if n/d >= least {
			best = min(best, n/d)
		}
	}
	return best
}

// common returns the number by which a limit and its window are reduced. The scale of a closed limit is its
// window.
func common(limit, window int64) int64 { return gcd(max(limit, 1), window) }

// gcd returns the greatest common divisor of a ≥ 0 and b > 0.
func gcd(a, b int64) int64 {
	for a != 0 {
		a, b = b%a, a
	}
	return b
}

// ceilDiv returns ⌈a/b⌉ for a ≥ 0 and b > 0, without overflow.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}

// floorDiv returns ⌊a/b⌋ for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
