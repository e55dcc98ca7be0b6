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

// A hit is a checked client.HitRequest.
type hit struct {
	respond.Subject
	attributes map[string]string
	dryRun     bool
	overrun    bool
	kind       string    // of operation, of the id
	id         string    // the client's; empty: none
	batch      *model.ID // of the batch that it came in, if that has one
}

// chargesNothing reports whether the hit charges nothing, whatever comes of it: a dry run, or a cost of 0.
func (h *hit) chargesNothing() bool { return h.dryRun || h.Cost == 0 }

// operation is the hit's id for the engine. A hit that only looks has no id, for looking again
// does no harm.
func (h *hit) operation() model.ID {
	if h.id == "" || h.chargesNothing() {
		return model.ID{}
	}
	id := model.NewID(h.kind, h.id, h.payload()...)
	id.Batch = h.batch
	return id
}

// payload is what is asked for under the hit's id.
func (h *hit) payload() []string {
	parts := []string{h.Meter, strconv.FormatInt(h.Cost, 10)}
	if h.overrun {
		parts = append(parts, "overrun")
	}
	return request.PayloadOf(h.attributes, parts...)
}

// of is the hit in the engine's form.
func (h *hit) of(t *model.Target) model.Hit {
	return model.Hit{Target: t, Cost: h.Cost, Look: h.chargesNothing(), ID: h.operation(), Overrun: h.overrun}
}

// decide resolves a hit's limits and has the engine decide the hit. In an outage it admits the
// hit where the limits say so. An overrun asks for no admission, but to be charged: it fails in an
// outage. Its errors are those of the problem table.
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

// target is what a hit is judged by, as of change atLeast or later. It includes the counters
// of the values of the hit's attributes. It is nil with an error.
func (s *Room) target(ctx context.Context, h *hit, atLeast int64) (*model.Target, error) {
	t, err := s.Catalog.Resolve(ctx, h.Customer, h.Meter, atLeast)
	if h.id != "" && !h.chargesNothing() && errors.Is(err, plans.ErrNotInPlan) {
		// The plan may have lost the meter. A hit that was admitted under this id before is
		// still answered again.
		t, err = s.Catalog.ResolveKnown(ctx, h.Customer, h.Meter, atLeast)
	}
	if err != nil {
		return nil, err
	}
	return t.For(h.attributes), nil
}

// judge has the engine decide a hit, or look where the hit charges nothing.
func (s *Room) judge(ctx context.Context, from quota.Sender, t *model.Target, h *hit) (model.Decision, error) {
	if h.id == "" && !h.overrun && !h.chargesNothing() {
		d, err := from.Decide(ctx, t, h.Cost)
		return d, s.barred(ctx, err)
	}
	r := from.DecideAll(ctx, []model.Hit{h.of(t)})[0]
	return r.Decision, s.barred(ctx, r.Err)
}

// barred is the error of what the engine judged. A node that may have missed changes asks the database
// before it says that a customer is suspended or has ended. If there were changes, the error is a
// *model.StaleError. Out of reach of the database it says what it knew last.
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

// degraded is withoutDatabase by what counts at the hit's instant: another plan may, or no override any
// more, since its target was resolved.
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

// withoutDatabase decides a hit, uncharged and saying so, when the database is out of reach and no
// limit wants it refused then: by its limits, as far as this node knows. Any other error stays; so
// does one that is late. A *model.StaleError: the target's limits count no more.
func (s *Room) withoutDatabase(t *model.Target, cost int64, look bool, err error) (model.Decision, error) {
	if !errors.Is(err, session.ErrUnavailable) || t.DenyOutage() || t.Lost || t.Level {
		return model.Decision{}, err
	}
	at, ok := s.Estimate()
	if !ok {
		// Nothing is charged at this instant. So the node's own clock is good enough.
		at = s.Wall().UnixMicro()
	}
	if why := cmp.Or(t.Over(t.Instant(at)), t.Barred(t.Instant(at))); why != nil {
		return model.Decision{}, why
	}
	return s.Engine.WithoutDatabase(t, at, cost, look), nil
}

// decideAll decides the hits of a batch. Hits of one counter are decided in their order. Hits
// that have an error already are left alone.
func (s *Room) decideAll(ctx context.Context, from quota.Sender, hits []hit, results []queue.Result) {
	pending := make([]int, 0, len(hits))
	for i := range hits {
		if results[i].Err == nil {
			pending = append(pending, i)
		}
	}
	// This error needs no look: a hit that stays stale has it in its result.
	_ = catalog.WhileStale(func(atLeast int64) error {
		var stale error
		pending, stale = s.decideOnce(ctx, from, hits, pending, atLeast, results)
		return stale
	})
}

// decideOnce sends the pending hits to the engine in one call. again are the hits whose limits
// have changed meanwhile: they are to be sent again. stale is the error that names the newest of these
// changes. All lists share the array of pending: each is written only where it was read before.
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
