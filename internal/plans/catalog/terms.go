package catalog

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// fact is the change number at which something was read, and the floor by which it is valid or
// not.
type fact struct {
	asOf  int64 // the newest change when it was read
	floor *atomic.Int64
}

func (f *fact) valid() bool { return f.floor.Load() <= f.asOf }

func (f *fact) read() *fact { return f }

// customerEntry is what hits need of a customer, or that there is no such customer (known is
// false). terms follow from the entry and its plan. They are made when first needed, and again
// after the plan has changed.
type customerEntry struct {
	fact
	known     bool
	gone      bool // the key is an archived customer's, so no new one may have it
	anonymous bool
	id        int64
	change    int64
	onPlan
	scheduled *scheduled       // nil: no other plan waits
	capped    bool             // a meter has a cap
	periods   calendar.Periods // without an interval, which is the plan's
	clock     string           // the key of its test clock, or none

	// What differs from the plan: features, and limits by their names, now and before.
	features  map[string]any
	overrides map[string]plans.StoredOverride
	rates     map[string]*plans.OwnRates

	suspension *plans.Suspension // nil: none
	ends       *int64            // from here on it is refused what it asks for, µs by its clock; nil: never

	reached atomic.Int64 // the latest instant that the entry was read or judged at, see newTerms, µs; not by a test clock

	rows  []byte // what the customer's targets knew of their counters when it was packed, see appendRows
	since int64  // the instant that those in rows are counted from, µs

	terms atomic.Pointer[terms]
}

// planEntry is the part of a plan that changes. latest is the number of its latest version.
// all is that of the latest version written for all customers (0: none).
type planEntry struct {
	fact
	id     int32
	latest int
	all    int
}

// clockEntry is a test clock as it was set last.
type clockEntry struct {
	fact
	change int64
	model.TestClock
	history plans.ClockHistory // see the store's putClock
}

type meterEntry struct {
	fact
	meter   plans.Meter
	known   bool
	returns bool // its units may come back, see Returning
}

// effective is the version in force. That is the pinned one. Without it, it is the latest at
// the time of joining, or a later one that was written for all. customerColumns computes the
// same in SQL, and a test compares the two.
func (o *onPlan) effective(p *planEntry) int {
	if o.pinned != 0 {
		return o.pinned
	}
	return max(o.joined, p.all)
}

// instant is what the customer's clock shows, as far as is known, µs.
func (e *customerEntry) instant(c *clockEntry) int64 {
	if c != nil {
		return c.Now
	}
	return e.reached.Load()
}

// terms are what a customer has at one moment: the plan version in force, and the targets of
// its hits.
type terms struct {
	entry   *customerEntry
	on      *onPlan // the entry's, or that of its scheduled change
	plan    *planEntry
	before  *version    // that the customer was on before its scheduled change; nil: none counts yet
	next    *terms      // as they are once the scheduled change counts; nil: none waits, or they could not be read
	clock   *clockEntry // nil: PostgreSQL's time
	version *version
	history uint64 // the generation of their memory
	asOf    atomic.Int64
	shown   *plans.Plan // the version's, with the customer's features over its own
	change  int64
	now     int64 // overrides that had expired by then count no more, µs
	ends    int64 // when the next one ends, or another plan or cap counts, µs; 0: never, or a test clock says it

	caps []plans.CapPeriod // from the period that ran when they were read on
	cap  *plans.CapPeriod  // that counts now; nil: none

	// targets are those that were asked for, as a linked list, the newest first. A plan may
	// name a thousand meters, of which a customer uses two.
	targets atomic.Pointer[meterTarget]
}

// meterTarget is the target of one meter.
type meterTarget struct {
	meter  *planMeter
	target *model.Target
	older  *meterTarget

	capEnds int64        // when the period of the target's cap ends, µs, if the customer lives by a test clock; else 0
	reached atomic.Int64 // the latest instant, µs, that the target was judged at after its cap's end
}

// of returns the newest target of a meter; nil when nobody has asked for it.
func (mt *meterTarget) of(m *planMeter) *meterTarget {
	for ; mt != nil; mt = mt.older {
		if mt.meter == m {
			return mt
		}
	}
	return nil
}

// over reports whether a hit was judged after the end of the target's cap.
func (mt *meterTarget) over() bool { return mt.capEnds > 0 && mt.reached.Load() >= mt.capEnds }

