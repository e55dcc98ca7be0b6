package invoices

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/plans"
	"quotad/internal/postgres"
	"quotad/internal/quota/usage"
)

// correctable finds, of customers that have adjustments that no invoice has taken, the usage lines
// whose closed periods these concern. A period counts while its invoice is finalized and not void.
// Only hours before the open period are looked at: adjustments of the open one are its own usage. What waits
// of a period whose months were taken out is not: its usage is not there any more.
// OFFSET 0 keeps the order, from one customer to its few rows.
const correctable = `
	SELECT w.customer, m.id, m.key, m.name, m.unit, i.id::text, coalesce(i.prefix || i.number, ''),
		p.chain, p.n, p.start_at, p.end_at, p.full_start, p.full_end, p.known_end, p.trial, p.plan_id, p.version, p.prices
	FROM unnest($1::bigint[], $2::bigint[]) AS w (customer, before)
	JOIN LATERAL (
		SELECT DISTINCT d.chain, d.n, a.meter FROM (
			SELECT DISTINCT meter, hour FROM open_adjustments WHERE customer = w.customer AND hour < w.before) a
		JOIN LATERAL (
			SELECT chain, n, end_at FROM periods WHERE customer_id = w.customer AND start_at <= a.hour ORDER BY start_at DESC LIMIT 1
		) d ON a.hour < d.end_at OFFSET 0) touched ON true
	JOIN LATERAL (
		SELECT * FROM periods WHERE customer_id = w.customer AND chain = touched.chain AND n = touched.n
			AND start_at >= (SELECT before FROM archive) OFFSET 0) p ON true
	JOIN meters m ON m.id = touched.meter
	JOIN LATERAL (
		SELECT * FROM invoices WHERE customer_id = w.customer AND chain = p.chain AND n = p.n AND kind = 'period'
			AND status IN ('finalized', 'paid', 'credited') OFFSET 0) i ON true
	JOIN LATERAL (SELECT n FROM invoice_lines WHERE invoice_id = i.id AND kind = 'usage' AND meter = m.key OFFSET 0) l ON true
	ORDER BY w.customer, p.start_at, l.n`

// corrections are usage lines of closed periods to which adjustments have come.
type corrections struct {
	lines []corrected
	spans []usage.Span          // the period and meter of each
	keys  []accounts.VersionKey // that price it
}

// corrected is a correction, and the tasks that take it.
type corrected struct {
	by []*Task
	assembly.Correction
}

// queueCorrections finds what may have come to closed periods since their invoices were finalized,
// for addCorrections. The tasks' maps of meters get those that are named.
func queueCorrections(b *pgx.Batch, tasks []*Task) *corrections {
	found := new(corrections)
	of := queueTakers(b, tasks)
	if len(of) == 0 {
		return found
	}
	var customers, before []int64
	for id, t := range of {
		customers, before = append(customers, id), append(before, t.openStart)
	}
	var customer int64
	var m plans.Meter
	var c assembly.Correction
	var prices []byte
	p := &c.Of.Period
	postgres.QueueEach(b, []any{
		&customer, &m.ID, &m.Key, &m.Name, &m.Unit, &c.OfInvoice, &c.OfNumber,
		&p.Chain, &p.N, &p.Start, &p.End, &p.FullStart, &p.FullEnd, &p.KnownEnd, &p.Trial, &p.PlanID, &p.Version, &prices,
	}, func() (err error) {
		c.Meter = m.Key
		by := of[customer].take(billing.Corrected{Meter: c.Meter, Invoice: c.OfInvoice})
		if len(by) == 0 {
			return nil
		}
		by[0].in.Meters[m.Key] = m
		p.Prices, err = accounts.ReadPrices(prices)
		found.lines, found.keys = append(found.lines, corrected{by, c}), append(found.keys, accounts.PricedBy(p))
		found.spans = append(found.spans, usage.Span{Customer: customer, Meter: m.ID, Start: p.Start, End: p.End})
		return err
	}, correctable, customers, before)
	return found
}

