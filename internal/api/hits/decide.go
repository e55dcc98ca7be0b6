package hits

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/plans/catalog"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// hit is a checked client.HitRequest.
type hit struct {
	respond.Subject
	attributes map[string]string
	dryRun     bool
	overrun    bool
	kind       string    // kind of operation, a part of the id
	id         string    // the client's id, or empty
	batch      *model.ID // id of the hit's batch, or nil
}

// chargesNothing reports whether the hit never charges anything, because it is a dry run or has a cost of 0.
func (h *hit) chargesNothing() bool { return h.dryRun || h.Cost == 0 }

// operation returns the hit's id for the engine. A hit that charges nothing has no id, because it may be
// repeated without harm.
func (h *hit) operation() model.ID {
	if h.id == "" || h.chargesNothing() {
		return model.ID{}
	}
	id := model.NewID(h.kind, h.id, h.payload()...)
	id.Batch = h.batch
	return id
}

// payload returns the content of the request under the hit's id.
func (h *hit) payload() []string {
	parts := []string{h.Meter, strconv.FormatInt(h.Cost, 10)}
	if h.overrun {
		parts = append(parts, "overrun")
	}
	return request.PayloadOf(h.attributes, parts...)
}

// of returns the hit in the engine's form.
func (h *hit) of(t *model.Target) model.Hit {
	return model.Hit{Target: t, Cost: h.Cost, Look: h.chargesNothing(), ID: h.operation(), Overrun: h.overrun}
}

// decide resolves a hit's limits and lets the engine decide the hit. In an outage it admits the hit if the
// limits allow that. An overrun is not admitted but charged, so it fails in an outage. All errors are in the
// problem table.
func (s *Room) decide(ctx context.Context, from quota.Sender, h *hit) (d model.Decision, err error) {
	var t *model.Target
	err = catalog.WhileStale(func(atLeast int64) (err error) {
		if t, err = s.target(ctx, h, atLeast); err == nil {
			d, err = s.judge(ctx, from, t, h)
		}
		return err
	})
	if err = serve.OutOfTime(ctx, err); err != nil && t != nil && !h.overrun {
		return s.degraded(ctx, h, t, err)
	}
	return d, err
}

// target returns the target of a hit as of change atLeast or later. The target includes the counters of the
// hit's attribute values. It is nil if there is an error.
func (s *Room) target(ctx context.Context, h *hit, atLeast int64) (*model.Target, error) {
	t, err := s.Catalog.Resolve(ctx, h.Customer, h.Meter, atLeast)
	if h.id != "" && !h.chargesNothing() && errors.Is(err, plans.ErrNotInPlan) {
		// The plan may have lost the meter. The decision of a hit that was admitted under this id earlier is
		// still returned.
		t, err = s.Catalog.ResolveKnown(ctx, h.Customer, h.Meter, atLeast)
	}
	if err != nil {
		return nil, err
	}
	return t.For(h.attributes), nil
}

// judge lets the engine decide a hit, or only check a hit that charges nothing.
func (s *Room) judge(ctx context.Context, from quota.Sender, t *model.Target, h *hit) (model.Decision, error) {
	if h.id == "" && !h.overrun && !h.chargesNothing() {
		d, err := from.Decide(ctx, t, h.Cost)
		return d, s.barred(ctx, err)
	}
	r := from.DecideAll(ctx, []model.Hit{h.of(t)})[0]
	return r.Decision, s.barred(ctx, r.Err)
}

// barred returns the error for a decision of the engine. A node that may have missed changes asks the database
// before it reports a customer as suspended or ended. If there were changes, barred returns a *model.StaleError.
// If the database is out of reach, the node reports the last known state.
func (s *Room) barred(ctx context.Context, err error) error {
	if err == nil || !errors.Is(err, plans.ErrSuspended) && !errors.Is(err, plans.ErrEnded) || s.Catalog.Fresh() {
		return err
	}
	before := s.Catalog.Applied()
	if s.Catalog.Renew(ctx) != nil || s.Catalog.Applied() == before {
		return err
	}
	return &model.StaleError{Change: s.Catalog.Applied()}
}

