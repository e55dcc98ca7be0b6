package invoices

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
	"quotad/internal/postgres"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/usage"
)

// Preview is a hypothetical adjustment.
type Preview struct {
	Customer, Meter string // keys
	Cost            int64  // units; a negative cost reduces the usage
	At              int64  // µs; 0 is now
}

// Preview returns the line that an adjustment would create, and writes nothing. If the invoice of that time
// is open or a draft, the line is the whole usage line. Otherwise the line is the correction on the next
// invoice, including pending adjustments. Preview also returns the customer's test clock.
//
// Errors: plans.ErrUnknownCustomer, plans.ErrArchived, plans.ErrUnknownMeter, billing.ErrAnonymous,
// billing.ErrNoLine, locked.ErrArchived. model.FieldErrors reports an instant in the future or before
// starts_at, or an amount that is too large for an invoice.
func (is *Invoices) Preview(ctx context.Context, p Preview) (line billing.Line, clock string, err error) {
	err = is.accounts.Snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
		asked := previewing{Preview: p, is: is, tx: tx}
		if err := asked.begin(ctx); err != nil {
			return err
		}
		clock = asked.c.Clock
		var err error
		line, err = asked.line(ctx)
		return err
	})
	return line, clock, err
}

// previewing is a preview within one snapshot.
type previewing struct {
	Preview
	is    *Invoices
	tx    pgx.Tx
	c     *accounts.Customer
	meter plans.Meter
}

// begin reads the customer and the meter.
func (p *previewing) begin(ctx context.Context) error {
	id, archived, err := accounts.Find(ctx, p.tx, p.Customer)
	if err != nil {
		return err
	}
	if archived {
		return plans.ErrArchived
	}
	now, err := p.is.accounts.Now(ctx)
	if err != nil {
		return err
	}
	customers, err := accounts.ReadCustomers(ctx, p.tx, []int64{id}, now)
	if err != nil {
		return err
	}
	if p.c = customers[id]; p.c == nil {
		return billing.ErrAnonymous
	}
	if p.At == 0 {
		p.At = p.c.Now
	}
	switch {
	case p.At > p.c.Now:
		return model.FieldErrors{{Field: "at", Detail: "must not be in the future, by the customer's clock"}}
	case p.At < p.c.Account.StartsAt:
		return model.FieldErrors{{Field: "at", Detail: "is before starts_at: earlier usage is never billed"}}
	}
	err = postgres.ForEach(ctx, p.tx, []any{&p.meter.ID, &p.meter.Key, &p.meter.Name, &p.meter.Unit}, func() error { return nil }, readMeterNames,
		[]string{p.Meter})
	if err == nil && p.meter.Key == "" {
		err = plans.ErrUnknownMeter
	}
	return err
}

const periodAt = `
	SELECT p.chain, p.n, coalesce((SELECT i.id::text FROM invoices i WHERE i.customer_id = p.customer_id AND i.chain = p.chain AND i.n = p.n
		AND i.kind = 'period' AND i.status <> 'void'), '')
	FROM (SELECT * FROM periods WHERE customer_id = $1 AND start_at <= $2 ORDER BY start_at DESC LIMIT 1) p WHERE p.end_at > $2`

// line returns the line on the invoice that would contain the adjustment.
func (p *previewing) line(ctx context.Context) (billing.Line, error) {
	if p.c.Open != nil && p.At >= p.c.Open.Start {
		return p.running(ctx)
	}
	var chain, n int
	var invoice string
	switch err := p.tx.QueryRow(ctx, periodAt, p.c.ID, p.At).Scan(&chain, &n, &invoice); {
	case errors.Is(err, pgx.ErrNoRows) || err == nil && invoice == "":
		return billing.Line{}, billing.ErrNoLine
	case err != nil:
		return billing.Line{}, err
	}
	found, err := invoicesOf(ctx, p.tx, readDrafts, []string{invoice})
	if err != nil {
		return billing.Line{}, err
	}
	if of := found[0]; of.Status != billing.StatusDraft {
		return p.correction(ctx, of)
	}
	tasks, err := draftTasks(ctx, p.tx, found, map[int64]*accounts.Customer{p.c.ID: p.c})
	if err != nil {
		return billing.Line{}, err
	}
	return p.usage(ctx, tasks[0])
}

