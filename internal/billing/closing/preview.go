package closing

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/invoices"
	"quotad/internal/postgres"
)

// previewPeriods is the maximum number of periods that a preview closes. Each period takes some 20 ms, during
// which admins wait.
const previewPeriods = 24

// Preview is the predicted result of a change. The drafts are finalized in their order, before the end of the
// period that runs from At on. So each invoice can use only the credits that earlier drafts leave.
type Preview struct {
	At       int64            // the instant at which the change takes effect, µs by the customer's clock
	Invoice  *billing.Invoice // the draft of the period that ends at At, with the usage so far; nil if none is created
	Upcoming *billing.Invoice // the invoice of the period that runs from At on; nil without such a period
}

// Preview simulates a change, see accounts.Try, and closes the periods that end by its instant like the
// worker. Counters are not fenced, so the result omits usage that arrives later. look reads within the same
// transaction, when only the change itself is written.
//
// Because other admin writes wait, Preview has only three tenths of the usual time limit, 3 s by default.
// Errors: the errors of accounts.Try and look, and billing.ErrFarPreview.
func (w *Worker) Preview(ctx context.Context, key string, t *accounts.Trial, look func(ctx context.Context, tx pgx.Tx) error) (p *Preview, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.accounts.Within()*3/10)
	defer cancel()
	err = w.accounts.Try(ctx, key, t, func(ctx context.Context, tx pgx.Tx, customer, at int64) error {
		if err := look(ctx, tx); err != nil {
			return err
		}
		p = &Preview{At: at}
		return w.foresee(ctx, tx, customer, p)
	})
	return p, err
}

// foresee runs all steps of a customer up to an instant, and assembles the invoice of the next period.
func (w *Worker) foresee(ctx context.Context, tx pgx.Tx, customer int64, p *Preview) error {
	ids := []int64{customer}
	draft := "" // id of the invoice for the period that ends at the instant
	for closed := 0; ; {
		b := new(pgx.Batch)
		read, next := accounts.QueueCustomers(b, ids, p.At), accounts.QueueStepsAtOnce(b, ids, p.At)
		if err := postgres.Send(ctx, tx, b); err != nil {
			return err
		}
		c, s := read[customer], next[customer]
		if c == nil {
			return billing.ErrAnonymous
		}
		c.Now = max(c.Now, p.At)
		if s.Kind == "" || s.At > p.At {
			return w.foreseeNext(ctx, tx, c, draft, p)
		}
		if s.Kind == accounts.StepClose {
			if closed++; closed > previewPeriods {
				return billing.ErrFarPreview
			}
		}
		j := &job{c: c, at: s.At, draft: s.Draft}
		if err := w.foreseeStep(ctx, tx, s.Kind, j); err != nil {
			return err
		}
		if t := j.task; s.Kind == accounts.StepClose && t.Period.End == p.At && !t.Empty() {
			p.Invoice, draft = &t.Result.Invoice, t.Result.Invoice.ID
			p.Invoice.ID = "" // the rollback removes the invoice with this id
		}
	}
}

// foreseeStep runs a step like doSteps, except that counters are not fenced.
func (w *Worker) foreseeStep(ctx context.Context, tx pgx.Tx, kind string, j *job) (err error) {
	due := []*job{j}
	if kind == accounts.StepClose {
		lines, err := accounts.Timelines(ctx, tx, customersOf(due))
		if err == nil {
			err = w.closeFenced(ctx, tx, due, lines)
		}
		if err != nil {
			return err
		}
		return j.err
	}
	_, _, err = w.doSteps(ctx, tx, map[string][]*job{kind: due})
	if err == nil {
		err = j.err
	}
	return err
}

// foreseeNext assembles the invoice of the period that runs at the instant of a change, after all drafts. If
// no period runs, it assembles only the drafts. draft is the id of p.Invoice.
func (w *Worker) foreseeNext(ctx context.Context, tx pgx.Tx, c *accounts.Customer, draft string, p *Preview) error {
	var next *invoices.Task
	if c.Open != nil && c.Open.Start <= p.At {
		lines, err := accounts.Timelines(ctx, tx, map[int64]*accounts.Customer{c.ID: c})
		if err != nil {
			return err
		}
		next = invoices.PeriodTask(c, lines[c.ID], c.Open, 0)
	}
	drafts, err := w.invoices.AssembleAfterDrafts(ctx, tx, c, next)
	if err != nil {
		return err
	}
	if again := drafts[draft]; again != nil {
		p.Invoice.CreditsMinor, p.Invoice.AmountDueMinor = again.CreditsMinor, again.AmountDueMinor
	}
	if next != nil {
		p.Upcoming = &next.Result.Invoice
	}
	return nil
}
