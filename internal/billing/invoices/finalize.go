package invoices

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/events"
	"quotad/internal/postgres"
)

// heldRetry is the time, in µs, until a held draft is tried again, because adjustments may have made it small
// enough by then. A draft that waits for its seller's name is not retried by time, see accounts/naming.go.
const heldRetry = int64(3600e6)

// FinalizeDrafts finalizes the drafts of tasks, see DraftTask. The transaction has locked the customers, and
// each customer has one draft in due. Held drafts stay drafts. FinalizeDrafts takes the invoice numbers last,
// because all customers share their lock. It sets the result of each task.
func (is *Invoices) FinalizeDrafts(ctx context.Context, tx pgx.Tx, due []*Task) error {
	if err := readDraftTasks(ctx, tx, due); err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(due), (*Task).failed)
	if err := is.Assemble(ctx, tx, left); err != nil {
		return err
	}
	final := slices.DeleteFunc(left, (*Task).failed)
	b := new(pgx.Batch)
	if err := errors.Join(queueNewLines(b, final), queueCredits(b, final)); err != nil {
		return err
	}
	if err := postgres.Send(ctx, tx, b); err != nil {
		return err
	}
	return number(ctx, tx, final)
}

const readDrafts = `SELECT` + invoiceColumns + `WHERE i.id = ANY ($1::uuid[])`

// readDraftTasks reads the drafts of tasks that contain only a draft's id.
func readDraftTasks(ctx context.Context, q postgres.Querier, due []*Task) error {
	ids := make([]string, len(due))
	customers := make(map[int64]*accounts.Customer, len(due))
	for i, t := range due {
		ids[i], customers[t.c.ID] = t.draft.ID, t.c
	}
	drafts, err := invoicesOf(ctx, q, readDrafts, ids)
	if err != nil {
		return err
	}
	tasks, err := draftTasks(ctx, q, drafts, customers)
	if err != nil {
		return err
	}
	byID := make(map[string]*Task, len(tasks))
	for _, t := range tasks {
		byID[t.draft.ID] = t
	}
	for _, t := range due {
		if found := byID[t.draft.ID]; found != nil {
			found.at = t.at
			*t = *found
		} else {
			t.Err = fmt.Errorf("draft %s: %w", t.draft.ID, billing.ErrUnknownInvoice)
		}
	}
	return nil
}

// draftTasks returns tasks that assemble stored drafts again.
func draftTasks(ctx context.Context, q postgres.Querier, drafts []*billing.Invoice, customers map[int64]*accounts.Customer) ([]*Task, error) {
	var keys []accounts.PeriodKey
	for _, d := range drafts {
		if d.Kind == billing.KindPeriod && !d.Extra() {
			keys = append(keys, accounts.PeriodKey{Customer: d.Customer, Chain: d.Chain, N: d.N})
		}
	}
	closed, err := accounts.ClosedPeriods(ctx, q, keys)
	if err != nil {
		return nil, err
	}
	var tasks []*Task
	for _, d := range drafts {
		c := customers[d.Customer]
		period, there := closed[accounts.PeriodKey{Customer: d.Customer, Chain: d.Chain, N: d.N}]
		switch {
		case d.Kind == billing.KindOpening: // its base is fixed, so the stored invoice suffices
			period = openingPeriod(d, c)
		case d.Extra():
			period = billing.Period{Chain: d.Chain, N: d.N, Start: d.PeriodStart, End: d.PeriodEnd, PlanID: d.PlanID, Version: d.PriceVersion}
		case !there:
			return nil, fmt.Errorf("draft %s is of a period that is not closed", d.ID)
		}
		tasks = append(tasks, &Task{c: c, kind: d.Kind, Period: period, draft: d, fixed: slices.Clip(d.Lines)})
	}
	return tasks, nil
}

// openingPeriod returns the period of an opening invoice, built from the invoice. If the period has become a
// trial since, the result is a trial, too.
func openingPeriod(d *billing.Invoice, c *accounts.Customer) billing.Period {
	return billing.Period{
		Chain: d.Chain, N: d.N, Start: d.PeriodStart, End: d.PeriodEnd, FullStart: d.PeriodStart, FullEnd: d.PeriodEnd, KnownEnd: d.PeriodEnd,
		Trial:  c.Open != nil && c.Open.Chain == d.Chain && c.Open.N == d.N && c.Open.Trial,
		PlanID: d.PlanID, Version: d.PriceVersion,
	}
}

