package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// traceRun plays a trace on a bench and holds every step against the model and the oracle.
type traceRun struct {
	*bench
	customer int64
	model    *reference
	oracle   *oracle
}

func (r *traceRun) step(ctx context.Context, how string, now int64, hits []model.Hit) error {
	var results []queue.Result
	switch how {
	case "one":
		for _, h := range hits {
			d, err := r.engine.Decide(ctx, h.Target, h.Cost)
			if err := r.settled(now, []model.Hit{h}, []queue.Result{{Decision: d, Err: err}}); err != nil {
				return err
			}
		}
		return r.stored(ctx)
	case "batch":
		var batches int
		hits = slices.DeleteFunc(hits, func(h model.Hit) bool { return h.Cost == 0 })
		results, batches = r.hand.sendBatch(ctx, hits)
		r.batches += batches
		if batches > 1 {
			r.handed++
		}
	default: // all, look
		results = r.engine.DecideAll(ctx, hits)
	}
	if err := r.settled(now, hits, results); err != nil {
		return err
	}
	if err := r.inOrder(now, hits, results); err != nil {
		return err
	}
	return r.stored(ctx)
}

// stored compares the rows and the finished hours with the model's.
func (r *traceRun) stored(ctx context.Context) error {
	rows, err := r.db.Counters(ctx, r.customer)
	if err != nil {
		return err
	}
	hours, err := r.db.Admitted(ctx, r.customer)
	if err != nil {
		return err
	}
	return errors.Join(r.model.sameRows(r.customer, rows), r.model.sameUsage(r.customer, hours, rows))
}

// settled plays the results through the model in the order in which they must have been
// decided: which that is, their versions say.
func (r *traceRun) settled(now int64, hits []model.Hit, results []queue.Result) error {
	var left []int
	for i, h := range hits {
		res := &results[i]
		var stale *model.StaleError
		switch {
		case errors.As(res.Err, &stale):
			left = append(left, i)
		case res.Err != nil:
			return fmt.Errorf("hit %d of %v: %w", i, h.Target.Counters[0].Key, res.Err)
		case h.Look || h.Cost == 0 || res.Decision.AsOf != 0:
			// decided on the rows as they are, or were
		default:
			left = append(left, i)
		}
	}
	for len(left) > 0 {
		next := -1
		for n, i := range left { // of several, what was resolved first: the others make it stale
			if r.isNext(&results[i], left, results) && (next < 0 || hits[i].Target.Change < hits[left[next]].Target.Change) {
				next = n
			}
		}
		if next < 0 {
			// Only hits are left that were resolved too early, or none can be next.
			if i := slices.IndexFunc(left, func(i int) bool { return results[i].Err == nil }); i >= 0 {
				return fmt.Errorf("%s: no order of decisions leads to these versions", results[left[i]].Decision.String())
			}
			break
		}
		i := left[next]
		left = slices.Delete(left, next, next+1)
		d := &results[i].Decision
		want, stale := r.model.decide(hits[i].Target, now, hits[i].Cost)
		if stale != nil {
			return fmt.Errorf("hit %d: decided %s, but it is stale: %w", i, d.String(), stale)
		}
		if err := sameDecision(d, &want); err != nil {
			return fmt.Errorf("hit %d: %w", i, err)
		}
		if err := r.oracle.agrees(d, now, false); err != nil {
			return fmt.Errorf("hit %d: %w", i, err)
		}
		r.note(d)
	}
	for _, i := range left {
		if want := r.model.stale(hits[i].Target); want == nil {
			return fmt.Errorf("hit %d: %w, but it is not stale", i, results[i].Err)
		}
		r.stale++
	}
	return r.unwritten(now, hits, results)
}

// isNext reports whether a decision is the next on the model's rows. An admitted one must
// wait for refusals that were decided on the rows it is going to change.
func (r *traceRun) isNext(res *queue.Result, left []int, all []queue.Result) bool {
	if res.Err != nil || !r.fits(&res.Decision) {
		return false
	}
	if !res.Decision.Allowed {
		return true
	}
	return !slices.ContainsFunc(left, func(i int) bool {
		other := &all[i]
		return other.Err == nil && !other.Decision.Allowed && sharesCounter(other.Decision.Target, res.Decision.Target) &&
			r.onCurrent(&other.Decision, res.Decision.Target)
	})
}

