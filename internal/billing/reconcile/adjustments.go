package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
	"quotad/internal/quota/usage"
)

// counted is a usage line or correction with the data of its hours: the usage in the engine, the adjustments
// on invoices, and the adjustments in the queue.
type counted struct {
	lineRef
	booked usage.Sum
	held   *rating.Held // set for level meters
	taken  []taken
	queued []usage.Key
}

// taken is an adjustment in the form in which an invoice has stored it.
type taken struct {
	usage.Key
	invoice string
	void    bool // the invoice is void
	at      int64
	cost    int64
	reason  string
}

// selectTaken reads the adjustments on invoices. Its parameters are the customers ($1), the meters ($2), and
// the hours of each ($3–$4).
const selectTaken = `
	SELECT w.n, l.hour, l.key, l.invoice_id::text, k.status = 'void', l.at, l.cost, l.reason
	FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS w (customer, meter, start_at, end_at, n), LATERAL (
		SELECT * FROM line_adjustments WHERE customer = w.customer AND meter = w.meter AND hour >= w.start_at AND hour < w.end_at OFFSET 0) l
	JOIN invoices k ON k.id = l.invoice_id`

const selectQueued = `
	SELECT w.n, q.hour, q.key
	FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS w (customer, meter, start_at, end_at, n), LATERAL (
		SELECT * FROM open_adjustments WHERE customer = w.customer AND hour >= w.start_at AND hour < w.end_at AND meter = w.meter OFFSET 0) q`

// count reads usage and adjustments for the hours of the lines. It skips lines of archived months.
func (p *page) count(ctx context.Context) error {
	archive, err := usage.ReadArchive(ctx, p.tx)
	if err != nil {
		return err
	}
	lines := slices.DeleteFunc(p.lines(billing.LineUsage, billing.LineCorrection), func(r lineRef) bool { return r.l.From < archive.Before })
	if len(lines) == 0 {
		return nil
	}
	keys := make([]string, len(lines))
	for n, r := range lines {
		keys[n] = r.l.Meter
	}
	ids, err := store.MeterIDs(ctx, p.tx, keys)
	if err != nil {
		return err
	}
	spans := make([]usage.Span, len(lines))
	customers, meters, starts, ends := make([]int64, len(lines)), make([]int32, len(lines)), make([]int64, len(lines)), make([]int64, len(lines))
	for n, r := range lines {
		spans[n] = usage.Span{Customer: r.i.Customer, Meter: ids[r.l.Meter], Start: r.l.From, End: r.l.To}
		customers[n], meters[n], starts[n], ends[n] = r.i.Customer, ids[r.l.Meter], r.l.From, r.l.To
	}
	sums, err := usage.Sums(ctx, p.tx, spans)
	if err != nil {
		return err
	}
	for n, sum := range sums {
		p.counted = append(p.counted, counted{lineRef: lines[n], booked: sum})
	}
	if err := p.held(ctx, spans); err != nil {
		return err
	}
	var n int
	var t taken
	rows, _ := p.tx.Query(ctx, selectTaken, customers, meters, starts, ends)
	_, err = pgx.ForEachRow(rows, []any{&n, &t.Hour, &t.ID, &t.invoice, &t.void, &t.at, &t.cost, &t.reason}, func() error {
		p.counted[n-1].taken = append(p.counted[n-1].taken, t)
		return nil
	})
	if err != nil {
		return err
	}
	var key usage.Key
	rows, _ = p.tx.Query(ctx, selectQueued, customers, meters, starts, ends)
	_, err = pgx.ForEachRow(rows, []any{&n, &key.Hour, &key.ID}, func() error {
		p.counted[n-1].queued = append(p.counted[n-1].queued, key)
		return nil
	})
	return err
}