// queueNewLines queues the writes of lines for invoices whose lines have changed since the draft was stored.
func queueNewLines(b *pgx.Batch, final []*Task) error {
	var changed []string
	var lines []lineRow
	var counted []countedRow
	for _, t := range final {
		i := &t.Result.Invoice
		if i.Held == "" && !sameLines(i.Lines, t.draft.Lines) {
			changed, lines = append(changed, i.ID), append(lines, lineRows(i)...)
		}
		if i.Held == "" {
			counted = append(append(counted, t.usageRows()...), t.correctionRows()...)
		}
	}
	if len(changed) > 0 {
		b.Queue(deleteLines, changed)
	}
	return errors.Join(postgres.QueueRows(b, insertLines, lines), postgres.QueueRows(b, insertCounted, counted))
}

func sameLines(a, b []billing.Line) bool {
	return slices.EqualFunc(a, b, func(a, b billing.Line) bool {
		return a.N == b.N && a.Kind == b.Kind && a.Meter == b.Meter &&
			a.Description == b.Description && a.From == b.From && a.To == b.To &&
			a.Quantity == b.Quantity && a.PlanVersion == b.PlanVersion && a.AmountMinor == b.AmountMinor && a.OfInvoice == b.OfInvoice &&
			a.BaseInvoice == b.BaseInvoice && a.BaseLine == b.BaseLine && a.PricedAs(&b)
	})
}

// takeNumbers takes $2 numbers of the live series and $3 numbers of the test series. It also returns the
// seller as stored at that moment.
const takeNumbers = `
	UPDATE sellers SET next_number = next_number + $2, next_test_number = next_test_number + $3 WHERE key = $1
	RETURNING next_number - $2, next_test_number - $3, credit_note_prefix, ` + accounts.PaperColumns

// takeNoteNumber takes the next number of a separate series for credit notes.
const takeNoteNumber = `
	INSERT INTO seller_numbers AS n (seller, series, prefix, next_number) VALUES ($1, $2, $3, 2)
	ON CONFLICT (seller, series, prefix) DO UPDATE SET next_number = n.next_number + 1
	RETURNING next_number - 1`

// numbers contains the next invoice number of each series of a seller.
type numbers struct {
	seller billing.Seller
	notes  string // the prefix of credit notes, if they have a separate series
	next   map[string]int64
}

// numbersOf takes one number of the seller for each invoice. The seller's series stay locked until the
// commit.
func numbersOf(ctx context.Context, tx pgx.Tx, seller string, of ...*billing.Invoice) (n numbers, err error) {
	n.next = make(map[string]int64)
	for _, i := range of {
		n.next[i.Series()]++
	}
	var live, test int64
	err = tx.QueryRow(ctx, takeNumbers, seller, n.next[billing.SeriesLive], n.next[billing.SeriesTest]).
		Scan(append([]any{&live, &test, &n.notes}, accounts.OnPaper(&n.seller)...)...)
	n.next[billing.SeriesLive], n.next[billing.SeriesTest] = live, test
	return n, err
}

// noteNumberOf takes the number of a credit note. The seller stays locked until the commit.
func noteNumberOf(ctx context.Context, tx pgx.Tx, note *billing.Invoice) (numbers, error) {
	n, err := numbersOf(ctx, tx, note.Seller.Key)
	if err != nil || n.notes == "" {
		if err == nil {
			n, err = numbersOf(ctx, tx, note.Seller.Key, note)
		}
		return n, err
	}
	n.seller.Prefix = n.notes
	series := note.Series()
	var next int64
	err = tx.QueryRow(ctx, takeNoteNumber, n.seller.Key, series, billing.PrefixIn(series, n.notes)).Scan(&next)
	n.next[series] = next
	return n, err
}

// give finalizes an invoice of the seller at an instant and assigns the next number of its series. It returns
// the invoice's row.
func (n *numbers) give(i *billing.Invoice, at int64) (row invoiceRow, err error) {
	series := i.Series()
	i.Seller.Prefix = billing.PrefixIn(series, n.seller.Prefix)
	number := n.next[series]
	n.next[series]++
	if *i, err = assembly.Finalize(*i, number, at); err == nil {
		i.Digested, err = assembly.Digest(i)
	}
	return rowOf(i, number), err
}

