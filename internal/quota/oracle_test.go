package quota

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"strings"

	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

// oracle knows the algorithms by the contract's definitions alone: it remembers every
// charge or counts tokens as fractions, and finds waits by searching for the first
// instant that admits. It shares nothing with the rules but the Spec.
type oracle struct {
	buckets map[model.CounterKey]map[string]*oracleBucket
	at      map[model.CounterKey]int64 // the last charge
}

// oracleBucket is one limit's bucket, as it was at the counter's last charge.
type oracleBucket struct {
	charges []oracleCharge   // all there ever were
	missing *big.Rat         // token_bucket: tokens missing
	periods calendar.Periods // the customer's calendar at the last charge
	at      int64            // the last charge
}

// since is when the bucket was charged last.
func (b *oracleBucket) since() int64 {
	if b == nil {
		return 0
	}
	return b.at
}

type oracleCharge struct{ at, cost int64 }

// oracleLimit is a limit as the contract states it.
type oracleLimit struct {
	name, algorithm, align, calendar string // calendar: the name of the calendar's window
	mode                             string
	limit, window, precision         int64
	burst                            int64
	rates                            model.Rates
	judged                           int64 // the instant of the hit: no edit is later
	periods                          calendar.Periods
}

func newOracle() *oracle {
	return &oracle{make(map[model.CounterKey]map[string]*oracleBucket), make(map[model.CounterKey]int64)}
}

func oracleLimitOf(t *model.Target, l *model.Limit, at int64) oracleLimit {
	o := oracleLimit{
		name: l.Name, algorithm: l.Algorithm.String(), mode: l.Mode.String(),
		limit: l.Limit, window: l.Window, precision: l.Precision, burst: l.Burst, periods: t.Periods,
		rates: l.Rates(), judged: at,
	}
	if l.FirstHit {
		o.align = "first_hit"
	}
	if l.Calendar {
		o.calendar = l.WindowText
	}
	return o
}

// identity: a bucket is kept while these stay, and starts again when one changes.
func (l oracleLimit) identity() string {
	return fmt.Sprint(l.name, " ", l.algorithm, " ", l.align, " ", l.window, l.calendar, " ", l.precision)
}

// quota is the whole of it.
func (l oracleLimit) quota() int64 {
	if l.algorithm == "token_bucket" {
		return l.burst
	}
	return l.limit
}

// naiveWindow is the calendar's window of a name that holds an instant: the period of an
// anchor at which such windows start.
func naiveWindow(name string, p calendar.Periods, at int64) (start, end int64) {
	anchor, unit := "1970-01-01T00:00:00", calendar.Unit(strings.TrimPrefix(name, "calendar_"))
	switch name {
	case "billing_period":
		_, start, end = calendar.Period(p.Anchor, p.Interval, p.Zone, at)
		return start, end
	case "calendar_week":
		anchor = "1970-01-05T00:00:00" // a Monday
	}
	parsed, err := calendar.ParseAnchor(anchor)
	if err != nil {
		panic(err)
	}
	_, start, end = calendar.Period(parsed, calendar.Interval{Unit: unit, Count: 1}, p.Zone, at)
	return start, end
}

