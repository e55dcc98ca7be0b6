package model

import (
	"slices"
	"strings"
	"sync/atomic"

	"quotad/internal/calendar"
)

// Counter is one row that a hit charges, with the limits whose buckets it holds.
type Counter struct {
	Key    CounterKey
	Limits []*Limit
}

// TestClock is a clock that stands still at Now, µs, until it is set again.
type TestClock struct {
	Key string
	Now int64
}

// Target has the limits and counters by which hits of one customer on one meter are judged. A
// target is resolved once, and all hits share it until a change. It is immutable, but for the row
// that it remembers of its own counter. If limits are per attribute, For makes each hit a target
// of its own.
type Target struct {
	// Change is the newest change number of all that went into this target.
	Change int64
	// History is the history of the database that the target was resolved in, see SetHistory.
	History uint64
	// Counters in key order: the customer's own first, which books the usage.
	Counters []Counter
	// Lost: the plan does not have the meter, or no longer. Earlier answers can be given again,
	// and earlier charges given back. Nothing more is charged.
	Lost bool
	// Level: the meter counts what is held, see IsLevel.
	Level bool
	// Clock is the test clock that the customer lives by; nil: PostgreSQL's time.
	Clock *TestClock

	// Periods says where the customer's hours and billing periods start.
	calendar.Periods

	per   []Counter // the limits per attribute, in key order; each Attribute is a name without a value
	order []int     // the plan's i-th limit is the order[i]-th over all counters; nil: the i-th
	of    *Target   // of a hit's own target: the shared target that For made it of

	// reserving is the target of reservations: it has the concurrency limits, too. Nil where
	// there are none.
	reserving *Target

	capped   *Limit        // that is a cap; nil: none
	notifies bool          // a limit of the own counter has thresholds
	asOf     *atomic.Int64 // see AsOf; nil: Change
	ending   ending        // of its limits
	bar      bar
	hour     atomic.Pointer[span]
	known    recollection

	own [1]Counter // memory of Counters, where there is only one
}

type span struct{ start, end int64 }

// NewTarget makes the target of a customer's meter of its limits, in the plan's order.
func NewTarget(change, customer int64, meter int32, limits []*Limit, periods calendar.Periods, clock *TestClock) *Target {
	concurrent := func(l *Limit) bool { return l.kept == inHolds }
	if !slices.ContainsFunc(limits, concurrent) {
		return newTarget(change, customer, meter, limits, periods, clock)
	}
	t := newTarget(change, customer, meter, slices.DeleteFunc(slices.Clone(limits), concurrent), periods, clock)
	t.reserving = newTarget(change, customer, meter, limits, periods, clock)
	return t
}

// ForReservations is what reservations are judged by: the target's limits and the
// concurrency limits, which hits do not know.
func (t *Target) ForReservations() *Target {
	if t.reserving == nil {
		return t
	}
	return t.reserving
}

func newTarget(change, customer int64, meter int32, limits []*Limit, periods calendar.Periods, clock *TestClock) *Target {
	own := Counter{Key: CounterKey{Customer: customer, Meter: meter}}
	t := &Target{Change: change, Clock: clock, Periods: periods, Level: IsLevel(meter)}
	for _, l := range limits {
		if l.Per == "" {
			own.Limits = append(own.Limits, l)
		}
		if l.IsCap() {
			t.capped = l
		}
		t.notifies = t.notifies || l.notify != nil
	}
	t.own[0] = own
	t.Counters = t.own[:]
	if len(own.Limits) == len(limits) {
		t.Counters[0].Limits = limits // shared by all customers of the plan
		return t
	}
	for _, l := range limits {
		i, there := slices.BinarySearchFunc(t.per, l.Per, compareNames)
		switch {
		case l.Per == "":
		case there:
			t.per[i].Limits = append(t.per[i].Limits, l)
		default:
			key := CounterKey{Customer: customer, Meter: meter, Attribute: l.Per}
			t.per = slices.Insert(t.per, i, Counter{key, []*Limit{l}})
		}
	}
	all := slices.Clone(own.Limits)
	for _, c := range t.per {
		all = append(all, c.Limits...)
	}
	for _, l := range limits {
		t.order = append(t.order, slices.Index(all, l))
	}
	return t
}

