package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Adjustments of usage lines that no invoice counts. missed: the invoice of a later period should
// have taken it, one that has a line of the meter and was made when this invoice was final. The
// fence at that period's end is after the adjustment, so it was there to be read.
//
// Those that an invoice counts that became void wait for the next invoice, and nobody knows since
// when. They are left out. OFFSET 0 has each line read its own hours only.
const selectUnclaimed = `
	SELECT w.n, a.hour, a.at, a.cost,
		EXISTS (SELECT FROM invoices k JOIN invoice_lines l ON l.invoice_id = k.id AND l.kind = 'usage' AND l.meter = w.meter
			WHERE k.customer_id = w.customer AND k.period_end > a.at AND k.period_start >= w.end_at AND k.kind = 'period'
			  AND k.status <> 'void' AND k.made_at >= w.final_at)
	FROM unnest($1::smallint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
		WITH ORDINALITY AS w (shard, customer, meter, start_at, end_at, final_at, n), LATERAL (
		SELECT id FROM meters WHERE key = w.meter OFFSET 0) m, LATERAL (
		SELECT hour, at, cost, key FROM adjustments
		WHERE shard = w.shard AND customer = w.customer AND meter = m.id AND hour >= w.start_at AND hour < w.end_at OFFSET 0) a
	WHERE NOT EXISTS (
		SELECT FROM line_adjustments l WHERE l.customer = w.customer AND l.meter = m.id AND l.hour = a.hour AND l.key = a.key)
	ORDER BY w.n, a.at, a.key`

// What lines and their corrections have counted.
const selectCounted = `
	SELECT w.n, w.quantity + coalesce((
		SELECT sum(a.cost) FROM line_adjustments l JOIN invoices k ON k.id = l.invoice_id AND k.status <> 'void' AND k.id <> w.invoice, LATERAL (
			SELECT cost FROM adjustments WHERE shard = w.shard AND customer = l.customer AND meter = l.meter AND hour = l.hour AND key = l.key OFFSET 0) a
		WHERE l.customer = w.customer AND l.meter = m.id AND l.hour >= w.start_at AND l.hour < w.end_at), 0)::bigint
	FROM unnest($1::integer[], $2::uuid[], $3::smallint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[])
		AS w (n, invoice, shard, customer, meter, start_at, end_at, quantity)
	JOIN meters m ON m.key = w.meter`

// adjustment is one that no invoice counts.
type adjustment struct {
	hour, at, cost int64
	missed         bool
}

// unclaimed checks that adjustments of billed periods came onto an invoice.
func (p *page) unclaimed(ctx context.Context) error {
	var lines []lineRef
	for _, r := range p.lines(billing.LineUsage) {
		if r.i.Status != billing.StatusVoid && r.i.FinalizedAt != nil {
			lines = append(lines, r)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	var meters []string
	var shards []int16
	var customers, starts, ends, finals []int64
	for _, r := range lines {
		meters, shards = append(meters, r.l.Meter), append(shards, model.Shard(r.i.Customer))
		customers, starts, ends = append(customers, r.i.Customer), append(starts, r.l.From), append(ends, r.l.To)
		finals = append(finals, *r.i.FinalizedAt)
	}
	left := make(map[int][]adjustment)
	var n int
	var a adjustment
	rows, _ := p.tx.Query(ctx, selectUnclaimed, shards, customers, meters, starts, ends, finals)
	_, err := pgx.ForEachRow(rows, []any{&n, &a.hour, &a.at, &a.cost, &a.missed}, func() error {
		left[n-1] = append(left[n-1], a)
		return nil
	})
	for n, all := range left {
		if !slices.ContainsFunc(all, func(a adjustment) bool { return a.missed }) {
			delete(left, n)
		}
	}
	if err != nil || len(left) == 0 {
		return err
	}
	counted, err := p.counted(ctx, lines, slices.Sorted(maps.Keys(left)))
	for n, quantity := range counted {
		p.claim(lines[n], left[n], quantity)
	}
	return err
}

// counted are the quantities of some of the lines, with what their corrections counted.
func (p *page) counted(ctx context.Context, lines []lineRef, of []int) (map[int]int64, error) {
	var ids, meters []string
	var shards []int16
	var customers, starts, ends, quantities []int64
	for _, n := range of {
		r := lines[n]
		ids, meters, shards = append(ids, r.i.ID), append(meters, r.l.Meter), append(shards, model.Shard(r.i.Customer))
		customers, starts, ends = append(customers, r.i.Customer), append(starts, r.l.From), append(ends, r.l.To)
		quantities = append(quantities, r.l.Quantity)
	}
	all := make(map[int]int64, len(of))
	var n int
	var quantity int64
	rows, _ := p.tx.Query(ctx, selectCounted, of, ids, shards, customers, meters, starts, ends, quantities)
	_, err := pgx.ForEachRow(rows, []any{&n, &quantity}, func() error {
		all[n] = quantity
		return nil
	})
	return all, err
}

// claim tells of adjustments of a line that an invoice should have taken. all are those that none
// took, in the order of their instants. An invoice read the missed ones, and perhaps some of the
// others. It was right to leave them if it could not bear these together.
func (p *page) claim(r lineRef, all []adjustment, counted int64) {
	last := -1
	for n := range all {
		if all[n].missed {
			last = n
		}
	}
	terms, closed := p.terms[periodOf(r.i)]
	if last < 0 || !closed {
		return
	}
	sum := int64(0)
	for n, a := range all {
		sum += a.cost
		if n < last {
			continue
		}
		_, _, err := assembly.CorrectionLine(assembly.Correction{Meter: r.l.Meter, Of: terms, Counted: counted, Now: counted + sum}, plans.Meter{})
		if err != nil {
			return
		}
	}
	missed := slices.IndexFunc(all, func(a adjustment) bool { return a.missed })
	p.tell(AllIsClaimed, r.i, Disagreement{Meter: r.l.Meter}.on(all[missed].hour).says(fmt.Sprintf(
		"An adjustment of %d units in this hour is on no invoice, though a later one should have taken it. In all there are %d such ones of line %d.",
		all[missed].cost, last+1, r.l.N)))
}
