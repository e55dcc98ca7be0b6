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

// correctable selects the usage lines of closed periods whose customers have adjustments on no invoice. A
// period is included if its invoice is finalized and not void. Only hours before the open period count,
// because adjustments of the open period belong to its own usage. Periods of archived months are excluded,
// because their usage is no longer in the database. OFFSET 0 keeps the order of the joins, from one customer
// to its few rows.
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

// corrections contains the usage lines of closed periods for which new adjustments have arrived.
type corrections struct {
	lines []corrected
	spans []usage.Span          // the period and meter of each line
	keys  []accounts.VersionKey // plan versions that price the lines
}

// corrected is a correction and the tasks whose invoices will contain it.
type corrected struct {
	by []*Task
	assembly.Correction
}

// queueCorrections queues the read of adjustments that arrived for closed periods after finalization, for
// addCorrections. It adds the meters of the corrections to the tasks' maps.
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

// addCorrections adds to the tasks the corrections for adjustments that are on no invoice. The amount billed
// before comes from the invoiced adjustments. The queue does not affect any amount.
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

// standings reads the amounts billed and credited so far for the corrected lines.
func (f *corrections) standings(ctx context.Context, q postgres.Querier) (standings, error) {
	ids := make([]string, len(f.lines))
	for i := range f.lines {
		ids[i] = f.lines[i].OfInvoice
	}
	return readStandings(ctx, q, ids)
}

// taker contains the tasks of a customer whose invoices may contain corrections: a new invoice, and drafts
// that wait for corrections.
type taker struct {
	openStart int64
	fresh     *Task
	waiting   map[billing.Corrected][]*Task
	elsewhere map[billing.Corrected]bool // corrections for which a stored draft waits
}

// take returns the tasks whose invoices contain a correction. A correction for which a draft waits goes onto
// no other invoice.
func (t *taker) take(c billing.Corrected) []*Task {
	if t.fresh == nil || t.elsewhere[c] {
		return t.waiting[c]
	}
	return append(t.waiting[c], t.fresh)
}

const readWaiting = `
	SELECT customer_id, w->>'meter', w->>'invoice' FROM invoices, jsonb_array_elements(document->'waiting') w
	WHERE customer_id = ANY ($1) AND status = 'draft'`

// queueTakers returns the tasks that can include corrections, by customer. It also queues the read of
// corrections that are reserved for stored drafts.
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

// freshTasks returns the tasks whose invoices contain new charges and corrections, by customer.
func freshTasks(tasks []*Task) map[int64]*Task {
	of := make(map[int64]*Task)
	for _, t := range tasks {
		if t.fresh {
			of[t.c.ID] = t
		}
	}
	return of
}

// countersAtOnce is the maximum number of counters that one statement reads.
const countersAtOnce = 80

// used reads the usage of the spans, in their order. One snapshot supplies all usage of a span.
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