// compareNames orders counters by the names of their attributes. A name counts with its "=", as in
// a key: a-b=… comes before a=…. So values do not change the order.
func compareNames(c Counter, name string) int {
	return strings.Compare(AttributeKey(c.Key.Attribute, ""), AttributeKey(name, ""))
}

// For is the target of a hit with these attributes. Its counters are the customer's own, and one
// for each attribute that limits are per: the counter of the hit's value. A hit without the
// attribute has the empty value.
func (t *Target) For(attributes map[string]string) *Target {
	if len(t.per) == 0 && (t.reserving == nil || len(t.reserving.per) == 0) {
		return t
	}
	own := &Target{
		Change: t.Change, History: t.History, asOf: t.asOf, Clock: t.Clock, Periods: t.Periods, order: t.order, of: t, ending: t.ending,
		bar: t.bar, capped: t.capped, notifies: t.notifies, Level: t.Level,
	}
	own.Counters = make([]Counter, 1, 1+len(t.per))
	own.Counters[0] = t.Counters[0]
	for _, c := range t.per {
		if t.Level && attributes[c.Key.Attribute] != "" {
			own.Counters = append(own.Counters, c.others())
		}
		c.Key.Attribute = AttributeKey(c.Key.Attribute, attributes[c.Key.Attribute])
		own.Counters = append(own.Counters, c)
	}
	if t.reserving != nil {
		own.reserving = t.reserving.For(attributes)
	}
	return own
}

// SetHistory says in which history of the database a target was resolved that nobody else has
// yet. A node counts a new history whenever the changes in the database are not those that it saw.
// asOf is a change up to which the target is right; it may rise.
func (t *Target) SetHistory(history uint64, asOf *atomic.Int64) {
	t.History, t.asOf = history, asOf
	if t.reserving != nil {
		t.reserving.History, t.reserving.asOf = history, asOf
	}
}

// AsOf is a change number up to which the target is right: no change after Change and up to AsOf
// concerns it. So a row that says that it was judged under such a number does not say the truth.
// Its number is from a history that the database has no more, or was written by hand.
func (t *Target) AsOf() int64 {
	if t.asOf == nil {
		return t.Change
	}
	return max(t.Change, t.asOf.Load())
}

// ending is the instant from which on a target's limits count no more, since an override ends
// there or another plan counts, µs; 0: there is none. reached is the latest such instant that anybody
// judged at.
type ending struct {
	at      int64
	reached *atomic.Int64

	planFrom, planTo int64     // see SetPlanChange
	next             *[]*Limit // of the plan that counts from planTo on; nil: not known
}

// SetEnding says when the limits of a target that nobody else has yet count no more, and what is
// to be told when that instant was reached.
func (t *Target) SetEnding(at int64, reached *atomic.Int64) {
	t.ending = ending{at: at, reached: reached}
	if t.reserving != nil {
		t.reserving.ending = t.ending
	}
}

// SetPlanChange says between which instants the target's plan counts, µs by the customer's clock; 0: no
// change of plan is near. It comes after SetEnding. Nothing is judged before from: hits that came
// earlier by a hair's breadth are judged there. No wait goes beyond to, where another plan says what fits:
// next are the limits that it has of the target's meter, with what they were before; nil: they are not known.
func (t *Target) SetPlanChange(from, to int64, next *[]*Limit) {
	t.ending.planFrom, t.ending.planTo, t.ending.next = from, to, next
	if t.reserving != nil {
		t.reserving.ending = t.ending
	}
}

