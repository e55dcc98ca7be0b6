package quota

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// What operations beyond plain hits answer when they are not done. Nothing was charged or
// given back then.
var (
	// ErrOtherPayload: the id was used for something else.
	ErrOtherPayload = errors.New("the id was used for another request; nothing was done")
	// ErrUnderWay: a request with the same id is under way, and did not end in time.
	ErrUnderWay = errors.New("a request with this id is still under way; nothing was done by this one")
	// ErrLost: the target is Lost, and there is nothing to be given again.
	ErrLost = errors.New("the plan does not have the meter; nothing was charged")
	// ErrUnknownHit: there is no receipt of the hit that is to be refunded.
	ErrUnknownHit = errors.New("there is no admitted hit with that id on the meter, or its id is no longer kept; nothing was given back")
	// ErrUnknownReservation: there is none of that id, or it is no longer kept.
	ErrUnknownReservation = errors.New("there is no such reservation, or it is no longer kept; nothing was done")
	// ErrSettled: the reservation was committed, with another cost, or released before.
	ErrSettled = errors.New("the reservation was settled before; nothing was done")
	// ErrManyReservations: the customer has MaxOpen reservations open on the meter.
	ErrManyReservations = errors.New("too many reservations of the customer are open on the meter; nothing was charged")
)

// SettledError is ErrSettled, and says how.
type SettledError struct {
	Committed bool  // not released
	Cost      int64 // units that were committed
}

func (e *SettledError) Error() string { return ErrSettled.Error() }

// Unwrap returns ErrSettled.
func (e *SettledError) Unwrap() error { return ErrSettled }

// MaxOpen is how many reservations of one customer and meter may be open at once.
const MaxOpen = 10_000

// MinTTL and MaxTTL bound the life of a reservation, µs.
const (
	MinTTL = int64(1e3)
	MaxTTL = int64(24 * 3600e6)
)

// NoRoomError says that a commit does not fit. Nothing changed.
type NoRoomError struct {
	Most     int64    // the largest cost that could be committed now
	Decision Decision // the refusal of what goes beyond what is reserved
	Late     bool     // the reservation had expired
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("the cost does not fit: at most %d can be committed now; nothing was charged", e.Most)
}

// Refund is units to be given back.
type Refund struct {
	Target *Target // of the customer's meter, for the attributes of the refund
	Cost   int64   // 1 … MaxNumber
	// Hit is the id of the hit whose units these are, with its kind: the windows are those
	// that it was charged to. Zero: the present ones.
	Hit ID
	ID  ID // required
}

// Refunded is what a refund did.
type Refunded struct {
	// Decision is that of a look behind the refund: At and what each limit says.
	Decision
	// Units were given back: no more than the hit had left of its charge, or than the
	// present windows and the billing period's usage had.
	Units int64
}

// Refund gives units back. Usage falls by as much as was booked.
//
// Errors: ErrOtherPayload, ErrUnderWay, ErrUnknownHit, and those of Decide.
func (e *Engine) Refund(ctx context.Context, r Refund) (Refunded, error) {
	own := r.Target.Counters[0].Key
	l := e.ledger(own.Customer)
	o := l.newOperation(r.Target, r.ID)
	if r.Hit.given() {
		o.others = append(o.others, receiptKey{own.Customer, r.Hit.key})
	}
	if !r.Hit.given() { // it needs the hours of the period
		now, err := e.options.Now(ctx)
		if err != nil {
			return Refunded{}, Unreached(err)
		}
		from, to := r.Target.Period(r.Target.Instant(now))
		o.hours = &hours{counter: own, from: from, to: to}
	}
	return submit(l, o, func(b *books) (Refunded, error) { return b.refund(&r) }).result(ctx)
}

// ReservationID names a reservation.
type ReservationID struct {
	Customer int64
	Meter    int32
	key      [16]byte
}

// reservationPrefix begins the text of a ReservationID.
const reservationPrefix = "rsv_"

func (r ReservationID) String() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(r.Customer))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Meter))
	return reservationPrefix + base64.RawURLEncoding.EncodeToString(append(b, r.key[:]...))
}

// ParseReservationID reads the text of one; ok is false for any other.
func ParseReservationID(s string) (r ReservationID, ok bool) {
	text, ok := strings.CutPrefix(s, reservationPrefix)
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(b) != 8+4+len(r.key) {
		return r, false
	}
	r.Customer, r.Meter = int64(binary.BigEndian.Uint64(b)), int32(binary.BigEndian.Uint32(b[8:]))
	copy(r.key[:], b[12:])
	return r, true
}

// Reservation is the outcome of Reserve. Unless Allowed nothing was reserved.
type Reservation struct {
	Decision
	ID        ReservationID
	ExpiresAt int64 // µs since the Unix epoch, by the customer's clock
}