// current is the entry's terms if they are still valid, else nil. The customer's fact must be
// checked first, see memory.
func (e *customerEntry) current() *terms {
	t := e.terms.Load()
	if t == nil || !t.valid() {
		return nil
	}
	return t
}

func (t *terms) valid() bool {
	return t.entry.valid() && t.plan.valid() && (t.next == nil || t.next.plan.valid()) && (t.clock == nil || t.clock.valid()) &&
		(t.ends == 0 || t.entry.reached.Load() < t.ends)
}

// rightAsOf notes that the terms are right as of a change. They were found to be valid after all
// changes up to it counted.
func (t *terms) rightAsOf(change int64) {
	for {
		last := t.asOf.Load()
		if last >= change || t.asOf.CompareAndSwap(last, change) {
			return
		}
	}
}

// newTerms makes terms of what counts at now, µs by the customer's clock.
func newTerms(history uint64, e *customerEntry, now int64, on *onPlan, p *planEntry, c *clockEntry, v, before *version) *terms {
	t := &terms{history: history, entry: e, on: on, plan: p, before: before, clock: c, version: v, shown: v.plan.WithFeatures(e.features)}
	// The number leaves out changes of the meter. A hit is judged by the meter's id, which
	// never changes and is older than the plan version that names the meter.
	t.change, t.now = max(e.change, v.change), now
	if c != nil {
		t.change = max(t.change, c.change)
		return t
	}
	if s := e.scheduled; s != nil && before == nil {
		t.ends = s.at
	}
	for _, o := range e.overrides {
		if at := o.ExpiresAt; at != nil && *at > t.now && (t.ends == 0 || *at < t.ends) {
			t.ends = *at
		}
	}
	return t
}

// periods are the customer's, with the interval of its plan.
func (t *terms) periods() calendar.Periods {
	p := t.entry.periods
	p.Interval = t.version.plan.BillingInterval()
	return p
}

// target returns the target of one meter of the plan. All callers get the same one.
func (t *terms) target(m *planMeter) *model.Target {
	for {
		present := t.targets.Load()
		last := present.of(m)
		if last != nil && !last.over() {
			return last.target
		}
		made := t.makeTarget(m, last)
		made.older = present
		if t.targets.CompareAndSwap(present, made) {
			return made.target
		}
	}
}

// makeTarget makes the target of a meter. last is the target before it, whose cap has ended; nil: there
// is none.
//
// A counter never goes back, even if a test clock does: hits are judged and booked no earlier than the
// counter's last charge. So the cap is that of the billing period in which the meter's hits are booked.
func (t *terms) makeTarget(m *planMeter, last *meterTarget) *meterTarget {
	made, counts := &meterTarget{meter: m}, t.cap
	if last != nil {
		counts = t.capAt(last.reached.Load())
	}
	made.target = model.NewTarget(t.change, t.entry.id, m.id, withCap(counts, m, t.limits(m)), t.periods(), t.testClock())
	// The cap may be of a later period alone: a trial has none.
	if made.target.SetEnding(t.ends, &t.entry.reached); counts != nil && t.clock != nil {
		made.capEnds = counts.End
		made.target.SetEnding(counts.End, &made.reached)
	}
	t.schedule(made.target, m.id)
	if counts != nil {
		made.target.NotBefore(counts.Start)
	}
	made.target.SetHistory(t.history, &t.asOf)
	t.entry.bar(made.target)
	t.entry.learnRow(m.id, made.target)
	return made
}

// bar says from when on the hits of the customer are refused.
func (e *customerEntry) bar(target *model.Target) {
	switch {
	case e.suspension != nil:
		target.Bar(math.MinInt64, &plans.SuspendedError{Reason: e.suspension.Reason})
	case e.ends != nil:
		target.Bar(*e.ends, plans.ErrEnded)
	}
}

func (t *terms) testClock() *model.TestClock {
	if t.clock == nil {
		return nil
	}
	return &t.clock.TestClock
}