// level is what counts against the limit at an instant, in units (a fraction of one for
// a token bucket that refills).
func (l oracleLimit) level(b *oracleBucket, since int64, at uint64) *big.Rat {
	if b == nil {
		return new(big.Rat)
	}
	switch {
	case l.algorithm == "token_bucket":
		return l.tokens(b, since, at)
	case l.algorithm == "sliding_window":
		w := uint64(l.window)
		current := b.between(at-at%w, at-at%w+w)
		previous := new(big.Int)
		if at >= w {
			previous = b.between(at-at%w-w, at-at%w)
		}
		previous.Mul(previous, new(big.Int).SetUint64(w-at%w))
		return new(big.Rat).SetInt(current.Add(current, previous.Div(previous, new(big.Int).SetUint64(w))))
	case l.algorithm == "sliding_log":
		sum := new(big.Int)
		for _, c := range b.charges {
			last := uint64(c.at/l.precision*l.precision + l.precision - 1) // of its block
			if at < last+uint64(l.window) {
				sum.Add(sum, big.NewInt(c.cost))
			}
		}
		return new(big.Rat).SetInt(sum)
	case l.align == "first_hit":
		start, used := uint64(0), int64(0)
		for i, c := range b.charges {
			if i == 0 || uint64(c.at) >= start+uint64(l.window) {
				start, used = uint64(c.at), 0
			}
			used += c.cost
		}
		if at >= start+uint64(l.window) {
			used = 0
		}
		return big.NewRat(used, 1)
	case l.algorithm == "allocation":
		return new(big.Rat).SetInt(b.between(0, math.MaxUint64))
	case l.calendar != "":
		start, end := naiveWindow(l.calendar, l.periods, int64(min(at, math.MaxInt64)))
		under := oracleBucket{charges: l.moved(b, since)}
		return new(big.Rat).SetInt(under.between(uint64(start), uint64(end)))
	case l.algorithm != "fixed_window":
		panic("the oracle does not know " + l.algorithm)
	}
	w := uint64(l.window)
	return new(big.Rat).SetInt(b.between(at-at%w, at-at%w+w))
}

// between is the cost of the charges in [start, end).
func (b *oracleBucket) between(start, end uint64) *big.Int {
	sum := new(big.Int)
	for _, c := range b.charges {
		if start <= uint64(c.at) && uint64(c.at) < end {
			sum.Add(sum, big.NewInt(c.cost))
		}
	}
	return sum
}

// moved are the charges of a calendar's window. Where the calendar is another one since
// the last charge, what counted then is taken to have been used then, however long before,
// so that a window that the change makes longer never admits too much.
func (l oracleLimit) moved(b *oracleBucket, since int64) []oracleCharge {
	if reflect.DeepEqual(b.periods, l.periods) {
		return b.charges
	}
	start, end := naiveWindow(l.calendar, b.periods, since)
	var counted []oracleCharge
	for _, c := range b.charges {
		if start <= c.at && c.at < end {
			counted = append(counted, oracleCharge{since, c.cost})
		}
	}
	return counted
}

// tokens are those that are missing: what came back at each rate is off, and what is left is whole
// steps of the present limit.
func (l oracleLimit) tokens(b *oracleBucket, since int64, at uint64) *big.Rat {
	missing := b.missing
	for i, r := range append(model.Rates{{From: model.Always, Limit: l.limit}}, l.rates...) {
		from, to := max(r.From, since), l.judged
		if i == 0 && len(l.rates) > 0 {
			continue // it was always the same only where there are no rates
		}
		if i > 0 && i < len(l.rates) {
			to = min(to, l.rates[i].From)
		}
		if from < to {
			missing = less(missing, r.Limit, l.window, uint64(to-from))
		}
	}
	return less(l.whole(missing), l.limit, l.window, at-uint64(l.judged))
}

// less takes off what comes back of limit units a window in some µs.
func less(missing *big.Rat, limit, window int64, elapsed uint64) *big.Rat {
	back := new(big.Rat).Mul(new(big.Rat).SetUint64(elapsed), big.NewRat(limit, window))
	level := new(big.Rat).Sub(missing, back)
	if level.Sign() < 0 {
		level.SetInt64(0)
	}
	return level
}

