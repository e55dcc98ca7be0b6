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
// have made it small enough. One that waits for its seller's name is not tried before: see naming.go.
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

// draftTasks gives each job the task to assemble its draft again.
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

// again are the tasks that assemble stored drafts again.
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
		return slices.EqualFunc(a.Tiers, b.Tiers, billing.SameTier) && a.N == b.N && a.Kind == b.Kind && a.Meter == b.Meter && a.Description == b.Description && a.From == b.From && a.To == b.To &&
			a.Quantity == b.Quantity && a.Included == b.Included && a.PlanVersion == b.PlanVersion && a.AmountMinor == b.AmountMinor && a.OfInvoice == b.OfInvoice &&
			a.Priced == b.Priced && a.Applied == b.Applied
	})
}

// takeNumbers takes $2 numbers of the series live and $3 of the series test. It also returns the
// seller as its numbers are taken.
const takeNumbers = `
	UPDATE sellers SET next_number = next_number + $2, next_test_number = next_test_number + $3 WHERE key = $1
	RETURNING next_number - $2, next_test_number - $3, name, address, tax_id, prefix`

// numbers are what a seller gives to invoices: the next number of each series.
type numbers struct {
	seller billing.Seller
	next   map[string]int64
}

// numbersOf takes as many numbers of a seller as invoices need. Its series are locked from here to
// the commit.
func numbersOf(ctx context.Context, tx pgx.Tx, seller string, of ...*billing.Invoice) (numbers, error) {
	n := numbers{billing.Seller{Key: seller}, make(map[string]int64)}
	for _, i := range of {
		n.next[i.Series()]++
	}
	var live, test int64
	s := &n.seller
	err := tx.QueryRow(ctx, takeNumbers, seller, n.next[billing.SeriesLive], n.next[billing.SeriesTest]).
		Scan(&live, &test, &s.Name, &s.Address, &s.TaxID, &s.Prefix)
	n.next[billing.SeriesLive], n.next[billing.SeriesTest] = live, test
	return n, err
}

// give finalizes an invoice of the seller at an instant, with the next number of its series. It
// returns the invoice's row.
func (n *numbers) give(i *billing.Invoice, at int64) (row invoiceRow, err error) {
	series := i.Series()
	if i.Seller.Prefix = n.seller.Prefix; series == billing.SeriesTest {
		i.Seller.Prefix = billing.TestPrefix + i.Seller.Prefix
	}
	number := n.next[series]
	n.next[series]++
	*i = assembly.Finalize(*i, number, at)
	i.Digested, err = assembly.Digest(i)
	return rowOf(i, number), err
}

// number numbers invoices and writes what finalizing them makes. The seller's series is locked
// from here to the commit.
func (l *Ledger) number(ctx context.Context, tx pgx.Tx, final []*job) error {
	bySeller := make(map[string][]*job)
	var held []*job
	for _, j := range final {
		if i := &j.task.result.Invoice; i.Held == "" {
			bySeller[i.Seller.Key] = append(bySeller[i.Seller.Key], j)
		} else {
			held = append(held, j)
		}
	}
	rows, err := heldRows(ctx, tx, held)
	if err != nil {
		return err
	}
	for _, key := range sortedKeys(bySeller) {
		of := make([]*billing.Invoice, len(bySeller[key]))
		for n, j := range bySeller[key] {
			of[n] = &j.task.result.Invoice
		}
		n, err := numbersOf(ctx, tx, key, of...)
		if err != nil {
			return err
		}
		for k, j := range bySeller[key] {
			of[k].Seller = n.seller
			row, err := n.give(of[k], j.at)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
	}
	b := new(pgx.Batch)
	if err := queueRows(b, updateInvoices, rows); err != nil {
		return err
	}
	return run(ctx, tx, b)
}