// running returns the usage line of a period that is not closed yet.
func (p *previewing) running(ctx context.Context) (billing.Line, error) {
	lines, err := accounts.Timelines(ctx, p.tx, map[int64]*accounts.Customer{p.c.ID: p.c})
	if err != nil {
		return billing.Line{}, err
	}
	t := lines[p.c.ID]
	period, ok, err := t.At(*p.c.Open, p.At)
	if err != nil {
		return billing.Line{}, err
	}
	if !ok {
		return billing.Line{}, billing.ErrNoLine
	}
	return p.usage(ctx, PeriodTask(p.c, t, &period, 0))
}

// usage returns the meter's usage line on the task's invoice, including the units of the previewed
// adjustment.
func (p *previewing) usage(ctx context.Context, t *Task) (billing.Line, error) {
	if err := p.is.Assemble(ctx, p.tx, []*Task{t}); err != nil {
		return billing.Line{}, err
	}
	t.in.Usage[p.Meter] = plus(t.in.Usage[p.Meter], p.Cost)
	if _, priced, err := t.in.Terms.UsageLine(p.meter, t.in.Usage[p.Meter]); err != nil || !priced {
		return billing.Line{}, unbearable(err)
	}
	made, err := assembly.Assemble(t.in)
	if err != nil {
		return billing.Line{}, err
	}
	for _, line := range made.Invoice.Lines {
		if line.Kind == billing.LineUsage && line.Meter == p.Meter {
			return line, nil
		}
	}
	return billing.Line{}, billing.ErrNoLine
}

// correction returns the correction line on the next invoice. The line's position there is unknown.
func (p *previewing) correction(ctx context.Context, of *billing.Invoice) (billing.Line, error) {
	key := accounts.PeriodKey{Customer: of.Customer, Chain: of.Chain, N: of.N}
	closed, err := accounts.ClosedPeriods(ctx, p.tx, []accounts.PeriodKey{key})
	if err != nil {
		return billing.Line{}, err
	}
	period := closed[key]
	if archive, err := usage.ReadArchive(ctx, p.tx); err != nil || period.Start < archive.Before {
		return billing.Line{}, cmp.Or(err, locked.ErrArchived)
	}
	versions, err := p.is.accounts.Versions.Get(ctx, p.tx, accounts.VersionsOf(&period))
	if err != nil {
		return billing.Line{}, err
	}
	spans := []usage.Span{{Customer: p.c.ID, Meter: p.meter.ID, Start: period.Start, End: period.End}}
	sums, err := used(ctx, p.tx, spans)
	if err != nil {
		return billing.Line{}, err
	}
	earlier, err := claimed(ctx, p.tx, spans)
	if err != nil {
		return billing.Line{}, err
	}
	stands, err := readStandings(ctx, p.tx, []string{of.ID})
	if err != nil {
		return billing.Line{}, err
	}
	c := assembly.Correction{
		Meter: p.Meter, Of: versions.Terms(&period), OfInvoice: of.ID, OfNumber: of.Number,
		Counted: sums[0].Before(without(sums[0].Adjustments, earlier[0])), Now: plus(sums[0].Units, p.Cost),
	}
	c.BilledMinor, c.NotedMinor = stands.billed(&c)
	line, priced, err := assembly.CorrectionLine(c, p.meter)
	if err != nil || !priced {
		return billing.Line{}, unbearable(err)
	}
	return line, nil
}

// unbearable returns the error for a line that cannot be created. A nil err means a meter without a price.
func unbearable(err error) error {
	if errors.Is(err, rating.ErrTooLarge) {
		return model.FieldErrors{{Field: "cost", Detail: "makes a count or an amount that no invoice can bear: 2⁶³−1 units, or 10¹⁵ minor units, or more"}}
	}
	if err == nil {
		return billing.ErrNoLine
	}
	return err
}

// plus adds units. Like a counter, the sum saturates at ±(2⁶³−1).
func plus(units, cost int64) int64 {
	switch sum := units + cost; {
	case cost > 0 && sum < units:
		return math.MaxInt64
	case cost < 0 && sum > units:
		return -math.MaxInt64
	default:
		return sum
	}
}