// whole rounds tokens that another limit left behind up to a multiple of the smallest
// step in which this limit's level moves, at most the 2⁶³−1 steps that are stored.
func (l oracleLimit) whole(missing *big.Rat) *big.Rat {
	perMicro := big.NewRat(max(l.limit, 1), l.window)
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
	low, high := int64(0), model.MaxNumber+1
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
		return model.Never
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

func (o *oracle) instant(t *model.Target, now int64) int64 {
	for i := range t.Counters {
		now = max(now, o.at[t.Counters[i].Key])
	}
	return now
}

// judge says whether all hard limits admit a hit, at which instant, and whether each
// limit of whatever mode does, by its name and counter.
func (o *oracle) judge(t *model.Target, now, cost int64) (allowed bool, at int64, fits map[*model.Limit]bool) {
	at, allowed, fits = o.instant(t, now), true, make(map[*model.Limit]bool)
	for i := range t.Counters {
		key := t.Counters[i].Key
		for _, compiled := range t.Counters[i].Limits {
			l := oracleLimitOf(t, compiled, at)
			b := o.buckets[key][l.identity()]
			level := l.level(b, b.since(), uint64(at))
			within := level.Cmp(big.NewRat(l.quota(), 1)) <= 0
			fits[compiled] = l.admits(level, cost) && (cost > 0 || within)
			allowed = allowed && (l.mode != "hard" || l.admits(level, cost))
		}
	}
	return allowed, at, fits
}

// decide judges a hit, charges it when it is admitted, and returns the views after it.
func (o *oracle) decide(t *model.Target, now, cost int64) (allowed bool, at int64, views []model.View) {
	allowed, at, fits := o.judge(t, now, cost)
	if allowed && cost > 0 {
		o.Charge(t, at, cost, fits)
	}
	return allowed, at, o.views(t, at, cost, allowed, fits)
}

// look judges a hit and charges nothing.
func (o *oracle) look(t *model.Target, now, cost int64) (allowed bool, at int64, views []model.View) {
	allowed, at, fits := o.judge(t, now, cost)
	return allowed, at, o.views(t, at, cost, allowed, fits)
}

func (o *oracle) Charge(t *model.Target, at, cost int64, fits map[*model.Limit]bool) {
	for i := range t.Counters {
		key := t.Counters[i].Key
		after := make(map[string]*oracleBucket)
		maps.Copy(after, o.buckets[key]) // a limit that is no more finds its bucket when it comes back
		for _, compiled := range t.Counters[i].Limits {
			l, cost := oracleLimitOf(t, compiled, at), cost
			if l.mode == "shadow" && !fits[compiled] {
				cost = 0
			}
			b := o.buckets[key][l.identity()]
			level := l.level(b, b.since(), uint64(at))
			next := &oracleBucket{missing: level.Add(level, big.NewRat(cost, 1)), periods: t.Periods, at: at}
			switch {
			case b == nil:
			case l.calendar != "":
				next.charges = l.moved(b, b.since())
			default:
				next.charges = b.charges
			}
			if cost > 0 {
				next.charges = append(next.charges[:len(next.charges):len(next.charges)], oracleCharge{at, cost})
			}
			after[l.identity()] = next
		}
		o.buckets[key], o.at[key] = after, at
	}
}

func (o *oracle) views(t *model.Target, at, cost int64, allowed bool, fits map[*model.Limit]bool) (views []model.View) {
	for i := range t.Counters {
		key := t.Counters[i].Key
		for _, compiled := range t.Counters[i].Limits {
			l := oracleLimitOf(t, compiled, at)
			b := o.buckets[key][l.identity()]
			since := b.since()
			level := l.level(b, since, uint64(at))
			v := model.View{Limit: compiled, Remaining: l.remaining(level), ResetAt: at}
			if v.Used = l.quota() - v.Remaining; l.algorithm != "token_bucket" {
				v.Used = new(big.Int).Div(level.Num(), level.Denom()).Int64()
			}
			if v.Exceeded = !fits[compiled]; l.mode == "hard" { // only past its units, as when it was lowered
				v.Exceeded = v.Used > l.quota() || l.algorithm == "token_bucket" && level.Cmp(new(big.Rat).SetInt64(l.quota())) > 0
			}
			if !allowed && l.mode != "soft" {
				v.RetryAfter = first(func(w uint64) bool { return l.admits(l.level(b, since, uint64(at)+w), cost) })
			}
			switch w := first(func(w uint64) bool { return l.level(b, since, uint64(at)+w).Sign() == 0 }); {
			case w != model.Never:
				v.ResetAt = at + min(w, math.MaxInt64-at)
			case l.algorithm == "allocation":
				v.ResetAt = math.MaxInt64
			}
			views = append(views, v)
		}
	}
	return views
}
