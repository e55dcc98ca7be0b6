package locked

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// Refund specifies units to be refunded.
type Refund struct {
	Target *model.Target // the target of the customer's meter with the attributes of the refund
	Cost   int64         // 1 … MaxNumber
	// Hit is the id, with its kind, of the hit that was charged the units. The units return to the windows that
	// this hit was charged to. If Hit is zero, the units return to the present windows.
	Hit model.ID
	ID  model.ID // required
}

// Refunded is the result of a refund.
type Refunded struct {
	// Decision is the decision of a dry run after the refund: At and the view of each limit.
	model.Decision
	// Units is the number of units by which usage fell. It is at most the unrefunded rest of the hit's charge.
	// Without a hit, it is at most the usage of the billing period, but limits may regain more units.
	Units int64
}

// Refund refunds units. Usage falls by at most the units that were booked.
//
// Errors: ErrOtherPayload, ErrUnderWay, ErrUnknownHit, and those of Decide.
func (w *Worker) Refund(ctx context.Context, from queue.SenderID, r Refund) (Refunded, error) {
	own := r.Target.Counters[0].Key
	o := w.newOperation(from, r.Target, r.ID)
	if r.Hit.Given() {
		o.others = append(o.others, receiptKey{own.Customer, r.Hit.Key})
	}
	if !r.Hit.Given() && !r.Target.Level { // the refund needs the hours of the period
		now, err := w.node.Now(ctx)
		if err != nil {
			return Refunded{}, session.Unreached(err)
		}
		from, to := r.Target.Period(r.Target.Instant(now))
		o.hours = []*hours{{counter: own, from: from, to: to}}
	}
	return submit(w, o, func(tx *transaction) (Refunded, error) { return tx.refund(&r) }).result(ctx)
}

// refund refunds units.
func (tx *transaction) refund(r *Refund) (out Refunded, err error) {
	t := r.Target
	customer := t.Counters[0].Key.Customer
	done, err := tx.find(customer, r.ID)
	if err != nil {
		return out, err
	}
	if done != nil {
		return Refunded{done.replay(t), done.cost}, nil
	}
	if tx.held(t.Counters[0].Key) {
		return out, errHeldRow
	}
	var hit *receipt
	if r.Hit.Given() {
		// The payload of the hit's receipt is not compared, because a refund accepts any request under the hit's
		// id.
		if hit, err = tx.receipt(customer, r.Hit.Key); err != nil {
			return out, err
		}
		if hit == nil || hit.meter != t.Counters[0].Key.Meter {
			return out, ErrUnknownHit
		}
		if t, err = tx.targetOf(t, hit); err != nil {
			return out, err
		}
	}
	counters, instant, err := tx.open(t)
	if err != nil {
		return out, err
	}
	switch {
	case t.Level:
		units := r.Cost
		if hit != nil {
			units = min(units, hit.cost-hit.returned)
		}
		if out.Units, err = tx.lower(t, counters, units, instant); err == nil && hit != nil {
			hit.returned, hit.changed = hit.returned+out.Units, hit.changed || out.Units > 0
		}
	case hit != nil:
		out.Units, err = tx.refundHit(t, hit, r, instant)
	default:
		out.Units, err = tx.refundPresent(t, counters, r, instant)
	}
	if err != nil {
		return out, err
	}
	out.Decision = tx.judge(t, counters, 0)
	tx.issue(t, r.ID, receipt{at: instant, cost: out.Units, receiptBody: receiptBody{views: out.Views()}})
	return out, nil
}

