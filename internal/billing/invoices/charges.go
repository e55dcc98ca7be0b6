package invoices

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

const chargeByID = `SELECT description, amount_minor, currency, at, payload FROM charges WHERE customer_id = $1 AND id = $2`

const unclaimedCharges = `SELECT count(*) FROM charges WHERE customer_id = $1 AND invoice_id IS NULL`

const insertCharge = `
	INSERT INTO charges (customer_id, id, description, amount_minor, currency, at, payload) VALUES ($1, $2, $3, $4, $5, $6, $7)`

// Charge adds a line to the customer's next invoice, once for each id; ids are never reused. It returns the
// charge as created and the customer's test clock. Errors: the errors of accounts.OnCustomer,
// model.FieldErrors for another currency, billing.ErrOtherPayload, billing.ErrTooManyCharges.
func (is *Invoices) Charge(ctx context.Context, key string, in billing.Charge, payload int64) (made billing.Charge, clock string, replayed bool, err error) {
	err = is.accounts.OnCustomer(ctx, key, func(ctx context.Context, tx pgx.Tx, c *accounts.Customer) error {
		clock, made = c.Clock, in
		var stored int64
		switch err := tx.QueryRow(ctx, chargeByID, c.ID, in.ID).Scan(&made.Description, &made.AmountMinor, &made.Currency, &made.At, &stored); {
		case err == nil && stored != payload:
			return billing.ErrOtherPayload
		case err == nil:
			replayed = true
			return nil
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
		if err := c.CheckCurrency(in.Currency); err != nil {
			return err
		}
		var waiting int64
		if err := tx.QueryRow(ctx, unclaimedCharges, c.ID).Scan(&waiting); err != nil {
			return err
		}
		if waiting >= billing.MaxCharges {
			return billing.ErrTooManyCharges
		}
		made.At = c.Now
		if _, err := tx.Exec(ctx, insertCharge, c.ID, in.ID, in.Description, in.AmountMinor, in.Currency, made.At, payload); err != nil {
			return err
		}
		if c.Open == nil {
			if err := accounts.Owe(ctx, tx, c.ID, c.Now); err != nil {
				return err
			}
		}
		return store.Audit(ctx, tx, plans.Audited{
			Action: plans.AuditCreate, Target: "customers/" + key + "/charges/" + in.ID, Customer: c.ID, After: auditCharge(&made),
		})
	})
	return made, clock, replayed, err
}
