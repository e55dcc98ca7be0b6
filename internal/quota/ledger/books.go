package ledger

import (
	"errors"
	"fmt"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// account is a counter's row while the ledger has it locked.
type account struct {
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

// books are the rows that a transaction of the ledger has locked and read, and what it writes.
type books struct {
	node     *queue.Node
	now      int64 // PostgreSQL's time, µs
	cautious bool  // rows that others hold were left out, as if they were not there
	accounts map[model.CounterKey]*account
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

// open returns the accounts of a target's counters, and the instant at which hits on them are
// judged. Holds that have expired by then are given back. A missing row of an attribute's value
// counts as untouched; a charge makes the row.
//
// Errors: errMissingLock, errMissingRow, errHeldRow, *model.StaleError; session.ErrInternal for a
// row that cannot be read.
func (b *books) open(t *model.Target) (accounts []*account, instant int64, err error) {
	if accounts, instant, err = b.take(t); err == nil {
		err = t.Over(instant)
	}
	if err != nil {
		return nil, 0, err
	}
	b.begin(t, accounts, instant)
	return accounts, instant, nil
}

// openAny is open for who judges no cost. The target's limits may count no more at that instant.
func (b *books) openAny(t *model.Target) (accounts []*account, err error) {
	accounts, instant, err := b.take(t)
	if err == nil {
		b.begin(t, accounts, instant)
	}
	return accounts, err
}

// take finds and checks the accounts of a target's counters.
func (b *books) take(t *model.Target) (accounts []*account, instant int64, err error) {
	instant = t.Instant(b.now)
	for i := range t.Counters {
		b.wanted = append(b.wanted, t.Counters[i].Key)
	}
	for i := range t.Counters {
		a := b.accounts[t.Counters[i].Key]
		switch {
		case a == nil:
			return nil, 0, errMissingLock
		case a.held:
			return nil, 0, errHeldRow
		case !a.there && i == 0: // the own row must be there: it remembers the change number for values' rows, too
			return nil, 0, errMissingRow
		case a.Change > t.Change:
			return nil, 0, &model.StaleError{Change: a.Change}
		}
		if err := b.check(t, a); err != nil {
			return nil, 0, err
		}
		accounts, instant = append(accounts, a), max(instant, a.At)
	}
	return accounts, instant, nil
}

// begin gives back what has expired of the holds, and has the rows remember the target's change.
func (b *books) begin(t *model.Target, accounts []*account, instant int64) {
	accounts[0].target = t.Base()
	for i, a := range accounts {
		b.expire(t, i, a, instant)
		if a.Change < t.Change {
			a.Change, a.dirty = t.Change, a.dirty || a.there
		}
	}
}

// check makes sure of a row that was read, for an operation on a target. A row that cannot be read
// is the fault of its own operations only, and the log names it. Errors: session.ErrInternal.
func (b *books) check(t *model.Target, a *account) error {
	if a.sound == t.Base() {
		return nil
	}
	err := a.bad
	if err == nil {
		err = model.CheckHour(a.hour, a.units)
	}
	if err == nil {
		err = t.Check(a.key.Attribute, &a.Row)
	}
	if err == nil {
		a.sound = t.Base()
		return nil
	}
	b.node.Log.Error("an operation cannot be done on what its counters hold",
		"customer_id", a.key.Customer, "meter_id", a.key.Meter, "attribute", a.key.Attribute, "error", err)
	return fmt.Errorf("%w: %w", session.ErrInternal, err)
}

// expire takes the holds that have expired at an instant off the account of a target's i-th
// counter.
func (b *books) expire(t *model.Target, i int, a *account, instant int64) {
	for _, h := range t.Expire(i, &a.Row, instant) {
		b.closed = append(b.closed, heldBy{a.key, h})
		a.freed = true
		a.touch()
	}
}

// touch marks an account that has changed. Every change is another version.
func (a *account) touch() { a.dirty, a.Version = true, a.Version+1 }

func rowsOf(accounts []*account) []model.Row {
	rows := make([]model.Row, len(accounts))
	for i, a := range accounts {
		rows[i] = a.Row
	}
	return rows
}

// Charge charges an admitted decision's cost to the accounts, and returns the decision as it
// stands after the charge.
func (b *books) Charge(accounts []*account, d model.Decision) model.Decision {
	rows := rowsOf(accounts)
	d.ChargeTo(rows)
	for i, a := range accounts {
		a.Row = rows[i]
		a.touch()
	}
	return d.Behind(rowsOf(accounts))
}

// book adds units as usage to the running hour of the own account, and to the totals of all
// accounts that were charged.
func (b *books) book(t *model.Target, accounts []*account, units, instant int64) (hour int64) {
	hour, _ = t.RunningHour(instant)
	for i, a := range accounts {
		if !a.there && !a.dirty {
			continue // a value's, that was not charged
		}
		b.turn(a, hour)
		if a.total = model.AddUpTo(a.total, units); i == 0 {
			a.units = model.AddUpTo(a.units, units)
		}
		a.dirty = true
	}
	return hour
}

// turn moves the units of an account's hour that is over to the finished ones.
func (b *books) turn(a *account, hour int64) {
	if a.hour == hour {
		return
	}
	if a.units > 0 {
		b.addUsage(a.hourKey(a.hour), a.units)
	}
	a.hour, a.units, a.dirty = hour, 0, true
}

func (b *books) addUsage(hour model.HourKey, units int64) {
	b.usage[hour] = model.AddUpTo(b.usage[hour], units)
}

func (a *account) hourKey(hour int64) model.HourKey {
	return model.HourKey{Customer: a.key.Customer, Meter: a.key.Meter, Hour: hour}
}

// finished returns the units of an own account's hours in [from, to), by the hours' starts. They
// are the finished hours as this transaction leaves them, and the running hour. Errors:
// errMissingHour.
func (b *books) finished(own *account, from, to int64) (map[int64]int64, error) {
	read := b.hours[own.key]
	if read == nil || from < read.from || read.to < to {
		b.missing = &hours{counter: own.key, from: from, to: to}
		return nil, errMissingHour
	}
	units := make(map[int64]int64)
	within := func(hour int64) bool { return from <= hour && hour < to }
	for hour, n := range read.units {
		if within(hour) {
			units[hour] = n
		}
	}
	for key, n := range b.usage {
		if key == own.hourKey(key.Hour) && within(key.Hour) {
			units[key.Hour] += n
		}
	}
	if within(own.hour) {
		units[own.hour] += own.units
	}
	return units, nil
}

// adjustedIn is the sum of an account's adjustments in [from, to), whose hours were read.
func (b *books) adjustedIn(own *account, from, to int64) (units int64) {
	for hour, n := range b.hours[own.key].adjusted {
		if from <= hour && hour < to {
			units += n
		}
	}
	for _, a := range b.adjusted {
		if a.HourKey == own.hourKey(a.Hour) && from <= a.Hour && a.Hour < to {
			units += a.cost
		}
	}
	return units
}

// giveBack gives units back to an account that were charged to some of its limits.
func (b *books) giveBack(t *model.Target, a *account, charged []int64, at, units int64) {
	if units > 0 {
		t.GiveBack(a.key.Attribute, &a.Row, charged, at, units)
		a.freed = true
		a.touch()
	}
}

// hold puts a hold on accounts.
func (b *books) hold(accounts []*account, charged []model.Charged, h model.Hold) {
	for i, a := range accounts {
		h.Limits = charged[i].Limits
		a.Holds = a.Holds.With(h)
		a.dirty = true
		b.opened = append(b.opened, heldBy{a.key, h})
	}
}

// unhold takes a reservation's hold off an account; ok is false when it has none.
func (b *books) unhold(a *account, key [16]byte) (h model.Hold, ok bool) {
	rest, h, ok := a.Holds.Without(key)
	if !ok {
		return h, false
	}
	a.Holds = rest
	a.touch()
	b.closed = append(b.closed, heldBy{a.key, h})
	return h, true
}

// find returns the receipt of the operation with an id; nil when that operation was not done.
// Errors: ErrOtherPayload.
func (b *books) find(customer int64, id model.ID) (*receipt, error) {
	if !id.Given() {
		return nil, nil
	}
	r, err := b.receipt(customer, id.Key)
	if r != nil && r.payload != id.Payload {
		return nil, ErrOtherPayload
	}
	return r, err
}

// receipt returns a receipt by its key; nil when there is none.
func (b *books) receipt(customer int64, key [16]byte) (*receipt, error) {
	r := b.receipts[receiptKey{customer, key}]
	if r != nil && r.bad != nil {
		return nil, fmt.Errorf("%w: %w", session.ErrInternal, r.bad)
	}
	return r, nil
}

// held reports whether a counter's row is somebody else's: then nothing can be said of what it
// guards.
func (b *books) held(key model.CounterKey) bool {
	a := b.accounts[key]
	return a != nil && a.held
}

// issue writes the receipt of an operation that has an ID.
func (b *books) issue(t *model.Target, id model.ID, r receipt) {
	if !id.Given() {
		return
	}
	own := t.Counters[0].Key
	r.receiptKey, r.payload, r.meter, r.fresh = receiptKey{own.Customer, id.Key}, id.Payload, own.Meter, true
	b.receipts[r.receiptKey] = &r
}
