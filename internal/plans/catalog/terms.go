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

// fact contains the change number at which a value was read, and the floor that determines whether the
// value is valid.
type fact struct {
	asOf  int64 // newest change at the time of the read
	floor *atomic.Int64
}

func (f *fact) valid() bool { return f.floor.Load() <= f.asOf }

func (f *fact) read() *fact { return f }

// customerEntry contains the data of a customer that hits need, or records that the customer does not
// exist (known is false). terms is derived from the entry and its plan when first needed, and again after
// the plan has changed.
type customerEntry struct {
	fact
	known     bool
	gone      bool // the key belongs to an archived customer, so no new customer may have it
	anonymous bool
	id        int64
	change    int64
	onPlan
	scheduled *scheduled       // nil if no change of plan is pending
	capped    bool             // a meter has a cap
	periods   calendar.Periods // without an interval, which the plan defines
	clock     string           // key of the test clock; empty if there is none

	// The customer's differences from its plan: features, and present and past limits by name.
	features  map[string]any
	overrides map[string]plans.StoredOverride
	rates     map[string]*plans.OwnRates

	suspension *plans.Suspension // nil if there is none
	ends       *int64            // instant from which hits are refused, µs by the customer's clock; nil if never

	reached atomic.Int64 // latest instant of a read or judgement, see newTerms, µs; not used with a test clock

	rows  []byte // packed information of the customer's targets about their counters, see appendRows
	since int64  // base of the instants in rows, µs

	terms atomic.Pointer[terms]
}

// planEntry is the changeable part of a plan. latest is the number of the plan's latest version. all is
// the number of the latest version that was written for all customers (0 if there is none).
type planEntry struct {
	fact
	id     int32
	latest int
	all    int
}

// clockEntry is a test clock in its latest state.
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
	returns bool // its units may be given back, see Returning
}

// effective returns the version in force, which is the pinned version. Without a pin, it is the latest
// version at the time of joining, or a later version that was written for all customers. customerColumns
// computes the same in SQL, and a test compares the two.
func (o *onPlan) effective(p *planEntry) int {
	if o.pinned != 0 {
		return o.pinned
	}
	return max(o.joined, p.all)
}

// instant returns the latest known time of the customer's clock, µs.
func (e *customerEntry) instant(c *clockEntry) int64 {
	if c != nil {
		return c.Now
	}
	return e.reached.Load()
}

// terms contains the plan version in force for a customer at one moment, and the targets of the
// customer's hits.
type terms struct {
	entry   *customerEntry
	on      *onPlan // plan of the entry, or of its scheduled change
	plan    *planEntry
	before  *version    // version before the scheduled change; nil if no change applies yet
	next    *terms      // terms after the pending change; nil if there is none, or if they could not be read
	clock   *clockEntry // nil means PostgreSQL's time
	version *version
	history uint64 // generation of the memory
	asOf    atomic.Int64
	shown   *plans.Plan // plan of version, with the customer's features merged over its own
	change  int64
	now     int64 // instant of the terms, µs; overrides that had expired by then do not apply
	ends    int64 // instant at which an override ends or another plan or cap applies, µs; 0 if never or on a test clock

	caps []plans.CapPeriod // from the period that ran at the read on
	cap  *plans.CapPeriod  // cap that applies now; nil if there is none

	// targets is a linked list of the targets that were requested, the newest first. A list is short,
	// because a customer uses few of the thousand meters that a plan may name.
	targets atomic.Pointer[meterTarget]
}

// meterTarget is the target of one meter.
type meterTarget struct {
	meter  *planMeter
	target *model.Target
	older  *meterTarget

	capEnds int64        // end of the period of the target's cap, µs, for a customer on a test clock; otherwise 0
	reached atomic.Int64 // latest judgement of the target after its cap's end, µs
}

// of returns the newest target of a meter, or nil if none was requested.
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

// current returns the entry's terms if they are still valid, and nil otherwise. The customer's fact must
// be checked first, see memory.
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

// rightAsOf records that the terms are valid as of a change. They were found valid after all changes up
// to it were applied.
func (t *terms) rightAsOf(change int64) {
	for {
		last := t.asOf.Load()
		if last >= change || t.asOf.CompareAndSwap(last, change) {
			return
		}
	}
}

// newTerms builds the terms that apply at now, µs by the customer's clock.
func newTerms(history uint64, e *customerEntry, now int64, on *onPlan, p *planEntry, c *clockEntry, v, before *version) *terms {
	t := &terms{history: history, entry: e, on: on, plan: p, before: before, clock: c, version: v, shown: v.plan.WithFeatures(e.features)}
	// The number leaves out changes of the meter. A hit is judged by the meter's id, which never changes and
	// is older than the plan version that names the meter.
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

// periods returns the customer's periods with the interval of its plan.
func (t *terms) periods() calendar.Periods {
	p := t.entry.periods
	p.Interval = t.version.plan.BillingInterval()
	return p
}

// target returns the target of one meter of the plan. All callers get the same target.
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

// makeTarget builds the target of a meter. last is the meter's previous target, whose cap has ended, or
// nil if there is none.
//
// A counter never goes back, even if a test clock does, because hits are judged and booked no earlier
// than the counter's last charge. The cap is therefore the cap of the billing period in which the meter's
// hits are booked.
func (t *terms) makeTarget(m *planMeter, last *meterTarget) *meterTarget {
	made, counts := &meterTarget{meter: m}, t.cap
	if last != nil {
		counts = t.capAt(last.reached.Load())
	}
	made.target = model.NewTarget(t.change, t.entry.id, m.id, withCap(counts, m, t.limits(m)), t.periods(), t.testClock())
	// Only a later period may have a cap, because a trial has no cap.
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

// bar sets the instant from which the customer's hits on a target are refused.
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

// limits returns the limits of a meter with the customer's overrides and with their former rates.
// Customers without data of their own share the limits.
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

// limit returns one limit of the plan as it applies to the customer now.
func (t *terms) limit(l *model.Limit) *model.Limit {
	e, ends, overridden := t.entry, int64(math.MaxInt64), false
	if o, ok := e.overrides[l.Name]; ok && !o.Expired(t.now) {
		// If the override no longer fits a changed limit, the plan's own limit applies.
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
	// If the override no longer fits the plan, the rates up to the end of the override do not apply before
	// that end.
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
	editions []plans.Edition // versions of the plan up to this version
	joined   sync.Map        // maps joining to the limits of a customer that joined then
}

// joining is a meter of a version, and the earlier version at which a customer joined the plan.
type joining struct {
	meter  *planMeter
	joined int
}

// limits returns the limits of a meter for customers that joined their plan at a version and have no data
// of their own. The limits include their former rates since then.
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
	known, _ := v.joined.LoadOrStore(joining{m, joined}, limits) // all callers share one slice
	return known.([]*model.Limit)
}

type versionKey struct {
	plan   int32
	number int
}

// planMeter is a meter of a plan version.
type planMeter struct {
	key    string
	id     int32
	limits []*model.Limit
	price  *plans.Price
}

// compile prepares a stored version. ids contains the id of each meter that the version names.
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