// held reads the levels for lines of level meters. spans contains the span of each element of p.counted.
func (p *page) held(ctx context.Context, spans []usage.Span) error {
	var of []usage.Span
	var places []int
	for n, span := range spans {
		if model.IsLevel(span.Meter) {
			of, places = append(of, span), append(places, n)
		}
	}
	if len(of) == 0 {
		return nil
	}
	all, err := usage.Levels(ctx, p.tx, of)
	for n, h := range all {
		p.counted[places[n]].held = (*rating.Held)(&h)
	}
	return err
}

// takenBy splits the engine's adjustments in the line's hours. The first result contains the adjustments that
// the function which selects by their invoices, and the second result contains the others.
func (c *counted) takenBy(which func(t *taken) bool) (these, others []usage.Adjustment) {
	keys := make(map[usage.Key]bool)
	for n := range c.taken {
		if t := &c.taken[n]; which(t) {
			keys[t.Key] = true
		}
	}
	for _, a := range c.booked.Adjustments {
		if keys[a.Key] {
			these = append(these, a)
		} else {
			others = append(others, a)
		}
	}
	return these, others
}

// quantity returns the expected quantity of the line. A usage line is the sum of its hours and of the
// adjustments on its invoice. A correction is the sum of adjustments only.
func (c *counted) quantity() int64 {
	mine, others := c.takenBy(func(t *taken) bool { return t.invoice == c.i.ID })
	if c.l.Kind == billing.LineUsage {
		return c.booked.Before(others)
	}
	return costs(mine)
}

func costs(all []usage.Adjustment) (sum int64) {
	for _, a := range all {
		sum += a.Cost
	}
	return sum
}

// copies checks that invoices have stored adjustments of the line's hours exactly as the engine has them.
// This includes invoices that correct the line.
func (p *page) copies(context.Context) error {
	for n := range p.counted {
		c := &p.counted[n]
		if c.l.Kind != billing.LineUsage {
			continue
		}
		made := make(map[usage.Key]usage.Adjustment)
		for _, a := range c.booked.Adjustments {
			made[a.Key] = a
		}
		for _, t := range c.taken {
			a, there := made[t.Key]
			switch e := (Disagreement{Meter: c.l.Meter}).on(t.Hour); {
			case !there:
				p.tell(UsageIsBilled, c.i, e.says(fmt.Sprintf("Line %d: an adjustment of this hour that invoice %s took is gone.", c.l.N, t.invoice)))
			case t.cost != a.Cost || t.at != a.At || t.reason != a.Reason:
				p.tell(UsageIsBilled, c.i, e.says(fmt.Sprintf(
					"Line %d: an adjustment of %d units in this hour has another cost, instant or reason than invoice %s says that it took.", c.l.N, a.Cost, t.invoice)))
			}
		}
	}
	return nil
}

// waits checks that each adjustment of a final usage line is either on an invoice or in the queue. Every
// change of an adjustment's place is one transaction.
func (p *page) waits(c *counted) {
	queued := make(map[usage.Key]bool, len(c.queued))
	for _, key := range c.queued {
		queued[key] = true
	}
	tell := func(a *usage.Adjustment, how string) {
		p.tell(AllIsClaimed, c.i, Disagreement{Meter: c.l.Meter}.on(a.Hour).says(fmt.Sprintf("An adjustment of %d units in this hour %s.", a.Cost, how)))
	}
	on, off := c.takenBy(func(t *taken) bool { return !t.void })
	for n := range on {
		if queued[on[n].Key] {
			tell(&on[n], "is on an invoice, and in the queue of those that are on none")
		}
		delete(queued, on[n].Key)
	}
	for n := range off {
		if !queued[off[n].Key] {
			tell(&off[n], "is on no invoice, and not in the queue of those")
		}
		delete(queued, off[n].Key)
	}
	for key := range queued {
		p.tell(AllIsClaimed, c.i, Disagreement{Meter: c.l.Meter}.on(key.Hour).says("An adjustment of this hour is in the queue of those that are on no invoice, and was never made."))
	}
}
