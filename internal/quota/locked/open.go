package locked

import (
	"cmp"
	"errors"
	"fmt"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// open returns the locked rows of a target's counters, and the instant at which hits on them are judged. It
// removes the holds that have expired by then. A missing row of an attribute value counts as untouched, and a
// charge creates the row.
//
// Errors: errMissingLock, errMissingRow, errHeldRow, errMissingNumber, errMissingHour, *model.StaleError, and
// session.ErrInternal for a row that cannot be read.
func (tx *transaction) open(t *model.Target) (counters []*lockedRow, instant int64, err error) {
	if counters, instant, err = tx.take(t); err == nil {
		err = t.Over(instant)
	}
	if err != nil {
		return nil, 0, err
	}
	tx.begin(t, counters, instant)
	if err = tx.countCap(t, counters[0]); err != nil {
		return nil, 0, err
	}
	return counters, instant, nil
}

// admit does the same as open, for hits and reservations. If the target is barred at their instant, admit
// returns the reason as an error.
func (tx *transaction) admit(t *model.Target) (counters []*lockedRow, instant int64, err error) {
	counters, instant, err = tx.take(t)
	switch {
	case err == nil:
		err = cmp.Or(t.Over(instant), t.Barred(instant))
	case errors.Is(err, errMissingRow): // no row is created for a refused hit
		err = cmp.Or(t.Barred(t.Instant(tx.now)), err)
	}
	if err != nil {
		return nil, 0, err
	}
	tx.begin(t, counters, instant)
	if err = tx.countCap(t, counters[0]); err != nil {
		return nil, 0, err
	}
	return counters, instant, nil
}

// judge returns the decision of locked rows for a cost now. It charges nothing.
func (tx *transaction) judge(t *model.Target, counters []*lockedRow, cost int64) model.Decision {
	return model.Judge(t, rowsOf(counters), t.Instant(tx.now), cost)
}

// openAny does the same as open, except that it does not check that the target's overrides are still in force.
// It is for operations that judge no cost.
func (tx *transaction) openAny(t *model.Target) (counters []*lockedRow, err error) {
	counters, instant, err := tx.take(t)
	if err == nil {
		tx.begin(t, counters, instant)
	}
	return counters, err
}

// take returns and checks the locked rows of a target's counters.
func (tx *transaction) take(t *model.Target) (counters []*lockedRow, instant int64, err error) {
	if tx.node.Outdated(t) {
		return nil, 0, &model.StaleError{}
	}
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
		case !c.there && i == 0: // the own row must exist, because it also stores the change number for the rows of values
			return nil, 0, errMissingRow
		}
		if err := tx.overtaken(t, c.Change); err != nil {
			return nil, 0, err
		}
		if err := tx.check(t, c); err != nil {
			return nil, 0, err
		}
		counters, instant = append(counters, c), max(instant, c.At)
	}
	return counters, instant, nil
}

// overtaken returns an error if a change that is newer than the target may concern a counter. change is the
// change number of the counter's row. If the database has no such change, the change was lost, or the number was
// written by hand. In that case the target is accepted if it is valid for the newest change in the database.
//
// Errors: errMissingNumber and *model.StaleError.
func (tx *transaction) overtaken(t *model.Target, change int64) error {
	asOf := t.AsOf()
	switch {
	case change <= asOf:
		return nil
	case tx.newest < 0:
		return errMissingNumber
	case min(change, tx.newest) > asOf:
		return &model.StaleError{Change: min(change, tx.newest)}
	}
	return nil
}

// begin adapts the rows to the target, removes expired holds, and sets the rows' change number to the target's.
func (tx *transaction) begin(t *model.Target, counters []*lockedRow, instant int64) {
	counters[0].target = t.Base()
	for i, c := range counters {
		if moved, changed := t.Settle(i, &c.Row, instant); moved { // also for a row that is created in this transaction
			c.touch()
		} else if changed && c.there {
			c.dirty = true
		}
		tx.expire(t, i, c, instant)
		if c.Change == t.Change {
			continue
		}
		if c.Change > t.Change {
			tx.repaired = append(tx.repaired, c.key)
		}
		c.Change, c.dirty = t.Change, c.dirty || c.there
	}
	if t.Level {
		tx.showLevels(t, counters)
	}
	tx.watch(t, counters[0], instant)
}

// countCap sets the cap in the state of a customer's own counter to the units that are booked in the period of
// the target's cap. Errors: errMissingHour.
func (tx *transaction) countCap(t *model.Target, own *lockedRow) error {
	if !t.Uncounted(own.State) {
		return nil
	}
	start, end, _ := t.CapPeriod()
	booked, err := tx.finished(own, start, end)
	if err != nil {
		return err
	}
	units := tx.adjustedIn(own, start, end)
	for _, n := range booked {
		units = model.AddUpTo(units, n)
	}
	own.State, own.dirty = t.CountCap(own.State, units), true
	return nil
}

// moveCap adds units that were booked in an hour without a charge to a cap, or subtracts them if units is
// negative.
func (tx *transaction) moveCap(own *lockedRow, hour, units int64) {
	state, moved := model.MoveCap(own.State, hour, units)
	if moved {
		own.State, own.freed = state, own.freed || units < 0
		own.touch()
	}
}

// check verifies a row that was read, for an operation on a target. A row that cannot be read affects only its own
// operations, and check logs the row. Errors: session.ErrInternal.
func (tx *transaction) check(t *model.Target, c *lockedRow) error {
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

// expire removes the holds that have expired at an instant from a target's i-th counter.
func (tx *transaction) expire(t *model.Target, i int, c *lockedRow, instant int64) {
	for _, h := range t.Expire(i, &c.Row, instant) {
		tx.closed = append(tx.closed, heldBy{c.key, h})
		c.freed = true
		c.touch()
	}
}