// limits are the limits of a meter, with the customer's overrides, and with what they were before.
// Customers that have nothing of their own share them.
func (t *terms) limits(m *planMeter) []*model.Limit {
	e := t.entry
	if len(e.overrides) == 0 && len(e.rates) == 0 && t.clock == nil && t.before == nil {
		return t.version.limits(m, t.on.joined, t.on.pinned)
	}
	limits := m.limits
	for i, l := range m.limits {
		own := t.limit(l)
		if own == l {
			continue
		}
		if &limits[0] == &m.limits[0] {
			limits = slices.Clone(m.limits)
		}
		limits[i] = own
	}
	return limits
}

// limit is one limit of the plan as the customer has it now.
func (t *terms) limit(l *model.Limit) *model.Limit {
	e, ends, overridden := t.entry, int64(math.MaxInt64), false
	if o, ok := e.overrides[l.Name]; ok && !o.Expired(t.now) {
		// Where the limit has changed so that the override no longer fits, the plan's own counts.
		if own, bad := o.Over(t.version.plan, l.Name); len(bad) == 0 {
			if l, overridden = own, true; o.ExpiresAt != nil {
				ends = *o.ExpiresAt
				l = l.Ending(ends)
			}
		}
	}
	if !l.Algorithm.Refills() {
		return l
	}
	var clock plans.ClockHistory
	if t.clock != nil {
		clock = t.clock.history
	}
	plan, own := plans.PlanRates(t.version.editions, t.on.joined, t.on.pinned, l.Name, clock), e.rates[l.Name]
	if t.before != nil {
		own = t.changedRates(l.Name, own, plan, clock)
	}
	// Rates up to the end of an override do not count before that end where the override does not fit
	// the plan any more.
	if own != nil && !overridden && (own.Until == nil || *own.Until > own.At && *own.Until > t.now) {
		own = nil
	}
	return l.WithRates(own.RatesOver(plan, clock).Before(ends))
}

// version is an immutable plan version, compiled once for all customers on it.
type version struct {
	plan     *plans.Plan
	change   int64
	order    []*planMeter
	meters   map[string]*planMeter
	editions []plans.Edition // of the plan, up to this version
	joined   sync.Map        // of joining → limits of a customer that joined then
}

// joining is a version that customers joined their plan at, and a meter of another version.
type joining struct {
	meter  *planMeter
	joined int
}

// limits are the limits of a meter of customers that joined their plan at a version and have
// nothing of their own. They know what they were since then.
func (v *version) limits(m *planMeter, joined, pinned int) []*model.Limit {
	if joined == v.plan.Version || pinned != 0 || !slices.ContainsFunc(m.limits, func(l *model.Limit) bool { return l.Algorithm.Refills() }) {
		return m.limits
	}
	if known, ok := v.joined.Load(joining{m, joined}); ok {
		return known.([]*model.Limit)
	}
	limits, own := m.limits, slices.Clone(m.limits)
	for i, l := range own {
		if own[i] = l.WithRates(plans.PlanRates(v.editions, joined, 0, l.Name, nil)); own[i] != l {
			limits = own
		}
	}
	known, _ := v.joined.LoadOrStore(joining{m, joined}, limits) // all share one
	return known.([]*model.Limit)
}

type versionKey struct {
	plan   int32
	number int
}

// planMeter is a meter as a plan version has it.
type planMeter struct {
	key    string
	id     int32
	limits []*model.Limit
	price  *plans.Price
}

// compile prepares a stored version. ids has the id of each meter that the version names.
func compile(p *plans.Plan, change int64, ids map[string]int32) (*version, error) {
	v := &version{plan: p, change: change, meters: make(map[string]*planMeter)}
	for _, key := range p.MeterKeys() {
		m := &planMeter{key: key, id: ids[key]}
		if m.id == 0 {
			return nil, fmt.Errorf("plan %s version %d names a meter %s that is not there", p.Key, p.Version, key)
		}
		v.meters[key] = m
		v.order = append(v.order, m)
	}
	for i := range p.Limits {
		limit, bad := model.Compile(p.Limits[i].Spec)
		if bad != nil {
			return nil, fmt.Errorf("plan %s version %d is stored with a bad limit: %w", p.Key, p.Version, bad)
		}
		m := v.meters[p.Limits[i].Meter]
		m.limits = append(m.limits, limit)
	}
	for i := range p.Prices {
		v.meters[p.Prices[i].Meter].price = &p.Prices[i]
	}
	for _, m := range v.order {
		m.limits = slices.Clip(m.limits)
	}
	return v, p.BillingInterval().Validate()
}
