package invoices

import (
	"context"
	"maps"
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

const claimedAdjustments = `
	SELECT w.n, l.hour, l.key
	FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS w (customer, meter, start_at, end_at, n)
	JOIN line_adjustments l ON l.customer = w.customer AND l.meter = w.meter AND l.hour >= w.start_at AND l.hour < w.end_at
	JOIN invoices i ON i.id = l.invoice_id AND i.status <> 'void'`

// claimed are the adjustments of spans that lines of invoices count already.
func claimed(ctx context.Context, q postgres.Querier, spans []usage.Span) ([][]usage.Key, error) {
	customers, starts, ends := make([]int64, len(spans)), make([]int64, len(spans)), make([]int64, len(spans))
	meters := make([]int32, len(spans))
	for i, s := range spans {
		customers[i], meters[i], starts[i], ends[i] = s.Customer, s.Meter, s.Start, s.End
	}
	all := make([][]usage.Key, len(spans))
	var n int
	var a usage.Key
	err := postgres.ForEach(ctx, q, []any{&n, &a.Hour, &a.ID}, func() error {
		all[n-1] = append(all[n-1], a)
		return nil
	}, claimedAdjustments, customers, meters, starts, ends)
	return all, err
}

// without are the adjustments but some others.
func without(all []usage.Adjustment, others []usage.Key) []usage.Adjustment {
	gone := make(map[usage.Key]bool, len(others))
	for _, a := range others {
		gone[a] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(a usage.Adjustment) bool { return gone[a.Key] })
}

// A period's own invoice gives back what is unused of its base in advance. If that invoice is void,
// and none of the period takes its place, the next invoice of the customer gives it back. Of a new
// invoice ($1) these are the periods of which no other invoice that is not void has taken that. Of a
// draft, they are those that its lines name ($2). A period may have more void invoices than one, and
// any of them stands for it. OFFSET 0 and
// unnest have each row looked up by its key: no table is read whole.
const readGoneOn = `
	SELECT o.customer_id, o.id::text, p.chain, p.n, p.start_at, p.end_at, p.full_start, p.full_end, p.known_end, p.trial, p.plan_id, p.version, p.prices, p.base
	FROM (
		SELECT DISTINCT ON (v.customer_id, v.chain, v.n) v.customer_id, v.chain, v.n, v.id
		FROM unnest($1::bigint[]) AS w (customer) CROSS JOIN LATERAL (
			SELECT * FROM invoices WHERE customer_id = w.customer AND status = 'void' AND kind = 'period' OFFSET 0) v
		WHERE EXISTS (SELECT FROM invoice_lines u WHERE u.invoice_id = v.id AND u.kind = 'unused' AND u.of_invoice IS NULL OFFSET 0)
			AND NOT EXISTS (SELECT FROM invoices k
				WHERE k.customer_id = v.customer_id AND k.chain = v.chain AND k.n = v.n AND k.kind = 'period' AND k.status <> 'void' OFFSET 0)
			AND NOT EXISTS (SELECT FROM invoices s JOIN invoice_lines u ON u.of_invoice = s.id AND u.kind = 'unused'
				JOIN invoices k ON k.id = u.invoice_id AND k.status <> 'void'
				WHERE s.customer_id = v.customer_id AND s.chain = v.chain AND s.n = v.n AND s.kind = 'period' AND s.status = 'void' OFFSET 0)
		ORDER BY v.customer_id, v.chain, v.n, v.id
	) o JOIN periods p ON p.customer_id = o.customer_id AND p.chain = o.chain AND p.n = o.n
	UNION ALL
	SELECT v.customer_id, v.id::text, p.chain, p.n, p.start_at, p.end_at, p.full_start, p.full_end, p.known_end, p.trial, p.plan_id, p.version, p.prices, p.base
	FROM unnest($2::uuid[]) AS w (id) JOIN invoices v ON v.id = w.id JOIN periods p ON p.customer_id = v.customer_id AND p.chain = v.chain AND p.n = v.n
	ORDER BY 1, 5`

// goneOn is what goes on from a void invoice of a period onto the invoice of a task.
type goneOn struct {
	by *Task
	assembly.GoneOn
}

// queueGoneOn finds the periods whose void invoices gave back a base in advance, for addGoneOn.
func queueGoneOn(b *pgx.Batch, tasks []*Task) *[]goneOn {
	found := new([]goneOn)
	fresh := freshTasks(tasks)
	takers := make(map[string][]*Task) // by the void invoice
	for _, t := range tasks {
		if t.draft == nil {
			continue
		}
		for i := range t.draft.Lines {
			if l := &t.draft.Lines[i]; l.Kind == billing.LineUnused && l.OfInvoice != "" && !slices.Contains(takers[l.OfInvoice], t) {
				takers[l.OfInvoice] = append(takers[l.OfInvoice], t)
			}
		}
	}
	if len(fresh)+len(takers) == 0 {
		return found
	}
	var customer int64
	var g assembly.GoneOn
	var prices []byte
	p := &g.Of.Period
	postgres.QueueEach(b, []any{
		&customer, &g.OfInvoice, &p.Chain, &p.N, &p.Start, &p.End, &p.FullStart, &p.FullEnd, &p.KnownEnd, &p.Trial, &p.PlanID, &p.Version, &prices, &p.Base,
	}, func() (err error) {
		by := takers[g.OfInvoice]
		if len(by) == 0 {
			by = []*Task{fresh[customer]}
		}
		p.Prices, err = accounts.ReadPrices(prices)
		for _, t := range by {
			if t.kind != billing.KindPeriod || t.Period.Chain != p.Chain || t.Period.N != p.N { // a reissue of the period itself gives it back by itself
				*found = append(*found, goneOn{t, g})
			}
		}
		p.Base = nil // the next one's is another
		return err
	}, readGoneOn, slices.Collect(maps.Keys(fresh)), slices.Collect(maps.Keys(takers)))
	return found
}

// addGoneOn gives tasks what was found.
func (is *Invoices) addGoneOn(ctx context.Context, q postgres.Querier, found []goneOn) error {
	if len(found) == 0 {
		return nil
	}
	var keys []accounts.VersionKey
	for i := range found {
		keys = append(keys, accounts.VersionsOf(&found[i].Of.Period)...)
	}
	versions, err := is.accounts.Versions.Get(ctx, q, keys)
	if err != nil {
		return err
	}
	b := new(pgx.Batch)
	holders := make([]accounts.Holder, len(found))
	for i := range found {
		g := &found[i]
		g.Of = versions.Terms(&g.Of.Period)
		holders[i] = accounts.Holder{Customer: g.by.c.ID, Terms: &g.Of, Into: &g.Held}
	}
	accounts.QueueHeld(b, holders)
	if err := postgres.Send(ctx, q, b); err != nil {
		return err
	}
	for i := range found {
		in := &found[i].by.in
		in.GoneOn = append(in.GoneOn, found[i].GoneOn)
	}
	return nil
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

// The queue open_adjustments has the keys of adjustments that no invoice has taken. It says where
// closed lines may have to be corrected. What is billed is what the engine has, less what invoices
// took, so a row too many bills nothing. Taking an adjustment deletes its row, and giving it up puts
// the row back: triggers do that, see migrations/00008_invoices.sql.

// OpenAdjustments adds new adjustments to the queue. The engine sends it in the transaction that makes
// them, see quota.Options.AlsoAdjusted. Those of customers whose billing ends, or has ended, also call for an
// extra invoice: see accounts/owed.go.
const OpenAdjustments = `
	WITH i AS (
		SELECT customer, hour, meter, key, at
		FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::uuid[], $6::bigint[], $7::bigint[], $8::text[])
			AS i (shard, customer, meter, hour, key, cost, at, reason)
	), queued AS (
		INSERT INTO open_adjustments (customer, hour, meter, key) SELECT customer, hour, meter, key FROM i ON CONFLICT DO NOTHING
	)
	INSERT INTO owed_calls (customer_id, hour, meter, at)
	SELECT customer, hour, meter, min(at) FROM i
	WHERE EXISTS (SELECT FROM billing_accounts WHERE customer_id = i.customer AND ends_at > i.hour OFFSET 0)
	GROUP BY customer, hour, meter`

// dropDead deletes what no invoice will ever take, of hours before a period. The hour is in no closed
// period, or its period has no invoice with a line of the meter, but for void ones. Closed periods and
// their prices stay as they are, so such a row never comes to be wanted. What an invoice has taken
// already is deleted, too: a restore of data alone may leave such rows.
const dropDead = `
	DELETE FROM open_adjustments q USING unnest($1::bigint[], $2::bigint[]) AS w (customer, before)
	WHERE q.customer = w.customer AND q.hour < w.before AND (NOT EXISTS (
		SELECT FROM (
			SELECT chain, n, end_at FROM periods WHERE customer_id = q.customer AND start_at <= q.hour ORDER BY start_at DESC LIMIT 1) p
		JOIN LATERAL (
			SELECT id FROM invoices WHERE customer_id = q.customer AND chain = p.chain AND n = p.n AND kind = 'period' AND status <> 'void' OFFSET 0) i ON true
		JOIN invoice_lines l ON l.invoice_id = i.id AND l.kind = 'usage'
		JOIN meters m ON m.key = l.meter AND m.id = q.meter
		WHERE p.end_at > q.hour OFFSET 0)
	OR EXISTS (
		SELECT FROM line_adjustments t JOIN invoices k ON k.id = t.invoice_id AND k.status <> 'void'
		WHERE t.customer = q.customer AND t.meter = q.meter AND t.hour = q.hour AND t.key = q.key OFFSET 0))`

// QueueDropDead has what is dead deleted of customers whose periods were just closed. Before a first
// period has closed, its start may still be set back. Of extra invoices, all periods are closed.
func QueueDropDead(b *pgx.Batch, closed []*Task) {
	var customers, before []int64
	for _, t := range closed {
		if t.Period.Chain+t.Period.N > 0 || t.Period.Extra() && t.Period.FullEnd > 0 {
			customers, before = append(customers, t.c.ID), append(before, t.Period.Start)
		}
	}
	if len(customers) > 0 {
		b.Queue(dropDead, customers, before)
	}
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
