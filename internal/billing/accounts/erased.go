package accounts

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
)

// forgetBuyers removes the buyers from accounts of erased customers. It skips customers with a period to
// bill, with a draft, or with items waiting for an extra invoice. Finalized invoices and held drafts keep the
// buyer.
const forgetBuyers = `
	UPDATE billing_accounts a SET buyer = '{}' FROM open_periods o JOIN customers c ON c.id = o.customer_id
	WHERE a.customer_id = ANY ($1) AND o.customer_id = a.customer_id AND o.start_at IS NULL AND o.owed_at IS NULL AND c.erased_at IS NOT NULL
	  AND a.buyer <> '{}' AND NOT EXISTS (SELECT FROM invoices i WHERE i.customer_id = a.customer_id AND i.status = 'draft')`

// ForgetBuyers removes the buyers of erased customers as soon as nothing is left to bill. Every operation
// that may bill the last item of an erased customer calls ForgetBuyers.
func ForgetBuyers(ctx context.Context, tx pgx.Tx, erased ...int64) error {
	if len(erased) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, forgetBuyers, erased)
	return err
}

const setBuyer = `UPDATE billing_accounts SET buyer = $2 WHERE customer_id = $1`

// RecallBuyer restores the buyer of an erased customer from a void invoice, because the invoice that replaces
// it needs a buyer.
func (c *Customer) RecallBuyer(ctx context.Context, tx pgx.Tx, void *billing.Invoice) error {
	if !c.Erased {
		return nil
	}
	buyer, err := json.Marshal(void.Buyer)
	if err != nil {
		return err
	}
	c.Account.Buyer = void.Buyer
	_, err = tx.Exec(ctx, setBuyer, c.ID, buyer)
	return err
}
