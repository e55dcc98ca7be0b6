package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
)

// heldRetry is when a draft that is held is tried again, µs: what was adjusted meanwhile may
// have made it small enough.
const heldRetry = int64(3600e6)

// finalize finalizes drafts of customers whose lock the transaction has, one of each, at the
// instants of the jobs. Those that are held stay drafts. It takes the numbers last, since their
// lock is all customers'. A job's task tells what became of its draft.
func (l *Ledger) finalize(ctx context.Context, tx pgx.Tx, due []*job) error {
	if err := l.draftTasks(ctx, tx, due); err != nil {
		return err
	}
	var tasks []*task
	for _, j := range due {
		if j.err == nil {
			tasks = append(tasks, j.task)
		}
	}
	if err := l.assemble(ctx, tx, tasks); err != nil {
		return err
	}
	b := new(pgx.Batch)
	var final []*job
	for _, j := range due {
		if j.err == nil {
			j.err = j.task.err
		}
		if j.err == nil {
			final = append(final, j)
		}
	}
	if err := errors.Join(queueNewLines(b, final), queueCredits(b, final)); err != nil {
		return err
	}
	if err := run(ctx, tx, b); err != nil {
		return err
	}
	return l.number(ctx, tx, final)
}

const readDrafts = `SELECT` + invoiceColumns + `WHERE i.id = ANY ($1::uuid[])`

const readClosed = `
	SELECT p.customer_id, p.chain, p.n, p.start_at, p.end_at, p.full_start, p.full_end, p.known_end, p.trial, p.plan_id, p.version, p.prices
	FROM unnest($1::bigint[], $2::integer[], $3::integer[]) AS w (customer, chain, n)
	JOIN periods p ON p.customer_id = w.customer AND p.chain = w.chain AND p.n = w.n`

// periodKey names a closed period.
type periodKey struct {
	customer int64
	chain, n int
}

// closedPeriods reads closed periods. Those that are not closed are left out.
func closedPeriods(ctx context.Context, q querier, keys []periodKey) (map[periodKey]billing.Period, error) {
	customers := make([]int64, len(keys))
	chains, numbers := make([]int, len(keys)), make([]int, len(keys))
	for i, k := range keys {
		customers[i], chains[i], numbers[i] = k.customer, k.chain, k.n
	}
	return readPeriodRows(ctx, q, readClosed, customers, chains, numbers)
}

// readPeriodRows reads periods. statement has the columns of readClosed.
func readPeriodRows(ctx context.Context, q querier, statement string, args ...any) (map[periodKey]billing.Period, error) {
	all := make(map[periodKey]billing.Period)
	var customer int64
	var p billing.Period
	var prices []byte
	err := forEach(ctx, q, []any{
		&customer, &p.Chain, &p.N, &p.Start, &p.End, &p.FullStart, &p.FullEnd, &p.KnownEnd, &p.Trial, &p.PlanID, &p.Version, &prices,
	}, func() (err error) {
		p.Prices, err = readPrices(prices)
		all[periodKey{customer, p.Chain, p.N}] = p
		return err
	}, statement, args...)
	return all, err
}

// draftTasks gives each job the task to assemble its draft anew.
func (l *Ledger) draftTasks(ctx context.Context, q querier, due []*job) error {
	ids := make([]string, len(due))
	for i, j := range due {
		ids[i] = j.draft
	}
	drafts, err := invoicesOf(ctx, q, readDrafts, ids)
	if err != nil {
		return err
	}
	customers := make(map[int64]*customer, len(due))
	for _, j := range due {
		customers[j.c.id] = j.c
	}
	tasks, err := again(ctx, q, drafts, customers)
	if err != nil {
		return err
	}
	byID := make(map[string]*task, len(tasks))
	for _, t := range tasks {
		byID[t.draft.ID] = t
	}
	for _, j := range due {
		if j.task = byID[j.draft]; j.task == nil {
			j.err = fmt.Errorf("draft %s: %w", j.draft, billing.ErrUnknownInvoice)
		}
	}
	return nil
}

