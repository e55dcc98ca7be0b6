package closing

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing/accounts"
	"quotad/internal/billing/invoices"
	"quotad/internal/postgres"
)

const owedMade = `UPDATE open_periods SET owed_at = NULL WHERE customer_id = ANY ($1)`

// makeExtras creates the extra invoices of customers that the transaction has locked and whose billing is
// over. If the new items result in no line, no extra invoice is created.
func (w *Worker) makeExtras(ctx context.Context, tx pgx.Tx, due []*job) error {
	ends, err := accounts.ChainEnds(ctx, tx, customersOf(due))
	if err != nil {
		return err
	}
	tasks := make([]*invoices.Task, len(due))
	for i, j := range due {
		j.task = invoices.ExtraTask(j.c, ends[j.c.ID], j.at)
		tasks[i] = j.task
	}
	if err := w.invoices.Assemble(ctx, tx, tasks); err != nil {
		return err
	}
	var done, drafts []*invoices.Task
	var made []int64
	for _, j := range due {
		t := j.task
		if j.err = t.Err; j.err != nil {
			continue
		}
		done, made = append(done, t), append(made, j.c.ID)
		if !t.Empty() {
			drafts = append(drafts, t)
		}
	}
	b := new(pgx.Batch)
	b.Queue(owedMade, made)
	if err := w.invoices.QueueDrafts(b, drafts); err != nil {
		return err
	}
	invoices.QueueDropDead(b, done)
	return postgres.Send(ctx, tx, b)
}
