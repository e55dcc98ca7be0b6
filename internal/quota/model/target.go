package model

import (
	"slices"
	"strings"
	"sync/atomic"

	"quotad/internal/calendar"
)

// Counter is one row that a hit charges, with the limits whose buckets the row contains.
type Counter struct {
	Key    CounterKey
	Limits []*Limit
}

// TestClock is a clock that remains at Now, µs, until it is set again.
type TestClock struct {
	Key string
	Now int64
}

// Target contains the limits and counters by which hits of one customer on one meter are judged. A target is
// resolved once, and all hits share it until a change. It is immutable except for the remembered row of its own
// counter. If limits are per attribute, For returns a separate target for each hit.
type Target struct {
	// Change is the newest change number of all data that the target was resolved from.
	Change int64
	// History is the history of the database in which the target was resolved, see SetHistory.
	History uint64
	// Counters are in the order of their keys. The first is the customer's own counter, which books the usage.
	Counters []Counter
	// Lost means that the plan does not have the meter, or no longer has it. Earlier responses can be replayed,
	// and earlier charges can be refunded. Nothing more is charged.
	Lost bool
	// Level means that the meter is a level meter, see IsLevel.
	Level bool
	// Clock is the customer's test clock. If Clock is nil, the customer's clock is PostgreSQL's time.
	Clock *TestClock

	// Periods determines the starts of the customer's hours and billing periods.
	calendar.Periods

	per   []Counter // the limits per attribute, in the order of keys; each Attribute is a name without a value
	order []int     // the plan's i-th limit is the order[i]-th over all counters; nil: the i-th
	of    *Target   // of the target of a single hit: the shared target from which For derived it

	// reserving is the target of reservations, which also has the concurrency limits. It is nil if there are no
	// concurrency limits.
	reserving *Target

	capped   *Limit        // the limit that is a cap; nil: no cap
	notifies bool          // a limit of the own counter has thresholds
	asOf     *atomic.Int64 // see AsOf; nil: Change
	ending   ending        // the end of the target's limits
	bar      bar
	hour     atomic.Pointer[span]
	known    recollection

	own [1]Counter // the memory of Counters if there is only one counter
}

type span struct{ start, end int64 }

// NewTarget returns the target of a customer's meter with its limits, in the plan's order.
func NewTarget(change, customer int64, meter int32, limits []*Limit, periods calendar.Periods, clock *TestClock) *Target {
	concurrent := func(l *Limit) bool { return l.kept == inHolds }
	if !slices.ContainsFunc(limits, concurrent) {
		return newTarget(change, customer, meter, limits, periods, clock)
	}
	t := newTarget(change, customer, meter, slices.DeleteFunc(slices.Clone(limits), concurrent), periods, clock)
	t.reserving = newTarget(change, customer, meter, limits, periods, clock)
	return t
}

// ForReservations returns the target by which reservations are judged. It has the target's limits and the
// concurrency limits, which do not apply to hits.
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

// compareNames orders counters by the names of their attributes. A name is compared with its "=", as in a key, so
// a-b=… comes before a=…. Therefore values do not change the order.
func compareNames(c Counter, name string) int {
	return strings.Compare(AttributeKey(c.Key.Attribute, ""), AttributeKey(name, ""))
}

// For returns the target of a hit with these attributes. Its counters are the customer's own counter and, for each
// attribute that limits are per, the counter of the hit's value. A hit without the attribute has the empty value.
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

// SetHistory sets the history of the database in which a target was resolved. The target must not be shared yet. A
// node begins a new history whenever the changes in the database differ from the changes that it saw. asOf is a
// change up to which the target is correct; it may rise.
func (t *Target) SetHistory(history uint64, asOf *atomic.Int64) {
	t.History, t.asOf = history, asOf
	if t.reserving != nil {
		t.reserving.History, t.reserving.asOf = history, asOf
	}
}

// AsOf returns a change number up to which the target is correct, because no change after Change and up to AsOf
// concerns it. A row that claims to be judged under a change number in between is therefore wrong. Its number is
// from a history that the database no longer has, or was written by hand.
func (t *Target) AsOf() int64 {
	if t.asOf == nil {
		return t.Change
	}
	return max(t.Change, t.asOf.Load())
}

