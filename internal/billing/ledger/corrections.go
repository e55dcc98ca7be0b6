package ledger

import (
	"context"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/quota/model"
)

// correctable finds, of customers that have adjustments, the usage lines whose closed periods
// these concern. A period counts while its invoice is finalized and not void. Only hours before
// the open period are looked at: adjustments of the open one are its own usage. OFFSET 0 keeps the order, from one customer to its
// few rows.
const correctable = `
	SELECT w.customer, m.id, m.key, i.id::text, coalesce(i.prefix || i.number, ''),
		p.chain, p.n, p.start_at, p.end_at, p.full_start, p.full_end, p.known_end, p.trial, p.plan_id, p.version, p.prices
	FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) AS w (shard, customer, before)
	JOIN LATERAL (
		SELECT DISTINCT d.chain, d.n, a.meter FROM (
			SELECT DISTINCT meter, hour FROM adjustments WHERE shard = w.shard AND customer = w.customer AND hour < w.before) a
		JOIN LATERAL (
			SELECT chain, n, end_at FROM periods WHERE customer_id = w.customer AND start_at <= a.hour ORDER BY start_at DESC LIMIT 1
		) d ON a.hour < d.end_at OFFSET 0) touched ON true
	JOIN LATERAL (
		SELECT * FROM periods WHERE customer_id = w.customer AND chain = touched.chain AND n = touched.n OFFSET 0) p ON true
	JOIN meters m ON m.id = touched.meter
	JOIN LATERAL (
		SELECT * FROM invoices WHERE customer_id = w.customer AND chain = p.chain AND n = p.n AND kind = 'period'
			AND status IN ('finalized', 'paid', 'credited') OFFSET 0) i ON true
	JOIN LATERAL (SELECT n FROM invoice_lines WHERE invoice_id = i.id AND kind = 'usage' AND meter = m.key OFFSET 0) l ON true
	ORDER BY w.customer, p.start_at, l.n`

// readCorrections finds what has come to closed periods since their invoices were finalized: the
// adjustments of them that no invoice has taken. What was taken is what was billed before.
func (l *Ledger) readCorrections(ctx context.Context, q querier, tasks []*task) error {
	of, err := takers(ctx, q, tasks)
	if err != nil || len(of) == 0 {
		return err
	}
	var shards []int16
	var customers, before []int64
	for id, t := range of {
		shards, customers, before = append(shards, model.Shard(id)), append(customers, id), append(before, t.openStart)
	}
	type correction struct {
		of []*task
		assembly.Correction
	}
	var all []correction
	var spans []span
	var keys []versionKey
	var customer int64
	var meter int32
	var c assembly.Correction
	var prices []byte
	p := &c.Of.Period
	err = forEach(ctx, q, []any{
		&customer, &meter, &c.Meter, &c.OfInvoice, &c.OfNumber,
		&p.Chain, &p.N, &p.Start, &p.End, &p.FullStart, &p.FullEnd, &p.KnownEnd, &p.Trial, &p.PlanID, &p.Version, &prices,
	}, func() (err error) {
		taking := of[customer].take(billing.Corrected{Meter: c.Meter, Invoice: c.OfInvoice})
		if len(taking) == 0 {
			return nil
		}
		p.Prices, err = readPrices(prices)
		all, keys = append(all, correction{taking, c}), append(keys, pricedBy(p))
		spans = append(spans, span{customer, meter, p.Start, p.End})
		return err
	}, correctable, shards, customers, before)
	if err != nil || len(all) == 0 {
		return err
	}
	versions, err := l.versions.get(ctx, q, keys)
	if err != nil {
		return err
	}
	sums, err := used(ctx, q, spans)
	if err != nil {
		return err
	}
	earlier, err := claimed(ctx, q, spans)
	if err != nil {
		return err
	}
	for i := range sums {
		left := sums[i].without(earlier[i])
		if len(left) == 0 {
			continue
		}
		c := &all[i].Correction
		c.Now, c.Counted, c.Of.Plan = sums[i].units, sums[i].before(left), versions[keys[i]].prices
		for _, t := range all[i].of {
			t.in.Corrections = append(t.in.Corrections, *c)
			t.counted[countedBy{c.Meter, c.OfInvoice}] = counted{spans[i].meter, left}
		}
	}
	return nil
}

// taker is the tasks of a customer that take corrections: a new invoice, and drafts that wait for
// some.
type taker struct {
	openStart int64
	fresh     *task
	waiting   map[billing.Corrected][]*task
	elsewhere map[billing.Corrected]bool // a stored draft waits for it
}

// take are the tasks that take a correction. What a draft waits for is not for another invoice.
func (t *taker) take(c billing.Corrected) []*task {
	if t.fresh == nil || t.elsewhere[c] {
		return t.waiting[c]
	}
	return append(t.waiting[c], t.fresh)
}

const readWaiting = `
	SELECT customer_id, w->>'meter', w->>'invoice' FROM invoices, jsonb_array_elements(document->'waiting') w
	WHERE customer_id = ANY ($1) AND status = 'draft'`

// takers finds the tasks that take corrections, by customer.
func takers(ctx context.Context, q querier, tasks []*task) (map[int64]*taker, error) {
	of := make(map[int64]*taker)
	var fresh []int64
	for _, t := range tasks {
		if !t.fresh && (t.draft == nil || len(t.draft.Waiting) == 0) {
			continue
		}
		mine := of[t.c.id]
		if mine == nil {
			mine = &taker{openStart: t.c.openStart(), waiting: make(map[billing.Corrected][]*task), elsewhere: make(map[billing.Corrected]bool)}
			of[t.c.id] = mine
		}
		if t.fresh {
			mine.fresh, fresh = t, append(fresh, t.c.id)
			continue
		}
		for _, c := range t.draft.Waiting {
			mine.waiting[c] = append(mine.waiting[c], t)
		}
	}
	if len(fresh) == 0 {
		return of, nil
	}
	var id int64
	var c billing.Corrected
	err := forEach(ctx, q, []any{&id, &c.Meter, &c.Invoice}, func() error {
		of[id].elsewhere[c] = true
		return nil
	}, readWaiting, fresh)
	return of, err
}

const claimedAdjustments = `
	SELECT w.n, l.hour, l.key
	FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS w (customer, meter, start_at, end_at, n)
	JOIN line_adjustments l ON l.customer = w.customer AND l.meter = w.meter AND l.hour >= w.start_at AND l.hour < w.end_at
	JOIN invoices i ON i.id = l.invoice_id AND i.status <> 'void'`

// claimed are the adjustments of spans that lines of invoices count already.
func claimed(ctx context.Context, q querier, spans []span) ([][]adjustmentKey, error) {
	customers, starts, ends := make([]int64, len(spans)), make([]int64, len(spans)), make([]int64, len(spans))
	meters := make([]int32, len(spans))
	for i, s := range spans {
		customers[i], meters[i], starts[i], ends[i] = s.customer, s.meter, s.start, s.end
	}
	all := make([][]adjustmentKey, len(spans))
	var n int
	var a adjustmentKey
	err := forEach(ctx, q, []any{&n, &a.hour, &a.key}, func() error {
		all[n-1] = append(all[n-1], a)
		return nil
	}, claimedAdjustments, customers, meters, starts, ends)
	return all, err
}