// number assigns numbers to invoices and writes the results of finalization. The sellers' series stay locked
// until the commit.
func number(ctx context.Context, tx pgx.Tx, final []*Task) error {
	bySeller := make(map[string][]*Task)
	var held []*Task
	for _, t := range final {
		if i := &t.Result.Invoice; i.Held == "" {
			bySeller[i.Seller.Key] = append(bySeller[i.Seller.Key], t)
		} else {
			held = append(held, t)
		}
	}
	rows, err := heldRows(ctx, tx, held)
	if err != nil {
		return err
	}
	for _, key := range sortedKeys(bySeller) {
		of := make([]*billing.Invoice, len(bySeller[key]))
		for n, t := range bySeller[key] {
			of[n] = &t.Result.Invoice
		}
		n, err := numbersOf(ctx, tx, key, of...)
		if err != nil {
			return err
		}
		for k, t := range bySeller[key] {
			of[k].Seller = n.seller
			row, err := n.give(of[k], t.at)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
	}
	b := new(pgx.Batch)
	if err := errors.Join(postgres.QueueRows(b, updateInvoices, rows), events.Queue(b, finalEvents(final)...)); err != nil {
		return err
	}
	return postgres.Send(ctx, tx, b)
}

// whenNamed is the finalize_at of a draft that waits for its seller's name. It is never reached by time.
const whenNamed = int64(math.MaxInt64)

const lockNameless = `SELECT key FROM sellers WHERE key = ANY ($1) AND name = '' ORDER BY key FOR SHARE`

// heldRows returns the rows of drafts that stay drafts, with the instants of their next attempts.
func heldRows(ctx context.Context, tx pgx.Tx, held []*Task) (rows []invoiceRow, err error) {
	var sellers, nameless []string
	for _, t := range held {
		if s := &t.Result.Invoice.Seller; s.Name == "" {
			sellers = append(sellers, s.Key)
		}
	}
	if len(sellers) > 0 {
		found, _ := tx.Query(ctx, lockNameless, sellers)
		if nameless, err = pgx.CollectRows(found, pgx.RowTo[string]); err != nil {
			return nil, err
		}
	}
	for _, t := range held {
		i := &t.Result.Invoice
		now := max(t.c.Now, t.at)
		switch {
		case slices.Contains(nameless, i.Seller.Key):
			i.FinalizeAt = whenNamed
		case i.Seller.Name == "": // it was named a moment ago
			i.FinalizeAt = now
		default:
			i.FinalizeAt = now + heldRetry
		}
		rows = append(rows, rowOf(i, 0))
	}
	return rows, nil
}

// correctionOf returns the time for which a customer's drafts stay drafts. It is 0 for an erased customer.
func (is *Invoices) correctionOf(c *accounts.Customer) int64 {
	if c.Erased {
		return 0
	}
	return is.correctionTime
}

const claimCharges = `
	UPDATE charges c SET invoice_id = w.invoice FROM unnest($1::bigint[], $2::uuid[]) AS w (customer, invoice)
	JOIN LATERAL (SELECT id FROM charges WHERE customer_id = w.customer AND invoice_id IS NULL OFFSET 0) u ON true
	WHERE c.customer_id = w.customer AND c.id = u.id`

// QueueDrafts queues new drafts with new ids, created at the instants of their tasks. The drafts claim the
// charges that they contain.
func (is *Invoices) QueueDrafts(b *pgx.Batch, drafts []*Task) error {
	var invoices []invoiceRow
	var lines []lineRow
	var counted []countedRow
	var customers []int64
	var ids []string
	for _, t := range drafts {
		i := &t.Result.Invoice
		i.ID, i.MadeAt, i.FinalizeAt = newID(t.c.Now), t.at, t.at+is.correctionOf(t.c)
		invoices, lines = append(invoices, rowOf(i, 0)), append(lines, lineRows(i)...)
		counted = append(counted, t.correctionRows()...)
		if len(t.in.Charges) > 0 {
			customers, ids = append(customers, t.c.ID), append(ids, i.ID)
		}
	}
	if err := errors.Join(postgres.QueueRows(b, insertInvoices, invoices), postgres.QueueRows(b, insertLines, lines),
		postgres.QueueRows(b, insertCounted, counted),
		events.Queue(b, draftEvents(drafts)...)); err != nil {
		return err
	}
	if len(customers) > 0 {
		b.Queue(claimCharges, customers, ids)
	}
	return nil
}
