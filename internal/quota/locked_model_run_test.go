package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
)

// modelRun does one random operation after the other on an engine and on the model.
type modelRun struct {
	ctx  context.Context
	e    *Engine
	m    *naive
	r    *rand.Rand
	base *model.Target
	now  int64
	name string
	seen map[string]int
	open []opened
}

type opened struct {
	id    locked.ReservationID
	event *event
}

func (x *modelRun) step() error {
	kind := x.r.IntN(7)
	switch {
	case kind < 2:
		return x.hit()
	case kind < 4:
		return x.reserve()
	case kind < 6 && len(x.open) > 0:
		return x.settle()
	case kind == 6 && len(x.m.events) > 0:
		return x.refund()
	}
	return x.stand()
}

func (x *modelRun) hit() error {
	cost, want := 1+x.r.Int64N(6), false
	id := model.ID{}
	if x.r.IntN(2) == 0 {
		id = model.NewID("hit", x.name)
	}
	want = x.m.fits(x.now, cost, false)
	h := model.Hit{Target: x.base, Cost: cost, ID: id}
	if h.Overrun = x.r.IntN(5) == 0; h.Overrun {
		if !want {
			x.seen["overrun past a limit"]++
		}
		want = true
	}
	result := x.e.DecideAll(x.ctx, []model.Hit{h})[0]
	d, err := result.Decision, result.Err
	if err != nil || d.Allowed != want {
		return fmt.Errorf("%w: a hit of %d: %s, %w", errUnlikeModel, cost, d.String(), err)
	}
	x.seen[fmt.Sprint("hit ", want)]++
	if want {
		charged := &event{at: x.now, cost: cost}
		if id.Given() {
			charged.id = x.name
		}
		x.m.events = append(x.m.events, charged)
		x.m.usage += cost
	}
	return x.m.says(&d)
}

func (x *modelRun) reserve() error {
	cost, ttl := 1+x.r.Int64N(6), 1e6+x.r.Int64N(30e6)
	want := x.m.fits(x.now, cost, true)
	d, err := x.e.Reserve(x.ctx, x.base, cost, ttl, model.NewID("reservation", x.name))
	if err != nil || d.Allowed != want {
		return fmt.Errorf("%w: a reservation of %d: %s, %w", errUnlikeModel, cost, d.String(), err)
	}
	x.seen[fmt.Sprint("reserve ", want)]++
	if want {
		held := &event{at: x.now, cost: cost, expires: x.now + ttl, flying: true}
		x.m.events = append(x.m.events, held)
		x.open = append(x.open, opened{d.ID, held})
	}
	return x.m.says(&d.Decision)
}

// settle commits or releases a reservation.
func (x *modelRun) settle() error {
	i := x.r.IntN(len(x.open))
	o := x.open[i]
	x.open = append(x.open[:i], x.open[i+1:]...)
	late := o.event.expires <= x.now
	if x.r.IntN(3) == 0 {
		x.seen["release"]++
		if !late {
			o.event.back(x.now, o.event.cost)
			o.event.flying = false
		}
		s, err := x.e.Release(x.ctx, x.base, o.id)
		if err != nil {
			return err
		}
		return x.m.says(&s.Decision)
	}
	cost := x.r.Int64N(o.event.cost + 3)
	more := cost - o.event.cost
	if late {
		more = cost
	}
	fits := x.m.fits(x.now, max(0, more), false)
	do := x.e.Commit
	if x.r.IntN(4) == 0 {
		if do = x.e.CommitOverrun; !fits {
			x.seen["commit past a limit"]++
		}
		fits = true
	}
	s, err := do(x.ctx, x.base, o.id, cost)
	var full *locked.NoRoomError
	switch {
	case errors.As(err, &full):
		x.seen["commit full"]++
		most := full.Most
		if !late {
			most -= o.event.cost
		}
		if fits || full.Late != late || !x.m.fits(x.now, most, false) || x.m.fits(x.now, most+1, false) {
			return fmt.Errorf("%w: %w", errUnlikeModel, err)
		}
		x.open = append(x.open, o)
		return x.stand()
	case err != nil || !fits || s.Late != late:
		return fmt.Errorf("%w: a commit of %d: %s, %w", errUnlikeModel, cost, s.String(), err)
	case late:
		x.seen["commit late"]++
		x.m.events = append(x.m.events, &event{at: x.now, cost: cost})
	case more <= 0:
		x.seen["commit less"]++
		o.event.back(x.now, -more)
		o.event.flying = false
	default:
		x.seen["commit more"]++
		o.event.flying = false
		x.m.events = append(x.m.events, &event{at: x.now, cost: more})
	}
	x.m.usage += cost
	return x.m.says(&s.Decision)
}

// back gives units of an event back.
func (e *event) back(at, cost int64) {
	e.cost -= cost
	e.give = append(e.give, struct{ at, cost int64 }{at, cost})
}

// refund gives back of a hit.
func (x *modelRun) refund() error {
	hit := x.m.events[x.r.IntN(len(x.m.events))]
	if hit.id == "" {
		return x.stand()
	}
	x.seen["refund"]++
	cost := 1 + x.r.Int64N(6)
	units := min(cost, hit.cost)
	d, err := x.e.Refund(x.ctx, locked.Refund{Target: x.base, Cost: cost, Hit: model.NewID("hit", hit.id), ID: model.NewID("refund", x.name)})
	if err != nil || d.Units != units {
		return fmt.Errorf("%w: %d of %d given back, %w", errUnlikeModel, d.Units, units, err)
	}
	hit.back(x.now, units)
	x.m.usage -= units
	return x.m.says(&d.Decision)
}

func (x *modelRun) stand() error {
	s, err := x.e.Standings(x.ctx, []*model.Target{x.base.ForReservations()})
	if err != nil {
		return err
	}
	if s[0].PeriodUsed != x.m.usage {
		return fmt.Errorf("%w: %d in the period, want %d", errUnlikeModel, s[0].PeriodUsed, x.m.usage)
	}
	return x.m.says(&s[0].Decision)
}