// fits reports whether all the versions of a decision are the model's next ones.
func (r *traceRun) fits(d *model.Decision) bool {
	for i, v := range d.Versions() {
		if d.Allowed {
			v--
		}
		if v != r.model.version(d.Target, i, d.At) {
			return false
		}
	}
	return true
}

// onCurrent reports whether a refusal was decided on the present row of a counter of t.
func (r *traceRun) onCurrent(d *model.Decision, t *model.Target) bool {
	for i, v := range d.Versions() {
		key := d.Target.Counters[i].Key
		if v == r.model.version(d.Target, i, d.At) && slices.ContainsFunc(t.Counters, func(c model.Counter) bool { return c.Key == key }) {
			return true
		}
	}
	return false
}

func sharesCounter(a, b *model.Target) bool {
	for _, c := range a.Counters {
		if slices.ContainsFunc(b.Counters, func(o model.Counter) bool { return o.Key == c.Key }) {
			return true
		}
	}
	return false
}

// unwritten checks what sent no charging statement: looks, on the rows behind the step,
// and refusals from memory, on the versions they name.
func (r *traceRun) unwritten(now int64, hits []model.Hit, results []queue.Result) error {
	for i, h := range hits {
		d := &results[i].Decision
		var want model.Decision
		var err error
		switch {
		case results[i].Err != nil:
			continue
		case h.Look || h.Cost == 0:
			r.looks++
			want = model.Judge(h.Target, r.model.rows(h.Target, now), now, h.Cost)
			if err := r.oracle.agrees(d, now, true); err != nil {
				return fmt.Errorf("look %d: %w", i, err)
			}
			if m := r.model.stale(h.Target); m != nil {
				return fmt.Errorf("look %d: %w", i, m)
			}
		case d.AsOf != 0:
			r.memories++
			if want, err = r.model.past(h.Target, d.Versions(), now, h.Cost); err != nil {
				return err
			}
			// It must not fit the rows as they are, either, unless others emptied them, or
			// charged them by a clock that is ahead and gave them time to refill.
			today := model.Judge(h.Target, r.model.rows(h.Target, now), now, h.Cost)
			if r.model.stale(h.Target) == nil && today.At == d.At && today.Allowed {
				return fmt.Errorf("hit %d: %s fits", i, d.String())
			}
		default:
			continue
		}
		if err := sameDecision(d, &want); err != nil {
			return fmt.Errorf("hit %d, from memory or a look: %w", i, err)
		}
	}
	return nil
}

// inOrder: where all hits of a step are on one target, they were admitted just as if each
// had been decided before the next came.
func (r *traceRun) inOrder(now int64, hits []model.Hit, results []queue.Result) error {
	var versions []int64
	for i, h := range hits {
		if h.Target != hits[0].Target || results[i].Err != nil {
			return nil
		}
		if d := &results[i].Decision; d.Allowed && d.Cost > 0 && !h.Look {
			versions = append(versions, d.Versions()[0])
		}
	}
	if !slices.IsSorted(versions) {
		return fmt.Errorf("one target's hits were charged out of order: versions %v", versions)
	}
	// What was refused must not fit what was left when all before it were charged.
	used := int64(0)
	for i := len(hits) - 1; i >= 0; i-- {
		d := &results[i].Decision
		switch {
		case hits[i].Look || d.Cost == 0:
		case d.Allowed:
			used += d.Cost
		case d.AsOf == 0:
			after := model.Judge(d.Target, r.model.rows(d.Target, now), now, 0)
			after.Shift(-used)
			if d.Cost <= after.Headroom() {
				return fmt.Errorf("hit %d: %s was refused, but there was room for %d", i, d.String(), after.Headroom())
			}
		}
	}
	return nil
}
