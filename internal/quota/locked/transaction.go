package locked

import (
	"errors"
	"fmt"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// lockedRow is a counter's row while the worker has it locked.
type lockedRow struct {
	key model.CounterKey
	model.Row
	there bool          // the row is in the table, and this transaction has locked it
	held  bool          // the row is in the table, and another transaction has locked it
	bad   error         // the reason why the row cannot be read
	sound *model.Target // the target for which the row was checked after the read
	hour  int64         // the start of the row's running hour, µs
	units int64         // the units admitted in that hour
	total int64         // the total of the charged units
	// generation is the generation of the values of a level meter that the row belongs to, see model.LevelTotals.
	generation int64
	dirty      bool // the row must be written
	freed      bool // units were returned

	target *model.Target // for a customer's own counter: the target that remembers the row
	read   struct {      // the row when it was locked
		version, at int64
		departed    []int64
	}
}

// transaction is the working copy of the rows that were locked and read, and the data to be written.
type transaction struct {
	node        *queue.Node
	now         int64              // PostgreSQL's time, µs
	newest      int64              // the database's newest change, read after the rows were locked; -1: not read
	repaired    []model.CounterKey // counters that had the number of a nonexistent change
	skipsLocked bool               // rows that other transactions have locked were left out, as if they did not exist
	counters    map[model.CounterKey]*lockedRow
	receipts    map[receiptKey]*receipt
	wanted      []model.CounterKey          // counters that the running operation needs locked
	hours       map[model.CounterKey]*hours // finished hours that operations requested
	missing     []*hours                    // finished hours that the running operation lacks
	usage       map[model.HourKey]int64     // units to be added to finished hours
	levels      map[model.CounterKey]level  // new levels of own counters of level meters
	opened      []heldBy                    // holds to be written, before closed ones are deleted
	closed      []heldBy                    // holds to be deleted; one hold may be in both lists
	adjusted    []adjustment
	audits      []audited
	slot        int16         // the table that new receipts are written to
	made        map[int64]int // the number of counters of values that the transaction creates, by customer
	judged      []judged      // targets that the running operation has opened
	reached     []reached     // thresholds to be written
}

// heldBy is a hold and its counter.
type heldBy struct {
	model.CounterKey
	model.Hold
}

// audited is an entry of the audit trail, and the customer that the entry concerns.
type audited struct {
	*Audit
	customer int64
}

// adjustment is a change of usage that no hit caused.
type adjustment struct {
	model.HourKey
	key    [16]byte
	cost   int64
	at     int64
	reason string
}

// The following errors report that the operation needs data that its transaction has not read or locked. The
// operation is retried in the next transaction, which reads or locks the data.
var (
	errMissingRow    = errors.New("a counter's row is not there yet")
	errHeldRow       = errors.New("somebody else holds a counter's row")
	errMissingLock   = errors.New("more counters are to be locked")
	errMissingHour   = errors.New("the finished hours are to be read")
	errMissingNumber = errors.New("the number of the newest change is to be read")
)

// touch marks a counter as changed. Every change creates another version.
func (c *lockedRow) touch() { c.dirty, c.Version = true, c.Version+1 }

func rowsOf(counters []*lockedRow) []model.Row {
	rows := make([]model.Row, len(counters))
	for i, c := range counters {
		rows[i] = c.Row
	}
	return rows
}

// Charge charges an admitted decision's cost to the counters, and returns the decision after the charge.
func (tx *transaction) Charge(counters []*lockedRow, d model.Decision) model.Decision {
	rows := rowsOf(counters)
	d.ChargeTo(rows)
	for i, c := range counters {
		c.Row = rows[i]
		c.touch()
	}
	return d.Charged(rowsOf(counters))
}

// stand advances a customer's own counter to an instant at which units were booked or subtracted without a
// charge. The state of the limits does not change. The row must contain the last such instant, because
// usage.Mark and Fence read the instant from the row to place the end of a billing period. The caller must touch
// the row.
func (tx *transaction) stand(t *model.Target, own *lockedRow, instant int64) {
	if own.At >= instant {
		return
	}
	rows := []model.Row{own.Row}
	t.Charge(rows, 0, instant, nil)
	own.Row = rows[0]
}

// addUnits adds units as usage to the running hour of the own counter, and to the totals of all charged counters.
func (tx *transaction) addUnits(t *model.Target, counters []*lockedRow, units, instant int64) (hour int64) {
	hour, _ = t.RunningHour(instant)
	for i, c := range counters {
		if !c.there && !c.dirty {
			continue // a value's counter that was not charged
		}
		tx.turn(c, hour)
		if c.total = model.AddUpTo(c.total, units); i == 0 {
			c.units = model.AddUpTo(c.units, units)
		}
		c.dirty = true
	}
	return hour
}

// turn moves the units of a counter's ended hour to the finished hours.
func (tx *transaction) turn(c *lockedRow, hour int64) {
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

func (c *lockedRow) hourKey(hour int64) model.HourKey {
	return model.HourKey{Customer: c.key.Customer, Meter: c.key.Meter, Hour: hour}
}

// finished returns the units of an own counter's hours in [from, to), by the start of the hour. The result
// contains the finished hours with the changes of this transaction, and the running hour. Errors:
// errMissingHour.
func (tx *transaction) finished(own *lockedRow, from, to int64) (map[int64]int64, error) {
	read := tx.hours[own.key]
	if read == nil || from < read.from || read.to < to {
		tx.missing = append(tx.missing, &hours{counter: own.key, from: from, to: to})
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

// adjustedIn returns the sum of a counter's adjustments in [from, to). The hours must have been read.
func (tx *transaction) adjustedIn(own *lockedRow, from, to int64) (units int64) {
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

// giveBack returns units to a counter. The units were charged to some of the counter's limits.
func (tx *transaction) giveBack(t *model.Target, c *lockedRow, charged []int64, at, units int64) {
	if units > 0 {
		t.GiveBack(c.key.Attribute, &c.Row, charged, at, units)
		c.freed = true
		c.touch()
	}
}

// hold adds a hold to counters.
func (tx *transaction) hold(counters []*lockedRow, charged []model.Charged, h model.Hold) {
	for i, c := range counters {
		h.Limits = charged[i].Limits
		c.Holds = c.Holds.With(h)
		c.dirty = true
		tx.opened = append(tx.opened, heldBy{c.key, h})
	}
}

// unhold removes a reservation's hold from a counter. ok is false if the counter has no such hold.
func (tx *transaction) unhold(c *lockedRow, key [16]byte) (h model.Hold, ok bool) {
	rest, h, ok := c.Holds.Without(key)
	if !ok {
		return h, false
	}
	c.Holds = rest
	c.touch()
	tx.closed = append(tx.closed, heldBy{c.key, h})
	return h, true
}

// find returns the receipt of the operation with an id, or nil if the operation was not done. Errors:
// ErrOtherPayload, also if another batch was done under the id of the operation's batch.
func (tx *transaction) find(customer int64, id model.ID) (*receipt, error) {
	if !id.Given() {
		return nil, nil
	}
	if id.Batch != nil {
		if _, err := tx.find(customer, *id.Batch); err != nil {
			return nil, err
		}
	}
	r, err := tx.receipt(customer, id.Key)
	if r != nil && r.payload != id.Payload {
		return nil, ErrOtherPayload
	}
	return r, err
}

// receipt returns the receipt with a key, or nil if there is none.
func (tx *transaction) receipt(customer int64, key [16]byte) (*receipt, error) {
	r := tx.receipts[receiptKey{customer, key}]
	if r != nil && r.bad != nil {
		return nil, fmt.Errorf("%w: %w", session.ErrInternal, r.bad)
	}
	return r, nil
}

// held reports whether another transaction has locked a counter's row. If so, the data that the row guards is
// unknown.
func (tx *transaction) held(key model.CounterKey) bool {
	c := tx.counters[key]
	return c != nil && c.held
}

// issue adds the receipt of an operation that has an ID. The first operation of a batch also adds the receipt of
// the batch, by which another batch with the same id is detected.
func (tx *transaction) issue(t *model.Target, id model.ID, r receipt) {
	if !id.Given() {
		return
	}
	own := t.Counters[0].Key
	r.receiptKey, r.payload, r.meter, r.fresh = receiptKey{own.Customer, id.Key}, id.Payload, own.Meter, true
	tx.receipts[r.receiptKey] = &r
	if id.Batch != nil && tx.receipts[receiptKey{own.Customer, id.Batch.Key}] == nil {
		tx.issue(t, *id.Batch, receipt{at: r.at})
	}
}

// makeValues records the counters of values that a charge to a target's counters creates. Call it before the
// charge. Errors: *ManyValuesError.
func (tx *transaction) makeValues(counters []*lockedRow) error {
	more := 0
	for _, c := range counters[1:] {
		if !c.there && !c.dirty { // otherwise an earlier operation of this transaction creates the counter
			more++
		}
	}
	if more == 0 {
		return nil
	}
	customer := counters[0].key.Customer
	if !tx.node.Values.Fit(customer, tx.made[customer]+more, tx.node.Stopwatch()) {
		tx.node.Totals.ManyValues.Add(1)
		return &ManyValuesError{tx.node.Values.Most()}
	}
	tx.made[customer] += more
	return nil
}
