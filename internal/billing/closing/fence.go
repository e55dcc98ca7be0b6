package closing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/postgres"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/quota/usage"
)

// fenceTime bounds how long a transaction waits for its fences: somebody may hold a counter. After
// it the customers are put off. Their fences stand, so they are soon done the next time.
const fenceTime = 250 * time.Millisecond

// fenceTries bounds how often a counter is fenced again that a change overtook.
const fenceTries = 4

// fenceOf is a counter that is to be fenced for a job.
type fenceOf struct {
	j   *job
	key model.CounterKey
}

// toFence are the counters of jobs. Those of archived customers are in gone.
func (w *Worker) toFence(ctx context.Context, q postgres.Querier, due []*job) (all []fenceOf, gone []usage.Archived, err error) {
	for _, j := range due {
		meters, err := w.fenced(ctx, q, j.c.Open)
		if err != nil {
			return nil, nil, err
		}
		for _, meter := range meters {
			if j.c.Archived {
				gone = append(gone, usage.Archived{Customer: j.c.ID, Meter: meter, Change: j.c.Change})
				continue
			}
			all = append(all, fenceOf{j, model.CounterKey{Customer: j.c.ID, Meter: meter}})
		}
	}
	return all, gone, nil
}

// fence makes sure that no more usage comes to the periods that are to be closed.
func (w *Worker) fence(ctx context.Context, tx pgx.Tx, due []*job) error {
	within, cancel := context.WithTimeout(ctx, fenceTime)
	defer cancel()
	left, gone, err := w.toFence(ctx, tx, due)
	if err == nil {
		err = usage.FenceArchived(ctx, w.pool, gone)
	}
	if err != nil {
		return err
	}
	for try := 0; len(left) > 0 && try <= fenceTries; try++ {
		if left, err = w.fenceOnce(ctx, within, left); err != nil {
			return err
		}
	}
	for _, p := range left {
		p.j.err = fmt.Errorf("fence meter %d: %w", p.key.Meter, errOvertaken)
	}
	return nil
}

// fenceOnce fences counters in the time of within. A change overtook those in again.
func (w *Worker) fenceOnce(ctx, within context.Context, all []fenceOf) (again []fenceOf, err error) {
	keys := make([]model.CounterKey, len(all))
	for i := range all {
		keys[i] = all[i].key
	}
	targets, err := w.options.Catalog.Targets(ctx, keys)
	if err != nil {
		return nil, err
	}
	var fences []locked.Fence
	var of []fenceOf
	for i, target := range targets {
		p := all[i]
		if target == nil { // a change came during the read
			again = append(again, p)
			continue
		}
		fences, of = append(fences, locked.Fence{Target: target, Boundary: p.j.c.Open.End}), append(of, p)
	}
	for i, err := range w.options.Engine.Fence(within, fences) {
		var stale *model.StaleError
		switch err = tooLate(ctx, within, err); {
		case errors.As(err, &stale):
			again = append(again, of[i])
		case err != nil && !errors.Is(err, session.ErrBusy) && !concernsOne(err):
			return nil, err
		case err != nil && of[i].j.err == nil:
			of[i].j.err = fmt.Errorf("fence meter %d: %w", of[i].key.Meter, err)
		}
	}
	return again, nil
}

// tooLate is the error of a fence that nobody waits for any more: somebody is busy with its counter.
func tooLate(ctx, within context.Context, err error) error {
	if err == nil || within.Err() == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", session.ErrBusy, err)
}

var errOvertaken = errors.New("changes of the customer came faster than its counters could be fenced")

// fenced are the meters whose counters are fenced at the end of a period: those with a price.
func (w *Worker) fenced(ctx context.Context, q postgres.Querier, p *billing.Period) ([]int32, error) {
	versions, err := w.accounts.Versions.Get(ctx, q, []accounts.VersionKey{accounts.PricedBy(p)})
	if err != nil {
		return nil, err
	}
	terms := versions.Terms(p)
	ids, err := w.accounts.PricedMeters(ctx, q, &terms)
	var meters []int32
	for _, meter := range terms.Meters() {
		meters = append(meters, ids[meter])
	}
	return meters, err
}