// Reserve charges cost (1 … MaxNumber) to all limits, concurrency limits too, until it is
// committed, released or ttl µs have passed; books no usage. A concurrency limit's own ttl
// bounds it.
//
// Errors: ErrOtherPayload, ErrUnderWay, ErrManyReservations, and those of Decide.
func (e *Engine) Reserve(ctx context.Context, t *Target, cost, ttl int64, id ID) (Reservation, error) {
	plain := t.base()
	t = t.ForReservations()
	l := e.ledger(t.Counters[0].Key.Customer)
	o := l.newOperation(t, id)
	o.targets[0] = plain
	done, err := submit(l, o, func(b *books) (out Reservation, err error) {
		out, err = b.reserve(t, cost, ttl, id)
		o.refused = err == nil && !out.Allowed
		return out, err
	}).result(ctx)
	e.countDenied(&Result{Decision: done.Decision, Err: err})
	return done, err
}

// Expire takes what has expired off the holds of a target's counters. Whoever looks at them
// does so by itself: this is for those at which nobody looks. Errors: those of Decide.
func (e *Engine) Expire(ctx context.Context, t *Target) error {
	l := e.ledger(t.Counters[0].Key.Customer)
	_, err := submit(l, l.newOperation(t, ID{}), func(b *books) (struct{}, error) {
		_, _, err := b.open(t)
		return struct{}{}, err
	}).result(ctx)
	return err
}

// Settled is the outcome of Commit and Release.
type Settled struct {
	Decision       // as behind it: At and what each limit says
	Reserved int64 // units that had been reserved
	Late     bool  // it had expired, so that all of the cost was charged now
}

// Commit books cost (0 … MaxNumber) units of a reservation as usage. What was reserved
// beyond it is given back; what goes beyond that, or all of it when the reservation has
// expired, is charged now if it fits, else *NoRoomError. The same again is replayed. t is
// what hits of the reservation's customer and meter are judged by.
//
// Errors: ErrUnknownReservation, ErrSettled, *NoRoomError, and those of Decide.
func (e *Engine) Commit(ctx context.Context, t *Target, r ReservationID, cost int64) (Settled, error) {
	return e.settle(ctx, t, r, func(b *books) (Settled, error) { return b.commit(t, r, cost) })
}

// Release gives a reservation back, one that has expired too. The same again is replayed.
//
// Errors: ErrUnknownReservation, ErrSettled when it was committed, and those of Decide.
func (e *Engine) Release(ctx context.Context, t *Target, r ReservationID) (Settled, error) {
	return e.settle(ctx, t, r, func(b *books) (Settled, error) { return b.release(t, r) })
}

func (e *Engine) settle(ctx context.Context, t *Target, r ReservationID, how func(*books) (Settled, error)) (Settled, error) {
	if own := t.Counters[0].Key; own.Customer != r.Customer || own.Meter != r.Meter {
		return Settled{}, ErrUnknownReservation
	}
	l := e.ledger(r.Customer)
	return submit(l, l.newOperation(t, ID{key: r.key}), how).result(ctx)
}

// DecideTogether decides hits of whatever customers and meters, all or none: as if they
// came one after the other, and all are charged, or none. together says which. Of those
// that are not, Allowed is false for all, also for those that would have fitted.
//
// An error of one is that of all.
func (e *Engine) DecideTogether(ctx context.Context, hits []Hit) (results []Decision, together bool, err error) {
	if len(hits) == 0 {
		return nil, true, nil
	}
	l := e.ledger(hits[0].Target.Counters[0].Key.Customer)
	o := l.newOperation(hits[0].Target, ID{})
	o.target, o.targets, o.repeatable = nil, nil, true
	for i := range hits {
		o.targets = append(o.targets, hits[i].Target.base())
		o.lock(hits[i].Target.keys()...)
		if !hits[i].looks() {
			o.identify(hits[i].Target.Counters[0].Key.Customer, hits[i].ID)
		}
	}
	type outcome struct {
		results  []Decision
		together bool
	}
	done, err := submit(l, o, func(b *books) (out outcome, err error) {
		out.results, out.together, err = b.hits(hits)
		return out, err
	}).result(ctx)
	for i := range done.results {
		if !hits[i].looks() {
			e.countDenied(&Result{Decision: done.results[i]})
		}
	}
	return done.results, done.together, err
}

// once is a hit that waits in a ledger.
type once struct{ *pending[Decision] }

func (o once) wait(ctx context.Context) Result {
	d, err := o.result(ctx)
	return Result{d, err}
}

// submitOnce hands a hit to its ledger and returns it to wait for.
func (e *Engine) submitOnce(h *Hit) once {
	l := e.ledger(h.Target.Counters[0].Key.Customer)
	o := l.newOperation(h.Target, h.ID)
	return once{submit(l, o, func(b *books) (d Decision, err error) {
		d, err = b.hit(h.Target, h.Cost, h.ID)
		o.refused = err == nil && !d.Allowed
		return d, err
	})}
}
