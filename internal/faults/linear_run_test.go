package faults

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"quotad/internal/quota"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
)

// answerTries is how often an operation is sent.
const answerTries = 8

// trial is one history while it happens.
type trial struct {
	*bench
	targets map[int64]*model.Target // by the instant

	mu       sync.Mutex
	history  []porcupine.Operation
	reserved int                          // reservations asked for
	drawn    int                          // operations
	turn     int                          // from which operation on it is much later
	known    map[int]locked.ReservationID // those whose id was answered
}

// try has three clients do a few operations at once on one counter, and then looks at it.
func (b *bench) try(customer int64) []porcupine.Operation {
	random := rand.New(rand.NewPCG(b.seed, uint64(customer)))
	operations := 5 + random.IntN(8)
	tr := &trial{bench: b, known: make(map[int]locked.ReservationID), turn: 3 + random.IntN(operations)}
	tr.targets = map[int64]*model.Target{0: b.target(customer, 0), muchLater: b.target(customer, muchLater)}
	var clients sync.WaitGroup
	each := [3]int{}
	for range operations {
		each[random.IntN(len(each))]++
	}
	for c, n := range each {
		random := rand.New(rand.NewPCG(b.seed+uint64(customer), uint64(c)))
		clients.Go(func() {
			for i := range n {
				tr.do(c, i, tr.draw(random), random)
			}
		})
	}
	clients.Wait()
	tr.look(len(each))
	return tr.history
}

// draw chooses an operation.
func (tr *trial) draw(random *rand.Rand) step {
	s := step{kind: stepHit, cost: 1 + random.Int64N(8)}
	if !tr.ids {
		s.cost = 1 + random.Int64N(2) // most fit
		return s
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.drawn++; tr.drawn >= tr.turn {
		s.now = muchLater
	}
	open := make([]int, 0, len(tr.known))
	for r := range tr.known {
		open = append(open, r)
	}
	slices.Sort(open)
	switch n := random.IntN(100); {
	case n < 30:
		s.plain = n < 12
	case n < 45:
		s.kind = stepRefund
	case n < 70 || len(open) == 0:
		s.kind, s.reservation = stepReserve, tr.reserved
		s.ttl = []int64{shortTTL, longTTL}[random.IntN(2)]
		tr.reserved++
	default:
		s.kind, s.reservation = stepCommit, open[random.IntN(len(open))]
		if n >= 90 {
			s.kind = stepRelease
		}
		if random.IntN(2) == 0 {
			s.cost = 1 + random.Int64N(12) // often more than was reserved
		}
	}
	return s
}

// do sends an operation until it is answered or given up, and writes it down.
func (tr *trial) do(client, n int, s step, random *rand.Rand) {
	id := fmt.Sprintf("%d-%d", client, n)
	called := tr.ticks.Add(1)
	var out outcome
	doubt := false
	for try := 1; ; try++ {
		var err error
		out, err = tr.send(tr.engines[random.IntN(len(tr.engines))], s, id)
		lost := errors.Is(err, session.ErrOutcomeUnknown)
		doubt = doubt || lost
		if lost {
			tr.lost.Add(1)
		}
		switch {
		case err == nil:
			// After a lost answer a refusal is not definitive: what was lost may be done still.
			if tr.ids && doubt && !out.done && !out.settled {
				out = outcome{unknown: true}
			}
		case !lost && !errors.Is(err, session.ErrUnavailable) && !errors.Is(err, session.ErrBusy) && !errors.Is(err, locked.ErrUnderWay):
			tr.t.Errorf("%+v: %v", s, err)
			return
		case try < answerTries && (!lost || !s.plain):
			pause(random, 20*time.Millisecond) // the session is made again
			continue
		case !doubt: // nothing was done: it is no part of the history
			tr.noteExpiry(client, s, called, math.MaxInt64)
			return
		default:
			out = outcome{unknown: true}
		}
		break
	}
	returned := tr.ticks.Add(1)
	if out.unknown {
		tr.unknown.Add(1)
		returned = math.MaxInt64
	}
	tr.noteExpiry(client, s, called, returned)
	tr.note(porcupine.Operation{ClientId: client, Input: s, Call: called, Output: out, Return: returned})
}

// noteExpiry: an operation of the second instant may have taken off what is over by then
// before it had to be tried again, so that those of the first instant find it gone.
func (tr *trial) noteExpiry(client int, s step, called, returned int64) {
	if s.now > 0 {
		s = step{kind: stepExpire, now: s.now}
		tr.note(porcupine.Operation{ClientId: client, Input: s, Call: called, Output: outcome{unknown: true}, Return: returned})
	}
}

func (tr *trial) note(o porcupine.Operation) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.history = append(tr.history, o)
}

