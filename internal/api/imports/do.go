package imports

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/plans/catalog"
	"quotad/internal/quota"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
)

// do sends the valid lines of a group to the engine, in one of the places for groups. Lines of one customer and
// meter are done in their order. An import occupies no place while it waits for its client.
func (im *importing) do(items []item) {
	var right []int
	for i := range items {
		if items[i].err == nil {
			right = append(right, i)
		}
	}
	if len(right) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(im.r.Context(), im.server.Wait)
	defer cancel()
	if err := im.server.Groups.Take(ctx, im.key); err != nil {
		for _, i := range right {
			items[i].err = err
		}
		im.outages++
		return
	}
	defer im.server.Groups.GiveBack()
	pending := slices.Clone(right)
	if err := im.auditBegin(ctx); err != nil {
		for _, i := range right {
			items[i].err = err
		}
	} else {
		// This error can be ignored, because a line that stays stale has the error as its own.
		_ = catalog.WhileStale(func(atLeast int64) error {
			var stale error
			pending, stale = im.server.importOnce(ctx, im.from, items, pending, atLeast)
			return stale
		})
	}
	if slices.ContainsFunc(right, func(i int) bool { return !outage(items[i].err) }) {
		im.outages = 0
	} else {
		im.outages++
	}
}

// outage reports whether an error is a 503, which passes without any action of the client.
func outage(err error) bool {
	return err != nil && problem.Of(err).Kind.Status == http.StatusServiceUnavailable
}

// importOnce sends the pending lines to the engine in one call, which waits no longer than a hit does. again
// lists the lines whose limits have changed meanwhile. stale is the error with the newest of these changes.
func (s *Room) importOnce(ctx context.Context, from quota.Sender, items []item, pending []int, atLeast int64) (again []int, stale error) {
	imports, sent := s.importsOf(ctx, items, pending, atLeast)
	newest := int64(-1)
	again = sent[:0]
	ctx, cancel := context.WithTimeout(ctx, s.DecideWithin)
	defer cancel()
	for n, done := range from.ImportAll(ctx, imports) {
		it := &items[sent[n]]
		it.err, it.replayed = done.Err, done.Replayed
		if late, ok := errors.AsType[*model.StaleError](done.Err); ok {
			again = append(again, sent[n])
			if late.Change > newest {
				newest, stale = late.Change, late
			}
		}
	}
	return again, stale
}

// importsOf returns the pending lines in the engine's form, and their indices. All lines of one customer and
// meter share a target, so they are stale either all together or not at all. After an outage the remaining lines
// are not tried.
func (s *Room) importsOf(ctx context.Context, items []item, pending []int, atLeast int64) (imports []locked.Import, sent []int) {
	type found struct {
		target *model.Target
		err    error
	}
	known := map[serve.Names]found{}
	sent = pending[:0]
	for n, i := range pending {
		it := &items[i]
		key := serve.Names{Customer: it.Customer, Meter: it.Meter}
		f, there := known[key]
		if !there {
			f.target, f.err = s.importTarget(ctx, it, atLeast)
			known[key] = f
		}
		if f.err == nil && it.Limit != nil {
			f.err = s.mayReturn(ctx, it.Meter)
		}
		if outage(f.err) {
			for _, i := range pending[n:] {
				items[i].err = f.err
			}
			break
		}
		if it.err = f.err; it.err == nil {
			imports, sent = append(imports, it.operation(f.target)), append(sent, i)
		}
	}
	return imports, sent
}

// importTarget returns the target of a line as of change atLeast or later. An import creates no customer, and
// the customer's plan must have the meter.
func (s *Room) importTarget(ctx context.Context, it *item, atLeast int64) (*model.Target, error) {
	ctx, cancel := context.WithTimeout(ctx, s.DecideWithin)
	defer cancel()
	t, err := s.Catalog.ResolveKnown(ctx, it.Customer, it.Meter, atLeast)
	if err == nil && t.Lost {
		err = plans.ErrNotInPlan
	}
	return t, err
}

// mayReturn records that units of a meter may be returned, because an opening balance replaces the earlier
// usage.
func (s *Room) mayReturn(ctx context.Context, meter string) error {
	ctx, cancel := context.WithTimeout(ctx, s.DecideWithin)
	defer cancel()
	return s.Catalog.Returning(ctx, s.Store, meter)
}
