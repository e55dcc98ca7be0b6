package invoices

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/quota/model"
)

const creditColumns = ` id, kind, amount_minor, left_minor, currency, priority, expires_at, at, seq FROM credits `

func scanCredit(row pgx.CollectableRow) (c billing.Credit, err error) {
	return c, row.Scan(&c.ID, &c.Kind, &c.AmountMinor, &c.LeftMinor, &c.Currency, &c.Priority, &c.ExpiresAt, &c.At, &c.Seq)
}

const creditByID = `SELECT` + creditColumns + `WHERE customer_id = $1 AND id = $2`

const creditPayload = `SELECT payload FROM credits WHERE customer_id = $1 AND id = $2`

// Grant gives a customer a credit, once under its id, which stands for it for ever. It returns
// the credit as it is now, and the customer's test clock. Errors: those of accounts.OnCustomer,
// model.FieldErrors for another currency, a reserved id or an expiry that is over,
// billing.ErrOtherPayload.
func (is *Invoices) Grant(ctx context.Context, key string, in billing.Credit, payload int64) (made billing.Credit, clock string, replayed bool, err error) {
	err = is.accounts.OnCustomer(ctx, key, func(ctx context.Context, tx pgx.Tx, c *accounts.Customer) error {
		clock = c.Clock
		var stored int64
		switch err := tx.QueryRow(ctx, creditPayload, c.ID, in.ID).Scan(&stored); {
		case err == nil && stored != payload:
			return billing.ErrOtherPayload
		case err == nil:
			replayed = true
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		default:
			if err := grant(ctx, tx, c, &in, payload); err != nil {
				return err
			}
			err := store.Audit(ctx, tx, plans.Audited{
				Action: plans.AuditCreate, Target: "customers/" + key + "/credits/" + in.ID, Customer: c.ID, After: auditCredit(&in),
			})
			if err != nil {
				return err
			}
		}
		rows, _ := tx.Query(ctx, creditByID, c.ID, in.ID)
		made, err = pgx.CollectExactlyOneRow(rows, scanCredit)
		return err
	})
	return made, clock, replayed, err
}

func grant(ctx context.Context, tx pgx.Tx, c *accounts.Customer, in *billing.Credit, payload int64) error {
	bad := model.FieldErrors{}
	if strings.HasPrefix(in.ID, carriedPrefix) {
		bad = append(bad, model.FieldError{Field: "id", Detail: "must not begin with " + carriedPrefix + ", as those of credits do that invoices leave"})
	}
	if in.ExpiresAt != nil && *in.ExpiresAt <= c.Now {
		bad = append(bad, model.FieldError{Field: "expires_at", Detail: "must be in the future, by the customer's clock"})
	}
	if wrong, ok := errors.AsType[model.FieldErrors](c.CheckCurrency(in.Currency)); ok {
		bad = append(bad, wrong...)
	}
	if len(bad) > 0 {
		return bad
	}
	b := new(pgx.Batch)
	err := errors.Join(
		postgres.QueueRows(b, insertCredits, []creditRow{{c.ID, in.ID, in.Kind, in.AmountMinor, in.Currency, in.Priority, in.ExpiresAt, c.Now, payload}}),
		postgres.QueueRows(b, bookEntries, []entryRow{{c.ID, in.ID, billing.EntryGranted, in.AmountMinor, nil, c.Now}}),
	)
	if err != nil {
		return err
	}
	return postgres.Send(ctx, tx, b)
}
