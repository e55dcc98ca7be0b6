package quota

import (
	"fmt"
	"math"
	"math/big"
)

// oracle knows the two algorithms by the contract's definitions alone: it remembers every
// charge or counts tokens as fractions, and finds waits by searching for the first
// instant that admits. It shares nothing with level.go but the Spec.
type oracle struct {
	buckets map[CounterKey]map[string]*oracleBucket
	at      map[CounterKey]int64 // the last charge
}

// oracleBucket is one limit's bucket, as it was at the counter's last charge.
type oracleBucket struct {
	charges []oracleCharge // fixed_window: all there ever were
	missing *big.Rat       // token_bucket: tokens missing
}

type oracleCharge struct{ at, cost int64 }

// oracleLimit is a limit as the contract states it.
type oracleLimit struct {
	name          string
	bucket        bool // token_bucket
	limit, window int64
	burst         int64
}

func newOracle() *oracle {
	return &oracle{make(map[CounterKey]map[string]*oracleBucket), make(map[CounterKey]int64)}
}

func oracleLimitOf(l *Limit) oracleLimit {
	return oracleLimit{l.Name, l.Algorithm.String() == "token_bucket", l.Limit, l.Window, l.Burst}
}

// identity: a bucket is kept while these stay, and starts anew when one changes.
func (l oracleLimit) identity() string { return fmt.Sprint(l.name, l.bucket, l.window) }

// quota is the whole of it.
func (l oracleLimit) quota() int64 {
	if l.bucket {
		return l.burst
	}
	return l.limit
}

// level is what counts against the limit at an instant, in units (a fraction of one for
// a token bucket that refills).
func (l oracleLimit) level(b *oracleBucket, since int64, at uint64) *big.Rat {
	level := new(big.Rat)
	if b == nil {
		return level
	}
	if !l.bucket {
		for _, c := range b.charges {
			if uint64(c.at/l.window) == at/uint64(l.window) {
				level.Add(level, big.NewRat(c.cost, 1))
			}
		}
		return level
	}
	back := new(big.Rat).Mul(new(big.Rat).SetUint64(at-uint64(since)), big.NewRat(l.limit, l.window))
	level.Sub(l.whole(b.missing), back)
	if level.Sign() < 0 {
		level.SetInt64(0)
	}
	return level
}

// whole rounds tokens that another limit left behind up to a multiple of the smallest
// step in which this limit's level moves, at most the 2⁶³−1 steps that are stored.
func (l oracleLimit) whole(missing *big.Rat) *big.Rat {
	perMicro := big.NewRat(l.limit, l.window)
	step := new(big.Rat).SetFrac(big.NewInt(1), perMicro.Denom())
	steps := new(big.Rat).Quo(missing, step)
	n := new(big.Int).Add(steps.Num(), new(big.Int).Sub(steps.Denom(), big.NewInt(1)))
	if n.Div(n, steps.Denom()); !n.IsInt64() {
		n.SetInt64(math.MaxInt64)
	}
	rounded := new(big.Rat).SetInt(n)
	return rounded.Mul(rounded, step)
}

// admits is the contract's table.
func (l oracleLimit) admits(level *big.Rat, cost int64) bool {
	sum := new(big.Rat).Add(level, big.NewRat(cost, 1))
	return cost == 0 || sum.Cmp(big.NewRat(l.quota(), 1)) <= 0
}

// remaining is the largest cost it would admit, by bisection.
func (l oracleLimit) remaining(level *big.Rat) int64 {
	low, high := int64(0), MaxNumber+1
	for high-low > 1 {
		if mid := low + (high-low)/2; l.admits(level, mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// first is the smallest w ≥ 0 at which a condition holds that stays true once it is, or
// Never when that is at no time an int64 of µs can name.
func first(holds func(w uint64) bool) int64 {
	low, high := int64(0), int64(math.MaxInt64)
	if holds(0) {
		return 0
	}
	if !holds(math.MaxInt64) {
		return Never
	}
	for high-1 > low {
		if mid := low + (high-low)/2; holds(uint64(mid)) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

func (o *oracle) instant(t *Target, now int64) int64 {
	for i := range t.Counters {
		now = max(now, o.at[t.Counters[i].Key])
	}
	return now
}

// judge says whether all limits admit a hit, and at which instant.
func (o *oracle) judge(t *Target, now, cost int64) (allowed bool, at int64) {
	at, allowed = o.instant(t, now), true
	for i := range t.Counters {
		key := t.Counters[i].Key
		for _, l := range t.Counters[i].Limits {
			l := oracleLimitOf(l)
			allowed = allowed && l.admits(l.level(o.buckets[key][l.identity()], o.at[key], uint64(at)), cost)
		}
	}
	return allowed, at
}

// decide judges a hit, charges it when it is admitted, and returns the views behind it.
func (o *oracle) decide(t *Target, now, cost int64) (allowed bool, at int64, views []View) {
	allowed, at = o.judge(t, now, cost)
	if allowed && cost > 0 {
		o.charge(t, at, cost)
	}
	return allowed, at, o.views(t, at, cost, allowed)
}

// look judges a hit and charges nothing.
func (o *oracle) look(t *Target, now, cost int64) (allowed bool, at int64, views []View) {
	allowed, at = o.judge(t, now, cost)
	return allowed, at, o.views(t, at, cost, allowed)
}

func (o *oracle) charge(t *Target, at, cost int64) {
	for i := range t.Counters {
		key := t.Counters[i].Key
		after := make(map[string]*oracleBucket) // limits that are no more are forgotten
		for _, l := range t.Counters[i].Limits {
			l := oracleLimitOf(l)
			b := o.buckets[key][l.identity()]
			level := l.level(b, o.at[key], uint64(at))
			next := &oracleBucket{missing: level.Add(level, big.NewRat(cost, 1))}
			if !l.bucket && b != nil {
				next.charges = b.charges
			}
			if !l.bucket {
				next.charges = append(next.charges[:len(next.charges):len(next.charges)], oracleCharge{at, cost})
			}
			after[l.identity()] = next
		}
		o.buckets[key], o.at[key] = after, at
	}
}

func (o *oracle) views(t *Target, at, cost int64, allowed bool) (views []View) {
	for i := range t.Counters {
		key := t.Counters[i].Key
		for _, compiled := range t.Counters[i].Limits {
			l, b, since := oracleLimitOf(compiled), o.buckets[key][oracleLimitOf(compiled).identity()], o.at[key]
			level := l.level(b, since, uint64(at))
			v := View{Limit: compiled, Remaining: l.remaining(level), ResetAt: at}
			if v.Used = l.quota() - v.Remaining; !l.bucket {
				v.Used = new(big.Int).Div(level.Num(), level.Denom()).Int64()
			}
			if !allowed {
				v.RetryAfter = first(func(w uint64) bool { return l.admits(l.level(b, since, uint64(at)+w), cost) })
			}
			if w := first(func(w uint64) bool { return l.level(b, since, uint64(at)+w).Sign() == 0 }); w != Never {
				v.ResetAt = at + min(w, math.MaxInt64-at)
			}
			views = append(views, v)
		}
	}
	return views
}