// addCorrections gives tasks the corrections that were found: the adjustments that no invoice has
// taken. What was taken is what was billed before. The queue has no say in it.
func (is *Invoices) addCorrections(ctx context.Context, q postgres.Querier, found *corrections) error {
	if len(found.lines) == 0 {
		return nil
	}
	versions, err := is.accounts.Versions.Get(ctx, q, found.keys)
	if err != nil {
		return err
	}
	sums, err := used(ctx, q, found.spans)
	if err != nil {
		return err
	}
	earlier, err := claimed(ctx, q, found.spans)
	if err != nil {
		return err
	}
	stands, err := found.standings(ctx, q)
	if err != nil {
		return err
	}
	for i := range sums {
		left := without(sums[i].Adjustments, earlier[i])
		if len(left) == 0 {
			continue
		}
		c := &found.lines[i].Correction
		c.BilledMinor, c.NotedMinor = stands.billed(c)
		c.Now, c.Counted, c.Of = sums[i].Units, sums[i].Before(left), versions.Terms(&c.Of.Period)
		for _, t := range found.lines[i].by {
			t.in.Corrections = append(t.in.Corrections, *c)
			t.counted[countedBy{c.Meter, c.OfInvoice}] = counted{found.spans[i].Meter, left}
		}
	}
	return nil
}

// standings reads how the corrected lines stand.
func (f *corrections) standings(ctx context.Context, q postgres.Querier) (standings, error) {
	ids := make([]string, len(f.lines))
	for i := range f.lines {
		ids[i] = f.lines[i].OfInvoice
	}
	return readStandings(ctx, q, ids)
}

// taker is the tasks of a customer that take corrections: a new invoice, and drafts that wait for
// some.
type taker struct {
	openStart int64
	fresh     *Task
	waiting   map[billing.Corrected][]*Task
	elsewhere map[billing.Corrected]bool // a stored draft waits for it
}

// take are the tasks that take a correction. What a draft waits for is not for another invoice.
func (t *taker) take(c billing.Corrected) []*Task {
	if t.fresh == nil || t.elsewhere[c] {
		return t.waiting[c]
	}
	return append(t.waiting[c], t.fresh)
}

const readWaiting = `
	SELECT customer_id, w->>'meter', w->>'invoice' FROM invoices, jsonb_array_elements(document->'waiting') w
	WHERE customer_id = ANY ($1) AND status = 'draft'`

// queueTakers finds the tasks that take corrections, by customer.
func queueTakers(b *pgx.Batch, tasks []*Task) map[int64]*taker {
	of := make(map[int64]*taker)
	var fresh []int64
	for _, t := range tasks {
		if !t.fresh && (t.draft == nil || len(t.draft.Waiting) == 0) {
			continue
		}
		mine := of[t.c.ID]
		if mine == nil {
			mine = &taker{openStart: t.c.OpenStart(), waiting: make(map[billing.Corrected][]*Task), elsewhere: make(map[billing.Corrected]bool)}
			of[t.c.ID] = mine
		}
		if t.fresh {
			mine.fresh, fresh = t, append(fresh, t.c.ID)
			continue
		}
		for _, c := range t.draft.Waiting {
			mine.waiting[c] = append(mine.waiting[c], t)
		}
	}
	if len(fresh) > 0 {
		var id int64
		var c billing.Corrected
		postgres.QueueEach(b, []any{&id, &c.Meter, &c.Invoice}, func() error {
			of[id].elsewhere[c] = true
			return nil
		}, readWaiting, fresh)
	}
	return of
}

// freshTasks are the tasks that take charges and corrections, by customer.
func freshTasks(tasks []*Task) map[int64]*Task {
	of := make(map[int64]*Task)
	for _, t := range tasks {
		if t.fresh {
			of[t.c.ID] = t
		}
	}
	return of
}

// countersAtOnce bounds what one statement reads.
const countersAtOnce = 80

// used reads what spans hold, in their order. What is of one span is of one snapshot.
func used(ctx context.Context, q postgres.Querier, spans []usage.Span) ([]usage.Sum, error) {
	all := make([]usage.Sum, 0, len(spans))
	for some := range slices.Chunk(spans, countersAtOnce) {
		sums, err := usage.Sums(ctx, q, some)
		if err != nil {
			return nil, err
		}
		all = append(all, sums...)
	}
	return all, nil
}
