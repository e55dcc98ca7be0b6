package invoices

import (
	"context"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/postgres"
)

// LineKey identifies a line by the id of its invoice and its number.
type LineKey struct {
	Invoice string
	N       int
}

// standings contains the present state of invoice lines, see assembly.Standing: by line, and by meter for
// usage lines.
type standings struct {
	lines map[LineKey]*assembly.Standing
	usage map[billing.Corrected]*assembly.Standing
}

// readStandingRows reads the corrected, unused and credited amounts of lines. Corrections count from their
// draft on, because a draft fixes their amounts. Unused base counts once its invoice is final.
const readStandingRows = `
	SELECT i.id::text, l.n, l.kind, coalesce(l.meter, ''), coalesce(l.of_invoice::text, ''), l.amount_minor, c.amount,
		CASE WHEN l.kind = 'base' THEN (SELECT coalesce(-sum(u.amount_minor), 0) FROM invoice_lines u JOIN invoices k ON k.id = u.invoice_id
			WHERE u.base_invoice = i.id AND u.base_line = l.n AND k.status <> 'void' AND k.status <> 'draft') ELSE 0 END::bigint,
		(c.noted - (SELECT coalesce(sum(x.amount_minor), 0) FROM invoice_lines x WHERE x.of_invoice = i.id AND x.of_line = l.n))::bigint
	FROM (SELECT DISTINCT unnest($1::uuid[]) AS id) w
	JOIN invoices i ON i.id = w.id AND i.kind <> 'credit_note'
	JOIN invoice_lines l ON l.invoice_id = i.id
	CROSS JOIN LATERAL (
		SELECT coalesce(sum(x.amount_minor), 0)::bigint AS amount, coalesce(-sum((
			SELECT sum(y.amount_minor) FROM invoice_lines y WHERE y.of_invoice = x.invoice_id AND y.of_line = x.n)), 0) AS noted
		FROM invoice_lines x JOIN invoices k ON k.id = x.invoice_id AND k.kind <> 'credit_note' AND k.status <> 'void'
		WHERE l.kind = 'usage' AND x.of_invoice = i.id AND x.kind = 'correction' AND x.meter = l.meter) c`

// readStandings reads the standing of each line of invoices, see assembly.Standing. The standing of a
// correction refers to the corrected line if that line's invoice is among ids.
func readStandings(ctx context.Context, q postgres.Querier, ids []string) (standings, error) {
	all := standings{make(map[LineKey]*assembly.Standing), make(map[billing.Corrected]*assembly.Standing)}
	corrections := make(map[*assembly.Standing]billing.Corrected)
	var key LineKey
	var kind string
	var of billing.Corrected
	var s assembly.Standing
	err := postgres.ForEach(ctx, q, []any{
		&key.Invoice, &key.N, &kind, &of.Meter, &of.Invoice, &s.AmountMinor, &s.CorrectedMinor, &s.UnusedMinor,
		&s.NotedMinor,
	}, func() error {
		one := s
		all.lines[key] = &one
		switch kind {
		case billing.LineUsage:
			all.usage[billing.Corrected{Meter: of.Meter, Invoice: key.Invoice}] = &one
		case billing.LineCorrection:
			corrections[&one] = of
		}
		return nil
	}, readStandingRows, ids)
	for correction, of := range corrections {
		correction.Of = all.usage[of]
	}
	return all, err
}

// billed returns the amount billed so far for the line that c corrects, and the part of the amount that
// credit notes credited.
func (s standings) billed(c *assembly.Correction) (billed, noted int64) {
	line := s.usage[billing.Corrected{Meter: c.Meter, Invoice: c.OfInvoice}]
	if line == nil {
		return 0, 0
	}
	return line.AmountMinor + line.CorrectedMinor, line.NotedMinor
}

// anyUnused reports whether a final invoice gave back a part of a line.
func (s standings) anyUnused() bool {
	for _, line := range s.lines {
		if line.UnusedMinor > 0 {
			return true
		}
	}
	return false
}

// standingsOf returns the assembly.Standing of each line of an invoice, by line number.
func standingsOf(ctx context.Context, q postgres.Querier, i *billing.Invoice) (map[int]assembly.Standing, error) {
	ids := []string{i.ID}
	for n := range i.Lines {
		if l := &i.Lines[n]; l.Kind == billing.LineCorrection {
			ids = append(ids, l.OfInvoice)
		}
	}
	all, err := readStandings(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	lines := make(map[int]assembly.Standing, len(i.Lines))
	for key, s := range all.lines {
		if key.Invoice == i.ID {
			lines[key.N] = *s
		}
	}
	return lines, nil
}