// again are the tasks that assemble stored drafts anew.
func again(ctx context.Context, q querier, drafts []*billing.Invoice, customers map[int64]*customer) ([]*task, error) {
	var keys []periodKey
	for _, d := range drafts {
		if d.Kind == billing.KindPeriod {
			keys = append(keys, periodKey{d.Customer, d.Chain, d.N})
		}
	}
	closed, err := closedPeriods(ctx, q, keys)
	if err != nil {
		return nil, err
	}
	var tasks []*task
	for _, d := range drafts {
		c := customers[d.Customer]
		period, there := closed[periodKey{d.Customer, d.Chain, d.N}]
		switch {
		case d.Kind == billing.KindOpening: // its base is fixed, so no more is asked of its period
			period = openingPeriod(d, c)
		case !there:
			return nil, fmt.Errorf("draft %s is of a period that is not closed", d.ID)
		}
		tasks = append(tasks, &task{c: c, kind: d.Kind, period: period, draft: d, fixed: slices.Clip(d.Lines)})
	}
	return tasks, nil
}

// openingPeriod is the period of an opening as the opening itself knows it. A period that has
// become a trial since is one here, too.
func openingPeriod(d *billing.Invoice, c *customer) billing.Period {
	return billing.Period{
		Chain: d.Chain, N: d.N, Start: d.PeriodStart, End: d.PeriodEnd, FullStart: d.PeriodStart, FullEnd: d.PeriodEnd, KnownEnd: d.PeriodEnd,
		Trial:  c.open != nil && c.open.Chain == d.Chain && c.open.N == d.N && c.open.Trial,
		PlanID: d.PlanID, Version: d.PriceVersion,
	}
}

// queueNewLines writes the lines of invoices that are not as they were stored.
func queueNewLines(b *pgx.Batch, final []*job) error {
	var changed []string
	var lines []lineRow
	var counted []countedRow
	for _, j := range final {
		i := &j.task.result.Invoice
		if i.Held == "" && !sameLines(i.Lines, j.task.draft.Lines) {
			changed, lines = append(changed, i.ID), append(lines, lineRows(i)...)
		}
		if i.Held == "" {
			counted = append(append(counted, j.task.usageRows()...), j.task.correctionRows()...)
		}
	}
	if len(changed) > 0 {
		b.Queue(deleteLines, changed)
	}
	return errors.Join(queueRows(b, insertLines, lines), queueRows(b, insertCounted, counted))
}

func sameLines(a, b []billing.Line) bool {
	return slices.EqualFunc(a, b, func(a, b billing.Line) bool {
		return slices.EqualFunc(a.Tiers, b.Tiers, billing.TierLine.SameAs) && a.N == b.N && a.Kind == b.Kind && a.Meter == b.Meter && a.Description == b.Description && a.From == b.From && a.To == b.To &&
			a.Quantity == b.Quantity && a.Included == b.Included && a.PlanVersion == b.PlanVersion && a.AmountMinor == b.AmountMinor && a.OfInvoice == b.OfInvoice &&
			a.Priced == b.Priced && a.Applied == b.Applied
	})
}

// takeNumbers also returns the seller as its number is taken.
const takeNumbers = `
	UPDATE sellers SET next_number = next_number + $2 WHERE key = $1
	RETURNING next_number - $2, name, address, tax_id, prefix`

// number numbers invoices and writes what finalizing them makes. The seller's series is locked
// from here to the commit.
func (l *Ledger) number(ctx context.Context, tx pgx.Tx, final []*job) error {
	bySeller := make(map[string][]*job)
	var rows []invoiceRow
	for _, j := range final {
		i := &j.task.result.Invoice
		if i.Held == "" {
			bySeller[i.Seller.Key] = append(bySeller[i.Seller.Key], j)
			continue
		}
		i.FinalizeAt = max(j.c.now, j.at) + heldRetry
		rows = append(rows, rowOf(i, 0))
	}
	if len(bySeller) > 0 {
		pacedOf(tx).hurry()
	}
	for _, key := range sortedKeys(bySeller) {
		of := bySeller[key]
		seller, next := billing.Seller{Key: key}, int64(0)
		err := tx.QueryRow(ctx, takeNumbers, key, len(of)).Scan(&next, &seller.Name, &seller.Address, &seller.TaxID, &seller.Prefix)
		if err != nil {
			return err
		}
		for n, j := range of {
			i := &j.task.result.Invoice
			i.Seller = seller
			*i = assembly.Finalize(*i, next+int64(n), j.at)
			if i.Digested, err = assembly.Digest(i); err != nil {
				return err
			}
			rows = append(rows, rowOf(i, next+int64(n)))
		}
	}
	b := new(pgx.Batch)
	if err := queueRows(b, updateInvoices, rows); err != nil {
		return err
	}
	return run(ctx, tx, b)
}
