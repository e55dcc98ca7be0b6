package catalog

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"

	"quotad/internal/cache"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// ResolveKnown is Resolve for operations other than hits, such as a refund. It creates no customer. If
// the customer's plan lacks the meter, or no longer has it, the target has no limits.
//
// Errors: plans.ErrUnknownCustomer (also for an archived customer), plans.ErrUnknownMeter, and
// session.ErrUnavailable if the database could not be queried.
func (c *Catalog) ResolveKnown(ctx context.Context, customer, meter string, atLeast int64) (*model.Target, error) {
	if err := c.reach(ctx, atLeast); err != nil {
		return nil, err
	}
	t, err := c.terms(ctx, customer)
	if err != nil {
		return nil, err
	}
	if inPlan := t.version.meters[meter]; inPlan != nil {
		return t.target(inPlan), nil
	}
	m, err := c.meter(ctx, meter)
	if err != nil {
		return nil, err
	}
	return t.targetByID(m.ID), nil
}

// ResolveByID is ResolveKnown by the ids of customer and meter, which a reservation's id contains. It
// also returns the keys of both. Errors are the errors of ResolveKnown.
func (c *Catalog) ResolveByID(ctx context.Context, customer int64, meter int32, atLeast int64) (t *model.Target, customerKey, meterKey string, err error) {
	if err = c.reach(ctx, atLeast); err != nil {
		return nil, "", "", err
	}
	r, customerKey, err := c.termsByID(ctx, customer)
	if err != nil {
		return nil, "", "", err
	}
	if meterKey, err = c.meterKey(ctx, r.version, meter); err != nil {
		return nil, "", "", err
	}
	return r.targetByID(meter), customerKey, meterKey, nil
}

// reach is CatchUp, but returns at once if the change is already applied.
func (c *Catalog) reach(ctx context.Context, atLeast int64) error {
	if atLeast <= c.Applied() {
		return nil
	}
	return c.CatchUp(ctx, atLeast)
}

// termsByID is terms by the customer's id, and also returns the customer's key. The cached key is only a
// hint, because the key of an erased customer may now belong to another customer. termsByID therefore
// checks the id in the terms.
func (c *Catalog) termsByID(ctx context.Context, id int64) (*terms, string, error) {
	for range maxAttempts {
		m := c.memory.Load()
		key, ok := m.customerKeys.Get(id, 0)
		if !ok {
			var err error
			if key, err = c.loadCustomerKey(ctx, m, id); err != nil {
				return nil, "", err
			}
		}
		t, err := c.terms(ctx, key)
		switch {
		case err == nil && t.entry.id == id:
			return t, key, nil
		case err != nil && !errors.Is(err, plans.ErrUnknownCustomer):
			return nil, "", err
		}
		m.customerKeys.Remove(id)
	}
	return nil, "", errOvertaken
}

const loadCustomerKey = `
	SELECT n.number, coalesce(c.key, '')
	FROM change_number n LEFT JOIN customers c ON c.id = $1 AND c.archived_at IS NULL`

// loadCustomerKey reads and caches a customer's key. It returns after all changes up to its read are
// applied here, so that the memory is no older than the key. The error for an unknown customer is
// plans.ErrUnknownCustomer.
func (c *Catalog) loadCustomerKey(ctx context.Context, m *memory, id int64) (string, error) {
	return fly(ctx, c.options.Within, &m.flights, "customer's key "+strconv.FormatInt(id, 10), func(ctx context.Context) (string, error) {
		var asOf int64
		var key string
		if err := c.pool.QueryRow(ctx, loadCustomerKey, id).Scan(&asOf, &key); err != nil {
			return "", err
		}
		if key == "" {
			return "", plans.ErrUnknownCustomer
		}
		m.customerKeys.Add(id, key, cache.NoExpiry)
		return key, c.CatchUp(ctx, asOf)
	})
}

const loadMeterKey = `SELECT key FROM meters WHERE id = $1`

// meterKey returns the key of the meter with this id or the error plans.ErrUnknownMeter. A meter's key
// never changes.
func (c *Catalog) meterKey(ctx context.Context, v *version, id int32) (string, error) {
	for _, m := range v.order {
		if m.id == id {
			return m.key, nil
		}
	}
	m := c.memory.Load()
	if key, ok := m.meterKeys.Get(id, 0); ok {
		return key, nil
	}
	return fly(ctx, c.options.Within, &m.flights, "meter's key "+strconv.Itoa(int(id)), func(ctx context.Context) (string, error) {
		var key string
		err := c.pool.QueryRow(ctx, loadMeterKey, id).Scan(&key)
		if errors.Is(err, pgx.ErrNoRows) {
			return "", plans.ErrUnknownMeter
		}
		if err == nil {
			m.meterKeys.Add(id, key, cache.NoExpiry)
		}
		return key, err
	})
}

// MaxResolves is the number of times that an operation is judged when its limits change meanwhile or an
// override ends. Each repetition requires another such event within milliseconds.
const MaxResolves = 4

// WhileStale calls do with atLeast 0, which means any change that this node has seen. While do returns
// that its limits were stale, WhileStale calls do again with the newer change, up to MaxResolves calls.
func WhileStale(do func(atLeast int64) error) error {
	atLeast := int64(0)
	for try := 1; ; try++ {
		err := do(atLeast)
		stale, ok := errors.AsType[*model.StaleError](err)
		if !ok || try == MaxResolves {
			return err
		}
		atLeast = stale.Change
	}
}
