package api

import (
	"context"
	"errors"

	"quotad/internal/quota"
)

// maxResolves bounds how often one hit is judged anew because its limits changed
// meanwhile. Each further one needs a change within the milliseconds of the last.
const maxResolves = 4

// decide is the whole way of a hit from its limits to its decision, with what an outage
// lets in. Its errors are those of the problem table.
func (s *Server) decide(ctx context.Context, h *hit) (quota.Decision, error) {
	atLeast := int64(0)
	for try := 1; ; try++ {
		t, err := s.catalog.Resolve(ctx, h.customer, h.meter, atLeast)
		if err != nil {
			return quota.Decision{}, err
		}
		d, err := s.judge(ctx, t, h)
		if err == nil {
			return d, nil
		}
		stale, isStale := errors.AsType[*quota.StaleError](err)
		if !isStale || try == maxResolves {
			return s.withoutDatabase(t, h, err)
		}
		atLeast = stale.Change
	}
}

// judge asks the engine.
func (s *Server) judge(ctx context.Context, t *quota.Target, h *hit) (quota.Decision, error) {
	if h.look() {
		return s.engine.Look(ctx, t, h.cost)
	}
	return s.engine.Decide(ctx, t, h.cost)
}

// withoutDatabase lets a hit in, uncharged and saying so, when the database is out of
// reach and no limit wants it refused then. Any other error stays.
func (s *Server) withoutDatabase(t *quota.Target, h *hit, err error) (quota.Decision, error) {
	if !errors.Is(err, quota.ErrUnavailable) || t.DenyOutage() {
		return quota.Decision{}, err
	}
	at, ok := s.options.Estimate()
	if !ok {
		// Nothing is charged by this instant: the node's own clock says well enough
		// when it was.
		at = s.options.Wall().UnixMicro()
	}
	return quota.Decision{Target: t, Allowed: true, Cost: h.cost, At: at, Degraded: true}, nil
}

// An outcome is what came of one hit of a batch.
type outcome struct {
	decision quota.Decision
	err      error
}

// decideAll decides a batch, hits of one counter in the order in which they stand. Those
// with an error already are left alone.
func (s *Server) decideAll(ctx context.Context, hits []hit, outcomes []outcome) {
	targets := make([]*quota.Target, len(hits))
	atLeast := make([]int64, len(hits))
	pending := make([]int, 0, len(hits))
	for i := range hits {
		if outcomes[i].err == nil {
			pending = append(pending, i)
		}
	}
	for try := 1; len(pending) > 0; try++ {
		pending = s.resolveAll(ctx, hits, pending, atLeast, targets, outcomes)
		pending = s.judgeAll(ctx, hits, pending, atLeast, targets, outcomes, try == maxResolves)
	}
}

// resolveAll finds the targets of the pending hits and returns those that have one.
func (s *Server) resolveAll(ctx context.Context, hits []hit, pending []int, atLeast []int64, targets []*quota.Target, outcomes []outcome) []int {
	found := pending[:0]
	for _, i := range pending {
		t, err := s.catalog.Resolve(ctx, hits[i].customer, hits[i].meter, atLeast[i])
		if err != nil {
			outcomes[i].err = err
			continue
		}
		targets[i] = t
		found = append(found, i)
	}
	return found
}

// judgeAll sends the pending hits to the engine at once and returns those whose limits
// have changed meanwhile, unless this was the last try.
func (s *Server) judgeAll(ctx context.Context, hits []hit, pending []int, atLeast []int64, targets []*quota.Target, outcomes []outcome, last bool) []int {
	batch := make([]quota.Hit, len(pending))
	for n, i := range pending {
		batch[n] = quota.Hit{Target: targets[i], Cost: hits[i].cost, Look: hits[i].look()}
	}
	again := pending[:0]
	for n, result := range s.engine.DecideAll(ctx, batch) {
		i := pending[n]
		stale, isStale := errors.AsType[*quota.StaleError](result.Err)
		switch {
		case isStale && !last:
			atLeast[i] = stale.Change
			again = append(again, i)
		case result.Err != nil:
			outcomes[i].decision, outcomes[i].err = s.withoutDatabase(targets[i], &hits[i], result.Err)
		default:
			outcomes[i].decision = result.Decision
		}
	}
	return again
}
