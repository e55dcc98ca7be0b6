package store

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

const eraseCustomer = `
	UPDATE customers SET name = '', metadata = '{}', features = '{}', change = $4,
		key = $2, archived_at = coalesce(archived_at, $3), erased_at = $3
	WHERE id = $1 RETURNING key`

const removeOverrides = `DELETE FROM overrides WHERE customer_id = $1`

const recordErasure = `INSERT INTO erasures (change, key, at) VALUES ($1, $2, $3)`

// EraseCustomer archives a customer, or takes an archived one. It removes what identifies a
// person: name, metadata, features, overrides and the key. It returns the rest, under the new
// key erased:<id>, by which its usage is found from now on. The old key is free. To erase it
// again under the new key does nothing. An unknown customer is plans.ErrUnknownCustomer.
//
// Nodes need the old key to forget the customer. So the table of changes keeps it for a minute
// longer, see sweep.Sweeper.
func (s *Store) EraseCustomer(ctx context.Context, key string) (c *plans.Customer, err error) {
	if !plans.ValidCustomerKey(key) {
		return nil, plans.ErrUnknownCustomer
	}
	err = s.Write(ctx, KindCustomer, key, func(ctx context.Context, w *Writing) error {
		if c, err = one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomer, key); err != nil {
			return err
		}
		if c.ErasedAt != nil {
			return errUnchanged
		}
		erased, err := one(ctx, w, plans.ErrUnknownCustomer, pgx.RowTo[string], eraseCustomer,
			c.ID, plans.ErasedPrefix+strconv.FormatInt(c.ID, 10), w.Now, w.Number)
		if err != nil {
			return err
		}
		if _, err := w.Exec(ctx, removeOverrides, c.ID); err != nil {
			return err
		}
		if _, err := w.Exec(ctx, recordErasure, w.Number, key, w.Now.UnixMicro()); err != nil {
			return err
		}
		c, err = one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomer, erased)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}
