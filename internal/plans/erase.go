package plans

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// ErasedPrefix begins the keys that erased customers get; no other may begin so.
const ErasedPrefix = "erased:"

// A key that begins so may be older than that rule; the change's number makes another.
const eraseCustomer = `
	UPDATE customers SET name = '', metadata = '{}', features = '{}', change = $4,
		key = $2::text || CASE WHEN EXISTS (SELECT FROM customers WHERE key = $2::text) THEN '.' || $4::bigint ELSE '' END,
		archived_at = coalesce(archived_at, $3), erased_at = $3
	WHERE id = $1 RETURNING key`

const removeOverrides = `DELETE FROM overrides WHERE customer_id = $1`

const recordErasure = `INSERT INTO erasures (change, key, at) VALUES ($1, $2, $3)`

// EraseCustomer archives a customer, or one that is archived already, and removes what
// identifies a person: name, metadata, features, overrides and the key. It returns what
// is left, with the key erased:<id>, under which usage is found from now on; the old key
// is free. Erasing it again under the new key does nothing. ErrUnknownCustomer when there
// is none.
//
// The nodes' memories need the old key to learn of it, so the table of changes has it a
// minute longer, see scrub.
func (s *Store) EraseCustomer(ctx context.Context, key string) (c *Customer, err error) {
	if !ValidCustomerKey(key) {
		return nil, ErrUnknownCustomer
	}
	err = s.write(ctx, kindCustomer, key, func(ctx context.Context, w *writing) error {
		if c, err = one(ctx, w, ErrUnknownCustomer, scanCustomer, getCustomer, key); err != nil {
			return err
		}
		if c.ErasedAt != nil {
			return errUnchanged
		}
		erased, err := one(ctx, w, ErrUnknownCustomer, pgx.RowTo[string], eraseCustomer,
			c.ID, ErasedPrefix+strconv.FormatInt(c.ID, 10), w.now, w.number)
		if err != nil {
			return err
		}
		if _, err := w.Exec(ctx, removeOverrides, c.ID); err != nil {
			return err
		}
		if _, err := w.Exec(ctx, recordErasure, w.number, key, w.now.UnixMicro()); err != nil {
			return err
		}
		c, err = one(ctx, w, ErrUnknownCustomer, scanCustomer, getCustomer, erased)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

const dueErasures = `SELECT EXISTS (SELECT FROM erasures WHERE at <= $1)`

// An admin write takes old changes out under this lock; without it the two could wait
// for each other.
const lockChanges = `SELECT number FROM change_number FOR UPDATE`

// A later customer of the same key keeps its changes.
const scrubChanges = `
	WITH due AS (DELETE FROM erasures WHERE at <= $1 RETURNING change, key)
	UPDATE changes c SET kind = 'erased', key = '' FROM due
	WHERE c.kind = 'customer' AND c.key = due.key AND c.number <= due.change`

// scrub takes the keys of customers that were erased at until or before, µs, out of the
// changes. A node that has not seen such a change by then forgets everything when it
// comes to it. Any number of nodes may do so at once.
func (s *Store) scrub(ctx context.Context, until int64) error {
	due, err := one(ctx, s.pool, ErrUnknownCustomer, pgx.RowTo[bool], dueErasures, until)
	if err != nil || !due {
		return err
	}
	return classify(pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockChanges); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, scrubChanges, until)
		return err
	}))
}
