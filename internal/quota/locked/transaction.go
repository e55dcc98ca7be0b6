package locked

import (
	"errors"
	"fmt"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// counter is a counter's row while the worker has it locked.
type counter struct {
	key model.CounterKey
	model.Row
	there bool          // the row is in the table, and locked here
	held  bool          // the row is in the table, and somebody else has locked it
	bad   error         // why the row cannot be read
	sound *model.Target // the target for which the row was checked as it was read
	hour  int64         // start of the row's running hour, µs
	units int64         // admitted in that hour
	total int64         // charged in all
	dirty bool          // to be written
	freed bool          // units came back

	target *model.Target               // of a customer's own counter: the target that remembers the row
	read   struct{ version, at int64 } // of the row as it was locked
}

// transaction is the working copy of the rows that were locked and read, and what is to be written.
type transaction struct {
	node     *queue.Node
	now      int64 // PostgreSQL's time, µs
	cautious bool  // rows that others hold were left out, as if they were not there
	counters map[model.CounterKey]*counter
	receipts map[receiptKey]*receipt
	wanted   []model.CounterKey          // counters that the operation being done needs locked
	hours    map[model.CounterKey]*hours // finished hours that operations asked for
	missing  *hours                      // finished hours that the operation being done lacks
	usage    map[model.HourKey]int64     // units to be added to finished hours
	opened   []heldBy                    // holds to be written, before closed ones are deleted
	closed   []heldBy                    // holds to be deleted; one hold may be in both lists
	adjusted []adjustment
	audits   []audited
	slot     int16         // the table that new receipts are written to
	made     map[int64]int // counters of values that it makes, by customer
}

// heldBy is a hold and its counter.
type heldBy struct {
	model.CounterKey
	model.Hold
}

// audited is an entry of the audit trail, and the customer that it tells something of.
type audited struct {
	*Audit
	customer int64
}

// adjustment is a change of usage that is no hit's.
type adjustment struct {
	model.HourKey
	key    [16]byte
	cost   int64
	at     int64
	reason string
}

// The operation needs something that its transaction has not read or locked. It is done again in
// the next transaction, which reads or locks that.
var (
	errMissingRow  = errors.New("a counter's row is not there yet")
	errHeldRow     = errors.New("somebody else holds a counter's row")
	errMissingLock = errors.New("more counters are to be locked")
	errMissingHour = errors.New("the finished hours are to be read")
)

// open returns the counters of a target's counters, and the instant at which hits on them are
// judged. Holds that have expired by then are given back. A missing row of an attribute's value
// counts as untouched; a charge makes the row.
//
// Errors: errMissingLock, errMissingRow, errHeldRow, *model.StaleError; session.ErrInternal for a
// row that cannot be read.
func (tx *transaction) open(t *model.Target) (counters []*counter, instant int64, err error) {
	if counters, instant, err = tx.take(t); err == nil {
		err = t.Over(instant)
	}
	if err != nil {
		return nil, 0, err
	}
	tx.begin(t, counters, instant)
	return counters, instant, nil
}

// openAny is open without the check that the target's overrides are still in force, for operations
// that judge no cost.
func (tx *transaction) openAny(t *model.Target) (counters []*counter, err error) {
	counters, instant, err := tx.take(t)
	if err == nil {
		tx.begin(t, counters, instant)
	}
	return counters, err
}

// take finds and checks the locked rows of a target's counters.
func (tx *transaction) take(t *model.Target) (counters []*counter, instant int64, err error) {
	instant = t.Instant(tx.now)
	for i := range t.Counters {
		tx.wanted = append(tx.wanted, t.Counters[i].Key)
	}
	for i := range t.Counters {
		c := tx.counters[t.Counters[i].Key]
		switch {
		case c == nil:
			return nil, 0, errMissingLock
		case c.held:
			return nil, 0, errHeldRow
		case !c.there && i == 0: // the own row must be there: it remembers the change number for values' rows, too
			return nil, 0, errMissingRow
		case c.Change > t.Change:
			return nil, 0, &model.StaleError{Change: c.Change}
		}
		if err := tx.check(t, c); err != nil {
			return nil, 0, err
		}
		counters, instant = append(counters, c), max(instant, c.At)
	}
	return counters, instant, nil
}

// begin gives back what has expired of the holds, and has the rows remember the target's change.
func (tx *transaction) begin(t *model.Target, counters []*counter, instant int64) {
	counters[0].target = t.Base()
	for i, c := range counters {
		tx.expire(t, i, c, instant)
		if c.Change < t.Change {
			c.Change, c.dirty = t.Change, c.dirty || c.there
		}
	}
}

// check makes sure of a row that was read, for an operation on a target. A row that cannot be read
// is the fault of its own operations only, and the log names it. Errors: session.ErrInternal.
func (tx *transaction) check(t *model.Target, c *counter) error {
	if c.sound == t.Base() {
		return nil
	}
	err := c.bad
	if err == nil {
		err = model.CheckHour(c.hour, c.units)
	}
	if err == nil {
		err = t.Check(c.key.Attribute, &c.Row)
	}
	if err == nil {
		c.sound = t.Base()
		return nil
	}
	tx.node.Log.Error("an operation cannot be done on what its counters hold",
		"customer_id", c.key.Customer, "meter_id", c.key.Meter, "attribute", c.key.Attribute, "error", err)
	return fmt.Errorf("%w: %w", session.ErrInternal, err)
}

// expire takes the holds that have expired at an instant off the counter of a target's i-th
// counter.
func (tx *transaction) expire(t *model.Target, i int, c *counter, instant int64) {
	for _, h := range t.Expire(i, &c.Row, instant) {
		tx.closed = append(tx.closed, heldBy{c.key, h})
		c.freed = true
		c.touch()
	}
}

// touch marks a counter that has changed. Every change is another version.
func (c *counter) touch() { c.dirty, c.Version = true, c.Version+1 }

func rowsOf(counters []*counter) []model.Row {
	rows := make([]model.Row, len(counters))
	for i, c := range counters {
		rows[i] = c.Row
	}
	return rows
}

// Charge charges an admitted decision's cost to the counters, and returns the decision as it
// stands after the charge.
func (tx *transaction) Charge(counters []*counter, d model.Decision) model.Decision {
	rows := rowsOf(counters)
	d.ChargeTo(rows)
	for i, c := range counters {
		c.Row = rows[i]
		c.touch()
	}
	return d.Charged(rowsOf(counters))
}

// addUnits adds units as usage to the running hour of the own counter, and to the totals of all
// counters that were charged.
func (tx *transaction) addUnits(t *model.Target, counters []*counter, units, instant int64) (hour int64) {
	hour, _ = t.RunningHour(instant)
	for i, c := range counters {
		if !c.there && !c.dirty {
			continue // a value's, that was not charged
		}
		tx.turn(c, hour)
		if c.total = model.AddUpTo(c.total, units); i == 0 {
			c.units = model.AddUpTo(c.units, units)
		}
		c.dirty = true
	}
	return hour
}

// turn moves the units of a counter's hour that is over to the finished ones.
func (tx *transaction) turn(c *counter, hour int64) {
	if c.hour == hour {
		return
	}
	if c.units > 0 {
		tx.addUsage(c.hourKey(c.hour), c.units)
	}
	c.hour, c.units, c.dirty = hour, 0, true
}

func (tx *transaction) addUsage(hour model.HourKey, units int64) {
	tx.usage[hour] = model.AddUpTo(tx.usage[hour], units)
}

func (c *counter) hourKey(hour int64) model.HourKey {
	return model.HourKey{Customer: c.key.Customer, Meter: c.key.Meter, Hour: hour}
}

// finished returns the units of an own counter's hours in [from, to), by the hours' starts. They
// are the finished hours as this transaction leaves them, and the running hour. Errors:
// errMissingHour.
func (tx *transaction) finished(own *counter, from, to int64) (map[int64]int64, error) {
	read := tx.hours[own.key]
	if read == nil || from < read.from || read.to < to {
		tx.missing = &hours{counter: own.key, from: from, to: to}
		return nil, errMissingHour
	}
	units := make(map[int64]int64)
	within := func(hour int64) bool { return from <= hour && hour < to }
	for hour, n := range read.units {
		if within(hour) {
			units[hour] = n
		}
	}
	for key, n := range tx.usage {
		if key == own.hourKey(key.Hour) && within(key.Hour) {
			units[key.Hour] += n
		}
	}
	if within(own.hour) {
		units[own.hour] += own.units
	}
	return units, nil
}

// adjustedIn is the sum of a counter's adjustments in [from, to), whose hours were read.
func (tx *transaction) adjustedIn(own *counter, from, to int64) (units int64) {
	for hour, n := range tx.hours[own.key].adjusted {
		if from <= hour && hour < to {
			units += n
		}
	}
	for _, a := range tx.adjusted {
		if a.HourKey == own.hourKey(a.Hour) && from <= a.Hour && a.Hour < to {
			units += a.cost
		}
	}
	return units
}

// giveBack gives units back to a counter that were charged to some of its limits.
func (tx *transaction) giveBack(t *model.Target, c *counter, charged []int64, at, units int64) {
	if units > 0 {
		t.GiveBack(c.key.Attribute, &c.Row, charged, at, units)
		c.freed = true
		c.touch()
	}
}

// hold puts a hold on counters.
func (tx *transaction) hold(counters []*counter, charged []model.Charged, h model.Hold) {
	for i, c := range counters {
		h.Limits = charged[i].Limits
		c.Holds = c.Holds.With(h)
		c.dirty = true
		tx.opened = append(tx.opened, heldBy{c.key, h})
	}
}

// unhold takes a reservation's hold off a counter; ok is false when it has none.
func (tx *transaction) unhold(c *counter, key [16]byte) (h model.Hold, ok bool) {
	rest, h, ok := c.Holds.Without(key)
	if !ok {
		return h, false
	}
	c.Holds = rest
	c.touch()
	tx.closed = append(tx.closed, heldBy{c.key, h})
	return h, true
}

// find returns the receipt of the operation with an id; nil when that operation was not done.
// Errors: ErrOtherPayload.
func (tx *transaction) find(customer int64, id model.ID) (*receipt, error) {
	if !id.Given() {
		return nil, nil
	}
	r, err := tx.receipt(customer, id.Key)
	if r != nil && r.payload != id.Payload {
		return nil, ErrOtherPayload
	}
	return r, err
}

// receipt returns a receipt by its key; nil when there is none.
func (tx *transaction) receipt(customer int64, key [16]byte) (*receipt, error) {
	r := tx.receipts[receiptKey{customer, key}]
	if r != nil && r.bad != nil {
		return nil, fmt.Errorf("%w: %w", session.ErrInternal, r.bad)
	}
	return r, nil
}

// held reports whether a counter's row is somebody else's: then nothing can be said of what it
// guards.
func (tx *transaction) held(key model.CounterKey) bool {
	c := tx.counters[key]
	return c != nil && c.held
}

// issue writes the receipt of an operation that has an ID.
func (tx *transaction) issue(t *model.Target, id model.ID, r receipt) {
	if !id.Given() {
		return
	}
	own := t.Counters[0].Key
	r.receiptKey, r.payload, r.meter, r.fresh = receiptKey{own.Customer, id.Key}, id.Payload, own.Meter, true
	tx.receipts[r.receiptKey] = &r
}
