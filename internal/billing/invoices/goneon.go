package invoices

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/postgres"
)

// readGoneOn reads periods whose unused base in advance the next invoice must give back. Usually the period's
// own invoice gives it back. If that invoice is void and has no replacement, the customer's next invoice
// does.
//
// For a new invoice ($1), the result contains the periods whose unused base is on no valid invoice. For a
// draft ($2), it contains the periods that the draft's lines name. If a period has several void invoices, any
// of them identifies the period. OFFSET 0 and unnest force a lookup by key for each row, so no table is read
// whole.
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

// goneOn is an unused base price that a void invoice gave back, and the task whose invoice now gives it back.
type goneOn struct {
	by *Task
	assembly.GoneOn
}

// queueGoneOn queues the read of periods whose void invoices gave back an unused base price, for addGoneOn.
func queueGoneOn(b *pgx.Batch, tasks []*Task) *[]goneOn {
	found := new([]goneOn)
	fresh := freshTasks(tasks)
	takers := make(map[string][]*Task) // by the id of the void invoice
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
			if t.kind != billing.KindPeriod || t.Period.Chain != p.Chain || t.Period.N != p.N { // its reissue gives it back
				*found = append(*found, goneOn{t, g})
			}
		}
		p.Base = nil // each row has a base of its own
		return err
	}, readGoneOn, slices.Collect(maps.Keys(fresh)), slices.Collect(maps.Keys(takers)))
	return found
}

// addGoneOn adds the found base prices to the inputs of their tasks.
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
