package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/events"
	"quotad/internal/plans"
)

const archiveCustomer = `UPDATE customers SET archived_at = $2, change = $3 WHERE id = $1`

// ArchiveCustomer archives a customer. Hits no longer find the customer, its usage is kept, and its last
// billing period ends. Archiving an archived customer changes nothing. The error for an unknown customer
// is plans.ErrUnknownCustomer.
func (s *Store) ArchiveCustomer(ctx context.Context, key string) error {
	if !plans.ValidCustomerKey(key) {
		return plans.ErrUnknownCustomer
	}
	return s.WriteCustomer(ctx, key, func(ctx context.Context, w *Writing) error {
		c, err := one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomer, key)
		if err != nil {
			return err
		}
		if c.ArchivedAt != nil {
			return errUnchanged
		}
		if _, err := w.Exec(ctx, archiveCustomer, c.ID, w.Now, w.Number); err != nil {
			return err
		}
		if err := w.tell(ctx, events.CustomerArchived, c, client.EventData{}); err != nil {
			return err
		}
		archived := *c
		archived.ArchivedAt = &w.Now
		err = w.Audit(ctx, plans.Audited{
			Action: "archive", Target: "customers/" + key, Customer: c.ID, Before: auditCustomer(c), After: auditCustomer(&archived),
		})
		if err != nil {
			return err
		}
		return w.endBilling(ctx, c, c)
	})
}

// endBilling ends the last billing period of a customer that was archived or erased. old is the customer
// before the change.
func (w *Writing) endBilling(ctx context.Context, old, c *plans.Customer) error {
	if w.Open == nil {
		return nil // the customer is not billed
	}
	change := &CustomerChange{What: CustomerArchived, Customer: c, Now: w.InstantOf(c)}
	if old.ArchivedAt == nil && w.Open.End > 0 {
		cut, err := w.Mark(ctx, c.ID, change.Now, w.Open.Meters)
		if err != nil {
			return err
		}
		change.Cut = &cut
	}
	return w.changed(ctx, change)
}

const eraseCustomer = `
	UPDATE customers SET name = '', words = '', metadata = '{}', features = '{}', change = $4, suspended_at = NULL, suspended_reason = '',
		key = $2, archived_at = coalesce(archived_at, $3), erased_at = $3
	WHERE id = $1 RETURNING key`

const removeOverrides = `
	WITH rates AS (DELETE FROM limit_rates WHERE customer_id = $1)
	DELETE FROM overrides WHERE customer_id = $1`

const recordErasure = `INSERT INTO erasures (change, key, at, customer) VALUES ($1, $2, $3, $4)`

// EraseCustomer archives a customer that is not archived yet, and removes all data that identifies a
// person: name, metadata, features, overrides, portal sessions and the key. EraseCustomer returns the
// remaining customer under the new key erased:<id>, by which its usage is found from now on. The old key
// is free for a new customer. Erasing the new key again changes nothing. The error for an unknown
// customer is plans.ErrUnknownCustomer.
//
// Nodes need the old key to forget the customer, so the table of changes keeps the key for a minute, see
// sweep.Sweeper. The audit trail keeps the fact that the customer was changed, but no data of the
// customer. If the customer has very many audit entries, the Sweeper scrubs the remaining entries later.
func (s *Store) EraseCustomer(ctx context.Context, key string) (c *plans.Customer, err error) {
	if !plans.ValidCustomerKey(key) {
		return nil, plans.ErrUnknownCustomer
	}
	err = s.WriteCustomer(ctx, key, func(ctx context.Context, w *Writing) error {
		old, err := one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomer, key)
		if c = old; err != nil {
			return err
		}
		if c.ErasedAt != nil {
			return errUnchanged
		}
		erased, err := one(ctx, w, plans.ErrUnknownCustomer, pgx.RowTo[string], eraseCustomer,
			c.ID, erasedKey(c.ID), w.Now, w.Number)
		if err != nil {
			return err
		}
		if _, err := w.Exec(ctx, removeOverrides, c.ID); err != nil {
			return err
		}
		if _, err := w.Exec(ctx, endSessionsOf, c.ID); err != nil {
			return err
		}
		if _, err := w.Exec(ctx, recordErasure, w.Number, key, w.Now.UnixMicro(), c.ID); err != nil {
			return err
		}
		if _, err := ScrubAudit(ctx, w, c.ID); err != nil {
			return err
		}
		if err := events.Scrub(ctx, w, c.ID); err != nil {
			return err
		}
		if old.ArchivedAt == nil {
			if err := w.tell(ctx, events.CustomerArchived, old, client.EventData{}); err != nil {
				return err
			}
		}
		if err := w.Audit(ctx, plans.Audited{Action: "erase", Target: "customers/" + erased, Customer: c.ID, Scrubbed: true}); err != nil {
			return err
		}
		if c, err = one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomer, erased); err != nil {
			return err
		}
		return w.endBilling(ctx, old, c)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}
