package store

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

// The queries below read many customers at once to compare plans.

// customersOn excludes customers on test clocks, because their times differ, and pinned customers,
// because a new version does not apply to them.
const customersOn = `
	SELECT c.id FROM customers c JOIN plans p ON p.id = c.plan_id
	WHERE p.key = $1 AND c.pinned_version IS NULL AND c.test_clock_id IS NULL AND c.archived_at IS NULL
	LIMIT $2`

// CustomersOn returns the ids of customers to whom a new version of a plan would apply. The parameter
// most limits their number, and more is true if there are further customers.
func (s *Store) CustomersOn(ctx context.Context, plan string, most int) (ids []int64, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	rows, _ := s.pool.Query(ctx, customersOn, plan, most+1)
	ids, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	if len(ids) > most {
		return ids[:most], true, Classify(err)
	}
	return ids, false, Classify(err)
}

const customersByID = `SELECT` + customerColumns + customerNow + ` WHERE c.id = ANY ($1)`

// CustomersByID returns the existing customers among ids, in any order.
func (s *Store) CustomersByID(ctx context.Context, ids []int64) ([]*plans.Customer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	rows, _ := s.pool.Query(ctx, customersByID, ids)
	all, err := pgx.CollectRows(rows, scanCustomer)
	return all, Classify(err)
}

const overridesByCustomer = `SELECT customer_id, limit_name, "limit", burst, expires_at FROM overrides WHERE customer_id = ANY ($1)`

// OverridesOf returns the stored overrides of customers, by customer and limit name.
func (s *Store) OverridesOf(ctx context.Context, ids []int64) (map[int64]map[string]plans.StoredOverride, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	all := make(map[int64]map[string]plans.StoredOverride)
	var id int64
	var name string
	var o plans.StoredOverride
	rows, _ := s.pool.Query(ctx, overridesByCustomer, ids)
	_, err := pgx.ForEachRow(rows, []any{&id, &name, &o.Limit, &o.Burst, &o.ExpiresAt}, func() error {
		if all[id] == nil {
			all[id] = make(map[string]plans.StoredOverride)
		}
		all[id][name] = o
		return nil
	})
	return all, Classify(err)
}

const pricesByCustomer = `
	SELECT customer_id, meter, price FROM (
		SELECT DISTINCT ON (customer_id, meter) customer_id, meter, price FROM customer_prices
		WHERE customer_id = ANY ($1) ORDER BY customer_id, meter, change DESC) p
	WHERE price IS NOT NULL`

// OwnPricesOf returns the newest customer-specific prices, by customer and meter.
func (s *Store) OwnPricesOf(ctx context.Context, ids []int64) (map[int64]map[string]plans.Price, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	all := make(map[int64]map[string]plans.Price)
	var id int64
	var meter string
	var raw []byte
	rows, _ := s.pool.Query(ctx, pricesByCustomer, ids)
	_, err := pgx.ForEachRow(rows, []any{&id, &meter, &raw}, func() error {
		price := plans.Price{}
		if err := json.Unmarshal(raw, &price); err != nil {
			return err
		}
		price.Meter = meter
		if all[id] == nil {
			all[id] = make(map[string]plans.Price)
		}
		all[id][meter] = price
		return nil
	})
	return all, Classify(err)
}
