package api

import (
	"context"
	"errors"

	"quotad/internal/plans"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// maxResolves bounds how often an operation is judged again because its limits changed
// meanwhile, or an override ended. Each further time needs another one within milliseconds.
const maxResolves = 4

// whileStale calls do with atLeast 0, for any change that this node has seen. While do answers
// that its limits were stale, whileStale calls it again with the newer change.
func whileStale(do func(atLeast int64) error) error {
	atLeast := int64(0)
	for try := 1; ; try++ {
		err := do(atLeast)
		stale, ok := errors.AsType[*model.StaleError](err)
		if !ok || try == maxResolves {
			return err
		}
		atLeast = stale.Change
	}
}

// decide resolves a hit's limits and has the engine decide the hit. In an outage it admits the
// hit where the limits say so. An overrun asks for no admission, but to be charged: it fails in an
// outage. Its errors are those of the problem table.
func (s *Server) decide(ctx context.Context, from quota.Sender, h *hit) (d model.Decision, err error) {
	var t *model.Target
	err = whileStale(func(atLeast int64) (err error) {
		if t, err = s.target(ctx, h, atLeast); err == nil {
			d, err = s.judge(ctx, from, t, h)
		}
		return err
	})
	if err = outOfTime(ctx, err); err != nil && t != nil && !h.overrun {
		return s.withoutDatabase(t, h.Cost, err)
	}
	return d, err
}

// target is what a hit is judged by, as of change atLeast or later. It includes the counters
// of the values of the hit's attributes. It is nil with an error.
func (s *Server) target(ctx context.Context, h *hit, atLeast int64) (*model.Target, error) {
	t, err := s.catalog.Resolve(ctx, h.Customer, h.Meter, atLeast)
	if h.id != "" && !h.look() && errors.Is(err, plans.ErrNotInPlan) {
		// The plan may have lost the meter. A hit that was admitted under this id before is
		// still answered again.
		t, err = s.catalog.ResolveKnown(ctx, h.Customer, h.Meter, atLeast)
	}
	if err != nil {
		return nil, err
	}
	return t.For(h.attributes), nil
}

// judge has the engine decide a hit, or look where the hit charges nothing.
func (s *Server) judge(ctx context.Context, from quota.Sender, t *model.Target, h *hit) (model.Decision, error) {
	if h.look() {
		return s.engine.Look(ctx, t, h.Cost)
	}
	if h.id == "" && !h.overrun {
		return from.Decide(ctx, t, h.Cost)
	}
	r := from.DecideAll(ctx, []model.Hit{h.of(t)})[0]
	return r.Decision, r.Err
}

// of is the hit in the engine's form.
func (h *hit) of(t *model.Target) model.Hit {
	return model.Hit{Target: t, Cost: h.Cost, Look: h.look(), ID: h.operation(), Overrun: h.overrun}
}

// withoutDatabase lets a hit in, uncharged and saying so, when the database is out of
// reach and no limit wants it refused then. Any other error stays; so does one that is late.
func (s *Server) withoutDatabase(t *model.Target, cost int64, err error) (model.Decision, error) {
	if !errors.Is(err, session.ErrUnavailable) || t.DenyOutage() || t.Lost {
		return model.Decision{}, err
	}
	at, ok := s.options.Estimate()
	if !ok {
		// Nothing is charged at this instant. So the node's own clock is good enough.
		at = s.options.Wall().UnixMicro()
	}
	at = t.Instant(at)
	return model.Decision{Target: t, Allowed: true, Cost: cost, At: at, Degraded: true}, nil
}

// decideAll decides the hits of a batch. Hits of one counter are decided in their order. Hits
// that have an error already are left alone.
func (s *Server) decideAll(ctx context.Context, from quota.Sender, hits []hit, results []queue.Result) {
	pending := make([]int, 0, len(hits))
	for i := range hits {
		if results[i].Err == nil {
			pending = append(pending, i)
		}
	}
	// This error needs no look: a hit that stays stale has it in its result.
	_ = whileStale(func(atLeast int64) error {
		var stale error
		pending, stale = s.decideOnce(ctx, from, hits, pending, atLeast, results)
		return stale
	})
}

// decideOnce sends the pending hits to the engine in one call. again are the hits whose limits
// have changed meanwhile. stale is the error that names the newest of these changes.
func (s *Server) decideOnce(ctx context.Context, from quota.Sender, hits []hit, pending []int, atLeast int64, results []queue.Result) (again []int, stale error) {
	batch, sent := make([]model.Hit, 0, len(pending)), pending[:0]
	for _, i := range pending {
		t, err := s.target(ctx, &hits[i], atLeast)
		if err != nil {
			results[i].Err = outOfTime(ctx, err)
			continue
		}
		batch, sent = append(batch, hits[i].of(t)), append(sent, i)
	}
	newest := int64(-1)
	again = sent[:0]
	for n, result := range from.DecideAll(ctx, batch) {
		i := sent[n]
		results[i] = result
		if late, ok := errors.AsType[*model.StaleError](result.Err); ok {
			again = append(again, i)
			if late.Change > newest {
				newest, stale = late.Change, late
			}
		} else if result.Err != nil && hits[i].overrun {
			results[i].Err = outOfTime(ctx, result.Err)
		} else if result.Err != nil {
			results[i].Decision, results[i].Err = s.withoutDatabase(batch[n].Target, batch[n].Cost, outOfTime(ctx, result.Err))
		}
	}
	return again, stale
}
