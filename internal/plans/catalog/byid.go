package catalog

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

const loadCustomersByID = entryOfCustomer + ` AND c.id = ANY ($1::bigint[])`

// Targets returns one target for each of the counters. The target contains the limits for hits on the
// counter at present. A target has no limits if the customer's plan lacks the meter, and is nil if the
// customer is archived or unknown.
//
// Targets reads all customers with one statement and does not cache them. It is for upkeep, which walks
// over all counters and must not evict the customers that currently send hits.
//
// Errors: session.ErrUnavailable if the database could not be queried, and session.ErrBusy if changes
// overtook every attempt to read.
func (c *Catalog) Targets(ctx context.Context, counters []model.CounterKey) ([]*model.Target, error) {
	return c.targetsOf(ctx, counters, false)
}

// CappedTargets is Targets with caps. It reads the caps of each customer that has a cap.
func (c *Catalog) CappedTargets(ctx context.Context, counters []model.CounterKey) ([]*model.Target, error) {
	return c.targetsOf(ctx, counters, true)
}

func (c *Catalog) targetsOf(ctx context.Context, counters []model.CounterKey, capped bool) ([]*model.Target, error) {
	var left []int64
	for _, k := range counters {
		left = append(left, k.Customer)
	}
	slices.Sort(left)
	left = slices.Compact(left)
	all := make(map[int64]*terms, len(left))
	for try := 0; len(left) > 0; try++ {
		if try == maxAttempts {
			return nil, errOvertaken
		}
		var err error
		if left, err = c.readTerms(ctx, left, capped, all); err != nil {
			return nil, err
		}
	}
	targets := make([]*model.Target, len(counters))
	for i, k := range counters {
		if t := all[k.Customer]; t != nil {
			targets[i] = t.targetByID(k.Meter)
		}
	}
	return targets, nil
}

// readTerms adds the terms of customers to all, except for archived customers. It returns the customers
// that a change overtook during the read. If the memory was replaced, as at the start, readTerms returns
// all customers.
func (c *Catalog) readTerms(ctx context.Context, customers []int64, capped bool, all map[int64]*terms) (overtaken []int64, err error) {
	m := c.memory.Load()
	entries, err := c.entriesByID(ctx, m, customers)
	if err != nil {
		return nil, err
	}
	now, err := c.options.Now(ctx)
	if err != nil {
		return nil, session.Unreached(err)
	}
	for _, e := range entries {
		e.reached.Store(now) // e is not shared yet
		t, err := c.termsFor(ctx, m, e)
		if err == nil && capped && e.capped {
			err = c.capTerms(ctx, m, t, nil)
		}
		if err != nil {
			return nil, err
		}
		applied := m.applied.Load()
		// As in terms, the parts were true at the same moment only if all of them are still valid.
		if !t.valid() || c.memory.Load() != m {
			overtaken = append(overtaken, e.id)
			continue
		}
		t.rightAsOf(applied)
		all[e.id] = t
	}
	return overtaken, nil
}

// entriesByID reads customers, except for archived customers.
func (c *Catalog) entriesByID(ctx context.Context, m *memory, customers []int64) ([]*customerEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Within)
	defer cancel()
	rows, _ := c.pool.Query(ctx, loadCustomersByID, customers)
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*customerEntry, error) {
		_, e, err := m.scanEntry(row)
		return e, err
	})
	if err != nil || len(entries) == 0 {
		return nil, store.Classify(err)
	}
	// As with every fact, all changes up to its number must be applied here first.
	return entries, c.CatchUp(ctx, entries[0].asOf)
}

// targetByID returns the target of the meter with the given id.
func (t *terms) targetByID(meter int32) *model.Target {
	for _, m := range t.version.order {
		if m.id == meter {
			return t.target(m)
		}
	}
	target := model.NewTarget(t.change, t.entry.id, meter, nil, t.periods(), t.testClock())
	target.Lost = true
	target.SetHistory(t.history, &t.asOf)
	return target
}
