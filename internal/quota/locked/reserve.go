package locked

import (
	"context"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// Reserve charges cost (1 … MaxNumber) to all limits, including concurrency limits. The charge stays until the
// reservation is committed or released, or until ttl µs have passed. The ttl of a concurrency limit bounds ttl.
// Reserve books no usage.
//
// Errors: ErrOtherPayload, ErrUnderWay, ErrManyReservations, and those of Decide.
func (w *Worker) Reserve(ctx context.Context, from queue.SenderID, t *model.Target, cost, ttl int64, id model.ID) (Reservation, error) {
	plain := t.Base()
	t = t.ForReservations()
	o := w.newOperation(from, t, id)
	o.targets[0] = plain
	return submit(w, o, func(tx *transaction) (out Reservation, err error) {
		out, err = tx.reserve(t, cost, ttl, id, w.node.MaxReservations)
		o.refused = err == nil && !out.Allowed
		return out, err
	}).result(ctx)
}

// Expire removes expired holds from a target's counters. Because every operation on a counter does so anyway,
// Expire serves counters without operations. Errors: those of Decide.
func (w *Worker) Expire(ctx context.Context, t *model.Target) error {
	_, err := submit(w, w.newOperation("", t, model.ID{}), func(tx *transaction) (struct{}, error) {
		_, err := tx.openAny(t)
		return struct{}{}, err
	}).result(ctx)
	return err
}

// Commit books cost (0 … MaxNumber) units of a reservation as usage. If more units were reserved, the rest is
// returned. If fewer units were reserved, the missing units are charged now. If the reservation has expired, the
// whole cost is charged now. If the charge does not fit, Commit returns *NoRoomError.
//
// A repeated commit is replayed. t is the target of the reservation's customer and meter.
//
// Errors: ErrUnknownReservation, ErrSettled, *NoRoomError, and those of Decide.
func (w *Worker) Commit(ctx context.Context, from queue.SenderID, t *model.Target, r ReservationID, cost int64) (Settled, error) {
	return w.settle(ctx, from, t, r, func(tx *transaction) (Settled, error) { return tx.commit(t, r, cost, false) })
}

// CommitOverrun commits a cost that has been spent already. Unlike Commit, it charges the cost even beyond hard
// limits, so it never returns *NoRoomError.
func (w *Worker) CommitOverrun(ctx context.Context, from queue.SenderID, t *model.Target, r ReservationID, cost int64) (Settled, error) {
	return w.settle(ctx, from, t, r, func(tx *transaction) (Settled, error) { return tx.commit(t, r, cost, true) })
}

// Release releases a reservation, even if it has expired. A repeated release is replayed.
//
// Errors: ErrUnknownReservation, ErrSettled if the reservation was committed, and those of Decide.
func (w *Worker) Release(ctx context.Context, from queue.SenderID, t *model.Target, r ReservationID) (Settled, error) {
	return w.settle(ctx, from, t, r, func(tx *transaction) (Settled, error) { return tx.release(t, r) })
}

func (w *Worker) settle(ctx context.Context, from queue.SenderID, t *model.Target, r ReservationID, how func(*transaction) (Settled, error)) (Settled, error) {
	if own := t.Counters[0].Key; own.Customer != r.Customer || own.Meter != r.Meter {
		return Settled{}, ErrUnknownReservation
	}
	return submit(w, w.newOperation(from, t, model.ID{Key: r.key}), how).result(ctx)
}

// reserve charges units and adds a hold to each charged counter. It books no usage. most is the maximum number
// of the customer's open reservations on the meter. The customer's own counter, which is locked, has a hold for
// each open reservation.
func (tx *transaction) reserve(t *model.Target, cost, ttl int64, id model.ID, most int) (out Reservation, err error) {
	if t.Level {
		return out, ErrLevel
	}
	own := t.Counters[0].Key
	out.ID = ReservationID{own.Customer, own.Meter, id.Key}
	r, err := tx.find(own.Customer, id)
	if err != nil {
		return out, err
	}
	if r != nil {
		out.Decision, out.ExpiresAt = r.replay(t), r.expires
		out.Cost = r.reserved
		return out, nil
	}
	if t.Lost {
		return out, ErrLost
	}
	counters, _, err := tx.admit(t)
	if err != nil {
		return out, err
	}
	d := tx.judge(t, counters, cost)
	if out.Decision = d; !d.Allowed {
		tx.refuse(&d)
		return out, nil
	}
	if counters[0].Holds.Len() >= most {
		return out, &ManyReservationsError{most}
	}
	if err = tx.makeValues(counters); err != nil {
		return out, err
	}
	d = tx.Charge(counters, d)
	hour, _ := t.RunningHour(d.At)
	tx.moveCap(counters[0], hour, -cost) // nothing is booked, because held units count separately
	for i := range t.NumLimits() {
		if l := t.LimitAt(i); l.Algorithm.OnlyHolds() {
			ttl = min(ttl, l.TTL)
		}
	}
	out.ExpiresAt = d.At + ttl
	charged := d.ChargedBy()
	tx.hold(counters, charged, model.Hold{Key: id.Key, Expires: out.ExpiresAt, At: d.At, Cost: cost})
	out.Decision = d.Charged(rowsOf(counters))
	tx.issue(t, id, receipt{at: d.At, cost: cost, state: receiptOpen, receiptBody: receiptBody{
		expires: out.ExpiresAt, reserved: cost, charged: charged, views: out.Views(),
	}})
	return out, nil
}

// reservation returns a reservation's receipt, and its target with the counters that the reservation was charged
// to.
func (tx *transaction) reservation(t *model.Target, id ReservationID) (*receipt, *model.Target, error) {
	if tx.held(t.Counters[0].Key) {
		return nil, nil, errHeldRow
	}
	r, err := tx.receipt(id.Customer, id.key)
	if err != nil {
		return nil, nil, err
	}
	if r == nil || r.state == receiptDone || r.meter != id.Meter {
		return nil, nil, ErrUnknownReservation
	}
	t, err = tx.targetOf(t, r)
	return r, t, err
}

// commit books units of a reservation.
func (tx *transaction) commit(t *model.Target, id ReservationID, cost int64, overrun bool) (out Settled, err error) {
	r, t, err := tx.reservation(t, id)
	if err != nil {
		return out, err
	}
	switch {
	case r.state == receiptCommitted && r.cost == cost:
		return r.settledAgain(t), nil
	case r.state != receiptOpen:
		return out, r.settledBefore()
	}
	counters, _, err := tx.open(t)
	if err != nil {
		return out, err
	}
	out.Reserved, out.Late = r.reserved, !counters[0].Holds.Has(id.key)
	more := cost - r.reserved
	if out.Late {
		// The hold may still exist on another charged counter, because tx.open checks only the counters of t.
		tx.releaseHolds(t, r, r.reserved)
		more = cost
	}
	d := tx.judge(t, counters, max(0, more))
	if overrun {
		d = d.Overrun()
	}
	if !d.Allowed {
		most := d.Headroom()
		if !out.Late {
			most += r.reserved
		}
		return out, &NoRoomError{Most: min(most, model.MaxNumber), Decision: d, Late: out.Late}
	}
	tx.releaseHolds(t, r, max(0, -more))
	if more > 0 {
		d = tx.Charge(counters, d)
	} else if cost > 0 {
		tx.stand(t, counters[0], d.At)
	}
	r.hour = tx.addUnits(t, counters, cost, d.At)
	tx.moveCap(counters[0], r.hour, cost-max(0, more)) // the charge has booked the rest
	counters[0].touch()
	out.Decision = tx.judge(t, counters, 0).Committed(cost)
	r.close(receiptCommitted, cost, &out)
	return out, nil
}

// release releases a whole reservation.
func (tx *transaction) release(t *model.Target, id ReservationID) (out Settled, err error) {
	r, t, err := tx.reservation(t, id)
	if err != nil {
		return out, err
	}
	switch r.state {
	case receiptReleased:
		return r.settledAgain(t), nil
	case receiptCommitted:
		return out, r.settledBefore()
	}
	counters, _, err := tx.open(t)
	if err != nil {
		return out, err
	}
	out.Reserved, out.Late = r.reserved, !counters[0].Holds.Has(id.key)
	tx.releaseHolds(t, r, r.reserved)
	out.Decision = tx.judge(t, counters, 0)
	r.close(receiptReleased, 0, &out)
	return out, nil
}

// releaseHolds removes a reservation's holds that have not expired, and returns the given number of units to the
// limits.
func (tx *transaction) releaseHolds(t *model.Target, r *receipt, units int64) {
	for _, c := range r.charged {
		c := tx.counters[t.Sibling(c.Attribute)]
		if h, ok := tx.unhold(c, r.key); ok {
			tx.giveBack(t, c, h.Limits, h.At, units)
		}
	}
}

// close records the result of settling a reservation.
func (r *receipt) close(state int16, cost int64, out *Settled) {
	r.state, r.cost, r.changed = state, cost, true
	r.late, r.doneAt, r.settled = out.Late, out.At, out.Views()
}

func (r *receipt) settledBefore() error {
	return &SettledError{Committed: r.state == receiptCommitted, Cost: r.cost}
}

// settledAgain replays the response with which a reservation was settled.
func (r *receipt) settledAgain(t *model.Target) Settled {
	return Settled{Decision: model.Replayed(t, r.doneAt, r.cost, r.settled), Reserved: r.reserved, Late: r.late}
}