// NotBefore says from which instant on a target counts, µs by the customer's clock, as SetPlanChange
// does. It comes after that.
func (t *Target) NotBefore(from int64) {
	t.ending.planFrom = max(t.ending.planFrom, from)
	if t.reserving != nil {
		t.reserving.ending = t.ending
	}
}

// Over is a *StaleError when the target's limits count no more at an instant, else nil. What is
// resolved again after that has the limits of that instant. No write tells nodes of an override's
// end before the instant itself, so whoever judges asks.
func (t *Target) Over(instant int64) error {
	if t.ending.at == 0 || instant < t.ending.at {
		return nil
	}
	for {
		last := t.ending.reached.Load()
		if last >= instant || t.ending.reached.CompareAndSwap(last, instant) {
			return &StaleError{Change: t.Change}
		}
	}
}

// bar is why hits and reservations are refused from an instant on, µs; nil: they are not.
type bar struct {
	from int64
	why  error
}

// Bar says, of a target that nobody else has yet, from which instant on, µs, hits and reservations
// are refused whatever their limits say, and why.
func (t *Target) Bar(from int64, why error) {
	t.bar = bar{from, why}
	if t.reserving != nil {
		t.reserving.bar = t.bar
	}
}

// Barred is why a hit or a reservation at an instant is refused whatever its limits say, else nil.
// Their own instant decides, so it counts to the microsecond on every node. What was charged may
// still be committed and given back, so nothing else asks.
func (t *Target) Barred(instant int64) error {
	if t.bar.why == nil || instant < t.bar.from {
		return nil
	}
	return t.bar.why
}

// Base is the target that a hit's own was made of.
func (t *Target) Base() *Target {
	if t.of != nil {
		return t.of
	}
	return t
}

// Sibling is the key of another counter of the target's customer and meter.
func (t *Target) Sibling(attribute string) CounterKey {
	key := t.Counters[0].Key
	key.Attribute = attribute
	return key
}

// limitsOf are the limits that the target has on a counter of its customer and meter.
func (t *Target) limitsOf(attribute string) []*Limit {
	for i := range t.Counters {
		if t.Counters[i].Key.Attribute == attribute {
			return t.Counters[i].Limits
		}
	}
	return nil
}

// GroupKey is equal for hits that are judged together, by the same limits on the same counters.
type GroupKey struct {
	of     *Target
	values string
}

// Group is the same for targets whose hits are judged together.
func (t *Target) Group() GroupKey {
	if t.of == nil {
		return GroupKey{of: t}
	}
	if len(t.Counters) == 1 { // the limits per attribute are concurrency limits, which hits do not know
		return GroupKey{of: t.of}
	}
	k := GroupKey{t.of, t.Counters[1].Key.Attribute}
	for _, c := range t.Counters[2:] {
		k.values += "\x00" + c.Key.Attribute // no value has it
	}
	return k
}

// Instant is what the customer's clock shows when PostgreSQL's shows now, µs.
func (t *Target) Instant(now int64) int64 {
	if t.Clock != nil {
		return t.Clock.Now
	}
	return max(now, t.ending.planFrom)
}

// RunningHour is the hour that usage at an instant is booked in, µs, [start, end): that
// of Periods, remembered.
func (t *Target) RunningHour(at int64) (start, end int64) {
	if t.of != nil {
		return t.of.RunningHour(at)
	}
	if h := t.hour.Load(); h != nil && h.start <= at && at < h.end {
		return h.start, h.end
	}
	start, end = t.Hour(at)
	h := lastHour.Load()
	if h == nil || *h != (span{start, end}) {
		h = &span{start, end}
		lastHour.Store(h)
	}
	t.hour.Store(h)
	return start, end
}

// lastHour is the span that was made last: nearly all targets have the same.
var lastHour atomic.Pointer[span]

// Logs reports whether a limit of the target's own counter is a log.
func (t *Target) Logs() bool {
	return slices.ContainsFunc(t.Counters[0].Limits, func(l *Limit) bool { return l.kept == inLog })
}
