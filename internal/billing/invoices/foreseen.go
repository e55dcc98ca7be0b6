package invoices

import (
	"context"
	"fmt"
	"math"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/postgres"
)

// readDraftsOf lists a customer's drafts in the order in which the worker finalizes them, see
// accounts.QueueSteps. Drafts that wait for their seller's name come first. While the seller has no name,
// none of the customer's other drafts is finalized, and the name makes the waiting drafts due at once.
const readDraftsOf = `SELECT` + invoiceColumns + `
	WHERE i.customer_id = $1 AND i.status = 'draft'
	ORDER BY nullif(i.finalize_at, 9223372036854775807) NULLS FIRST, CASE i.kind WHEN 'opening' THEN i.period_start ELSE i.period_end END, i.id`

// AssembleAfterDrafts reassembles the customer's drafts, each at its finalization time, and then next. It
// assumes that each draft is finalized before the following invoice. Credits that a draft uses are spent, and
// a draft with a total below 0 grants a credit. Nothing is written. next may be nil. The result contains the
// drafts by id.
func (is *Invoices) AssembleAfterDrafts(ctx context.Context, q postgres.Querier, c *accounts.Customer, next *Task) (map[string]*billing.Invoice, error) {
	drafts, err := invoicesOf(ctx, q, readDraftsOf, c.ID)
	if err != nil {
		return nil, err
	}
	tasks, err := draftTasks(ctx, q, drafts, map[int64]*accounts.Customer{c.ID: c})
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		if t.at = t.draft.FinalizeAt; t.at == whenNamed {
			t.at = c.Now
		}
	}
	if next != nil {
		tasks = append(tasks, next)
	}
	if err := is.readInputs(ctx, q, tasks); err != nil {
		return nil, err
	}
	made := make(map[string]*billing.Invoice, len(drafts))
	for i, t := range tasks {
		if i > 0 {
			t.in.Credits = tasks[i-1].creditsAfter()
		}
		if t.compute(); t.Err != nil {
			return nil, fmt.Errorf("the invoice of %s after its drafts: %w", c.Key, t.Err)
		}
		if t.draft != nil {
			made[t.draft.ID] = &t.Result.Invoice
		}
	}
	return made, nil
}

// creditsAfter returns the customer's credits after the finalization of the task's invoice.
func (t *Task) creditsAfter() []billing.Credit {
	r := &t.Result
	after := assembly.Booked(t.in.Credits, r.Applied)
	if r.CarriedMinor > 0 {
		after = append(after, billing.Credit{
			ID: carriedPrefix + r.Invoice.ID, Kind: billing.CreditCarried, AmountMinor: r.CarriedMinor, LeftMinor: r.CarriedMinor,
			Currency: r.Invoice.Currency, Priority: defaultPriority, At: t.in.At, Seq: math.MaxInt64,
		})
	}
	return after
}