// targetOf returns a target with the counters that a receipt was charged to. All of these counters must be locked.
func (tx *transaction) targetOf(t *model.Target, r *receipt) (*model.Target, error) {
	t = t.Base().For(r.attributes())
	missing := false
	for _, c := range r.charged {
		key := t.Sibling(c.Attribute)
		missing = missing || tx.counters[key] == nil
		tx.wanted = append(tx.wanted, key)
	}
	if missing {
		return nil, errMissingLock
	}
	for _, key := range tx.wanted {
		if tx.held(key) {
			return nil, errHeldRow
		}
		if err := tx.check(t, tx.counters[key]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// refundHit refunds units of a hit. It refunds at most the unrefunded rest of the hit. While the hit's period
// runs, it also refunds at most the units of the hit's hour, because refunds without a hit may have subtracted
// some of them. After the period, the refund is an adjustment of that hour.
func (tx *transaction) refundHit(t *model.Target, hit *receipt, r *Refund, instant int64) (units int64, err error) {
	own := tx.counters[t.Counters[0].Key]
	hour, _ := t.RunningHour(instant)
	tx.turn(own, hour)
	left, over := hit.cost-hit.returned, ended(t, hit.hour, instant)
	has := own.units
	if over {
		has = left
	} else if hit.hour != own.hour || has < r.Cost {
		booked, err := tx.finished(own, hit.hour, hit.hour+1)
		if err != nil {
			return 0, err
		}
		has = booked[hit.hour]
	}
	units = min(r.Cost, left, has)
	if units <= 0 {
		return 0, nil
	}
	hit.returned, hit.changed = hit.returned+units, true
	tx.giveBackCharged(t, hit, units)
	if over {
		tx.correct(own, hit.hour, r.ID, -units, instant, "refund")
		return units, nil
	}
	tx.takeOff(own, hit.hour, units)
	tx.stand(t, own, instant)
	return units, nil
}

// giveBackCharged returns units to all limits that a receipt was charged to. A counter that no longer exists
// counts as untouched.
func (tx *transaction) giveBackCharged(t *model.Target, r *receipt, units int64) {
	for _, charged := range r.charged {
		c := tx.counters[t.Sibling(charged.Attribute)]
		if c.there {
			tx.giveBack(t, c, charged.Limits, r.at, units)
		}
	}
}

// takeOff subtracts units from the usage of an hour and from the counter's total.
func (tx *transaction) takeOff(own *lockedRow, hour, units int64) {
	own.total -= units
	tx.moveCap(own, hour, -units)
	if own.hour == hour {
		less := min(units, own.units)
		own.units, units = own.units-less, units-less
	}
	if units > 0 {
		tx.usage[own.hourKey(hour)] -= units
	}
	own.touch()
}

// refundPresent returns units to the running windows, and subtracts as many units from the usage of the running
// billing period, the newest hours first. No window and no hour loses more units than it has. taken is the
// number of units by which usage fell.
func (tx *transaction) refundPresent(t *model.Target, counters []*lockedRow, r *Refund, instant int64) (taken int64, err error) {
	own := counters[0]
	hour, _ := t.RunningHour(instant)
	tx.turn(own, hour)
	start, end := t.Period(instant)
	booked, err := tx.finished(own, start, end)
	if err != nil {
		return 0, err
	}
	before := model.Judge(t, rowsOf(counters), instant, 0)
	for i := range t.NumLimits() {
		if t.LimitAt(i).IsCap() {
			continue // a cap changes with usage
		}
		// Reserved units are not used.
		c, free := counters[t.CounterOf(i)], min(r.Cost, before.Unreserved(i))
		tx.giveBack(t, c, []int64{t.Identity(i, c.At)}, model.Present, free)
	}
	for _, c := range counters {
		for _, left := range c.Unreserved() { // buckets of limits that the plan no longer has
			tx.giveBack(t, c, []int64{left.ID}, model.Present, min(r.Cost, left.Units))
		}
	}
	// Adjustments count as usage, too.
	most := tx.adjustedIn(own, start, end)
	for _, units := range booked {
		most += units
	}
	most = min(r.Cost, most)
	newestFirst := func(a, b int64) int { return cmp.Compare(b, a) }
	for _, hour := range slices.SortedFunc(maps.Keys(booked), newestFirst) {
		if less := min(most-taken, booked[hour]); less > 0 {
			tx.takeOff(own, hour, less)
			taken += less
		}
	}
	if taken > 0 {
		tx.stand(t, own, instant)
	}
	return taken, nil
}
