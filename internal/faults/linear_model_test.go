package faults

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"quotad/internal/testkit"
)

// The sequential model of one counter with an allocation and a concurrency limit: what
// each operation does when it is alone. A history of operations that ran at once is right
// if they can be put in some order, each between its call and its answer, in which the
// model gives the same answers.

// What the counter of a history admits.
const (
	mostUsed     = 20 // the allocation's limit
	mostInFlight = 8  // the concurrency limit's
)

// maxReservations bounds those of one history.
const maxReservations = 12

// standing is a counter's state. It is compared by ==. Instants are whole seconds.
type standing struct {
	net          int64
	at           int64 // when units were last charged, booked or taken off
	reservations [maxReservations]reservation
}

type reservation struct {
	held    int64 // units, until it expires or is settled
	expires int64
	fate    fate
	spent   int64 // units committed
}

type fate int8

const (
	unmade fate = iota
	open
	committed
	released
)

// expire lets go of what reservations hold that are over at an instant.
func (s *standing) expire(at int64) {
	for i := range s.reservations {
		if r := &s.reservations[i]; r.expires <= at {
			r.held = 0
		}
	}
}

func (s *standing) held() (sum int64) {
	for _, r := range s.reservations {
		sum += r.held
	}
	return sum
}

// step is an operation as it was asked for.
type step struct {
	kind        stepKind
	cost        int64
	reservation int // which of the history's, where one is meant
	now         int64
	ttl         int64 // of a reservation
	plain       bool  // a hit without an id: it is not sent again when its answer is lost
}

type stepKind string

const (
	stepHit     stepKind = "hit"
	stepRefund  stepKind = "refund" // of the present windows
	stepReserve stepKind = "reserve"
	stepCommit  stepKind = "commit"
	stepRelease stepKind = "release"
	stepLook    stepKind = "look"
	stepExpire  stepKind = "expire" // nobody's: what an operation notes before it is done
)

// outcome is what an operation answered. Where unknown there is nothing else: it was done
// at some time after its call, or not at all.
type outcome struct {
	unknown bool
	done    bool
	settled bool  // not done: the reservation was settled otherwise before
	late    bool  // a commit's: the reservation had expired
	units   int64 // a refund's: given back; of a commit that did not fit: what would
	viewed  bool  // the answer said how the counter stands after it, or of a refusal, then:
	used    int64
	flying  int64
}

// rules are what a model is made of; the broken ones differ in one.
type rules struct {
	used, inFlight int64
	refundAll      bool // broken: a refund gives back what was never charged
	keepRest       bool // broken: a commit of less keeps the rest
	eternal        bool // broken: no reservation expires
}

var trueRules = rules{used: mostUsed, inFlight: mostInFlight}

// apply does an operation alone, and says what it answers.
func (r rules) apply(s standing, in step) (standing, outcome) {
	instant := max(in.now, s.at)
	if !r.eternal {
		s.expire(instant)
	}
	out := outcome{done: true}
	room := r.used - s.net - s.held()
	it := &s.reservations[in.reservation]
	switch in.kind {
	case stepHit:
		if out.done = in.cost <= room; out.done {
			s.net, s.at = s.net+in.cost, instant
		}
	case stepRefund:
		if out.units = min(in.cost, s.net); r.refundAll {
			out.units = in.cost
		}
		s.net -= out.units
		if out.units > 0 {
			s.at = instant
		}
	case stepReserve:
		if out.done = in.cost <= room && s.held()+in.cost <= r.inFlight; out.done {
			*it = reservation{held: in.cost, expires: instant + in.ttl, fate: open}
			s.at = instant
		}
	case stepCommit:
		s, out = r.commit(s, in, instant, room)
	case stepRelease:
		if out.done = it.fate != committed; out.done {
			*it = reservation{fate: released}
		}
		out.settled = !out.done
	}
	out.used, out.flying = s.net+s.held(), s.held()
	return s, out
}

// commit books what a reservation was for. More than it holds is charged now, which is all
// when it has expired.
func (r rules) commit(s standing, in step, instant, room int64) (standing, outcome) {
	it := &s.reservations[in.reservation]
	if it.fate != open {
		again := it.fate == committed && it.spent == in.cost
		return s, outcome{done: again, settled: !again}
	}
	out := outcome{done: true, late: it.held == 0}
	if in.cost > it.held+room {
		out.done, out.units = false, it.held+room
		return s, out
	}
	s.at = instant
	s.net += in.cost
	if r.keepRest {
		s.net += max(0, it.held-in.cost)
	}
	*it = reservation{fate: committed, spent: in.cost}
	return s, out
}

// is reports whether what was answered is what the model says.
func (said outcome) is(want outcome) bool {
	if said.viewed && (said.used != want.used || said.flying != want.flying) {
		return false
	}
	if said.viewed && said.late != want.late {
		return false
	}
	return said.done == want.done && said.settled == want.settled && said.units == want.units
}

// model is for the checker: an unknown outcome may have been either.
func (r rules) model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{standing{}} },
		Step: func(state, input, output any) []any {
			before, said := state.(standing), output.(outcome)
			in := input.(step)
			after, want := r.apply(before, in)
			switch {
			case said.unknown:
				return []any{before, after}
			case !said.is(want):
				return nil
			case !want.done || in.kind == stepLook:
				// It may or may not have noted what has expired.
				return []any{before, after}
			}
			return []any{after}
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
	}
	return m.ToModel()
}

// linear reports whether a history is right by some rules.
func (r rules) linear(h []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(r.model(), h, testkit.Patience)
}

// lines is a history for people.
func lines(h []porcupine.Operation) (text string) {
	for _, o := range h {
		text += fmt.Sprintf("\n  client %d, %6d–%6d: %+v → %+v", o.ClientId, o.Call, o.Return, o.Input, o.Output)
	}
	return text
}