// degraded calls withoutDatabase with the limits in force at the hit's instant. Since the target was resolved,
// another plan may apply or an override may have ended.
func (s *Room) degraded(ctx context.Context, h *hit, t *model.Target, err error) (model.Decision, error) {
	d, why := s.withoutDatabase(t, h.Cost, h.chargesNothing(), err)
	if _, over := errors.AsType[*model.StaleError](why); !over {
		return d, why
	}
	if t, again := s.target(ctx, h, 0); again == nil {
		return s.withoutDatabase(t, h.Cost, h.chargesNothing(), err)
	}
	return model.Decision{}, err
}

// withoutDatabase decides a hit without a charge and marks the decision as degraded, if the database is out of
// reach and all limits allow the hit in an outage. It uses the limits as far as this node knows them. All other
// errors, also of a late database, are returned. A *model.StaleError reports that the target's limits are no
// longer in force.
func (s *Room) withoutDatabase(t *model.Target, cost int64, look bool, err error) (model.Decision, error) {
	if !errors.Is(err, session.ErrUnavailable) || t.DenyOutage() || t.Lost || t.Level {
		return model.Decision{}, err
	}
	at, ok := s.Estimate()
	if !ok {
		// Nothing is charged at this instant, so the node's own clock is accurate enough.
		at = s.Wall().UnixMicro()
	}
	if why := cmp.Or(t.Over(t.Instant(at)), t.Barred(t.Instant(at))); why != nil {
		return model.Decision{}, why
	}
	return s.Engine.WithoutDatabase(t, at, cost, look), nil
}

// decideAll decides the hits of a batch. Hits of one counter are decided in their order. Hits with an error are
// skipped.
func (s *Room) decideAll(ctx context.Context, from quota.Sender, hits []hit, results []queue.Result) {
	pending := make([]int, 0, len(hits))
	for i := range hits {
		if results[i].Err == nil {
			pending = append(pending, i)
		}
	}
	// This error can be ignored, because a hit that stays stale has the error in its result.
	_ = catalog.WhileStale(func(atLeast int64) error {
		var stale error
		pending, stale = s.decideOnce(ctx, from, hits, pending, atLeast, results)
		return stale
	})
}

// decideOnce sends the pending hits to the engine in one call. again lists the hits whose limits have changed
// meanwhile and that must be sent again. stale is the error with the newest of these changes. All lists share
// the array of pending, and each element is read before it is overwritten.
func (s *Room) decideOnce(ctx context.Context, from quota.Sender, hits []hit, pending []int, atLeast int64, results []queue.Result) (again []int, stale error) {
	batch, sent := make([]model.Hit, 0, len(pending)), pending[:0]
	for _, i := range pending {
		t, err := s.target(ctx, &hits[i], atLeast)
		if err != nil {
			results[i].Err = serve.OutOfTime(ctx, err)
			continue
		}
		batch, sent = append(batch, hits[i].of(t)), append(sent, i)
	}
	newest := int64(-1)
	again = sent[:0]
	for n, result := range from.DecideAll(ctx, batch) {
		i := sent[n]
		result.Err = s.barred(ctx, result.Err)
		results[i] = result
		if late, ok := errors.AsType[*model.StaleError](result.Err); ok {
			again = append(again, i)
			if late.Change > newest {
				newest, stale = late.Change, late
			}
		} else if result.Err != nil && hits[i].overrun {
			results[i].Err = serve.OutOfTime(ctx, result.Err)
		} else if result.Err != nil {
			results[i].Decision, results[i].Err = s.degraded(ctx, &hits[i], batch[n].Target, serve.OutOfTime(ctx, result.Err))
		}
	}
	return again, stale
}