// ending is the instant from which a target's limits no longer count, because an override ends there or another
// plan counts, µs. 0 means that there is no such instant. reached is the latest such instant at which anything was
// judged.
type ending struct {
	at      int64
	reached *atomic.Int64

	planFrom, planTo int64     // instants, see SetPlanChange
	next             *[]*Limit // the limits of the plan that counts from planTo on; nil: unknown
}

// SetEnding sets the instant from which the limits of a target no longer count, and the variable in which Over
// records that this instant was reached. The target must not be shared yet.
func (t *Target) SetEnding(at int64, reached *atomic.Int64) {
	t.ending = ending{at: at, reached: reached}
	if t.reserving != nil {
		t.reserving.ending = t.ending
	}
}

// SetPlanChange sets the instants between which the target's plan counts, µs by the customer's clock. 0 means that
// no change of plan is near. Call it after SetEnding.
//
// Nothing is judged before from, and hits that arrive slightly earlier are judged at from. No wait extends beyond
// to, because another plan counts there. next contains that plan's limits for the target's meter, with their
// earlier rates, or is nil if they are unknown.
func (t *Target) SetPlanChange(from, to int64, next *[]*Limit) {
	t.ending.planFrom, t.ending.planTo, t.ending.next = from, to, next
	if t.reserving != nil {
		t.reserving.ending = t.ending
	}
}

// NotBefore sets the instant from which a target counts, µs by the customer's clock, as SetPlanChange does. Call
// it after SetPlanChange.
func (t *Target) NotBefore(from int64) {
	t.ending.planFrom = max(t.ending.planFrom, from)
	if t.reserving != nil {
		t.reserving.ending = t.ending
	}
}

// Over returns a *StaleError if the target's limits no longer count at an instant, and otherwise nil. A target
// that is resolved again after that has the limits of that instant. No write informs nodes of an override's end
// before it is reached, so every judgment must call Over.
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

// bar is the reason for which hits and reservations are refused from an instant on, µs. A nil reason means that
// they are not refused.
type bar struct {
	from int64
	why  error
}

// Bar sets the instant, µs, from which hits and reservations are refused regardless of limits, and the reason. The
// target must not be shared yet.
func (t *Target) Bar(from int64, why error) {
	t.bar = bar{from, why}
	if t.reserving != nil {
		t.reserving.bar = t.bar
	}
}

// Barred returns the reason for which a hit or a reservation at an instant is refused regardless of its limits, or
// nil. The instant of the hit or reservation decides, so the bar is exact to the microsecond on every node.
// Earlier charges may still be committed and refunded, so no other operations call Barred.
func (t *Target) Barred(instant int64) error {
	if t.bar.why == nil || instant < t.bar.from {
		return nil
	}
	return t.bar.why
}

// Base returns the target from which a hit's own target was derived.
func (t *Target) Base() *Target {
	if t.of != nil {
		return t.of
	}
	return t
}

// Sibling returns the key of another counter of the target's customer and meter.
func (t *Target) Sibling(attribute string) CounterKey {
	key := t.Counters[0].Key
	key.Attribute = attribute
	return key
}

// limitsOf returns the target's limits on a counter of its customer and meter.
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

// Group returns the same key for all targets whose hits are judged together.
func (t *Target) Group() GroupKey {
	if t.of == nil {
		return GroupKey{of: t}
	}
	if len(t.Counters) == 1 { // the limits per attribute are concurrency limits, which do not apply to hits
		return GroupKey{of: t.of}
	}
	k := GroupKey{t.of, t.Counters[1].Key.Attribute}
	for _, c := range t.Counters[2:] {
		k.values += "\x00" + c.Key.Attribute // no value contains a NUL
	}
	return k
}

// Instant returns the time of the customer's clock, µs, when PostgreSQL's clock is at now.
func (t *Target) Instant(now int64) int64 {
	if t.Clock != nil {
		return t.Clock.Now
	}
	return max(now, t.ending.planFrom)
}

// RunningHour returns the hour [start, end) in which usage at an instant is booked, µs. It remembers the result of
// Periods.
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

// lastHour is the span that was computed last, because nearly all targets have the same span.
var lastHour atomic.Pointer[span]

// Logs reports whether a limit of the target's own counter is a log.
func (t *Target) Logs() bool {
	return slices.ContainsFunc(t.Counters[0].Limits, func(l *Limit) bool { return l.kept == inLog })
}