// send does an operation once, on one engine.
func (tr *trial) send(e *quota.Engine, s step, id string) (out outcome, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	t := tr.targets[s.now]
	switch s.kind {
	case stepHit:
		h := model.Hit{Target: t, Cost: s.cost}
		if tr.ids && !s.plain {
			h.ID = model.NewID("hit", id)
		}
		r := e.DecideAll(ctx, []model.Hit{h})[0]
		out = viewed(&r.Decision, r.Err, r.Decision.Allowed)
		return out, r.Err
	case stepRefund:
		r, err := e.Refund(ctx, locked.Refund{Target: t, Cost: s.cost, ID: model.NewID("refund", id)})
		out = viewed(&r.Decision, err, true)
		out.units = r.Units
		return out, err
	case stepReserve:
		r, err := e.Reserve(ctx, t, s.cost, s.ttl*1e6, model.NewID("reservation", id))
		if err == nil && r.Allowed {
			tr.mu.Lock()
			tr.known[s.reservation] = r.ID
			tr.mu.Unlock()
		}
		return viewed(&r.Decision, err, r.Allowed), err
	case stepCommit, stepRelease:
		return tr.settle(ctx, e, s)
	}
	panic("no such step: " + s.kind)
}

// settle commits or releases a reservation.
func (tr *trial) settle(ctx context.Context, e *quota.Engine, s step) (out outcome, err error) {
	tr.mu.Lock()
	r := tr.known[s.reservation]
	tr.mu.Unlock()
	var done locked.Settled
	if s.kind == stepCommit {
		done, err = e.Commit(ctx, tr.targets[s.now], r, s.cost)
	} else {
		done, err = e.Release(ctx, tr.targets[s.now], r)
	}
	if errors.Is(err, locked.ErrSettled) {
		return outcome{settled: true}, nil
	}
	if full, ok := errors.AsType[*locked.NoRoomError](err); ok {
		out = viewed(&full.Decision, nil, false)
		out.units, out.late = full.Most, full.Late
		return out, nil
	}
	out = viewed(&done.Decision, err, true)
	out.late = done.Late && s.kind == stepCommit
	out.viewed = out.viewed && !done.Replayed // what it says is as of then, whoever asked then
	return out, err
}

// viewed is the outcome of a decision, with what it says of the counter.
func viewed(d *model.Decision, err error, done bool) outcome {
	if err != nil {
		return outcome{}
	}
	out := outcome{done: done, viewed: true}
	for i := range d.NumViews() {
		switch v := d.View(i); {
		case v.Limit.Name == "used":
			out.used, out.flying = v.Used, v.Reserved
		case v.Used != v.Reserved:
			out.flying = -1 // what is in flight is what is reserved
		}
	}
	return out
}

// look reads the counter when all clients have ended.
func (tr *trial) look(client int) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	called := tr.ticks.Add(1)
	now := int64(0)
	if tr.drawn >= tr.turn {
		now = muchLater
	}
	d, err := tr.engines[0].Look(ctx, tr.targets[now].ForReservations(), 0)
	if err != nil {
		tr.t.Errorf("a look: %v", err)
		return
	}
	tr.note(porcupine.Operation{ClientId: client, Input: step{kind: stepLook, now: now}, Call: called, Output: viewed(&d, nil, true), Return: tr.ticks.Add(1)})
}
