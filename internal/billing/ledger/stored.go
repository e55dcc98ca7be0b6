package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
)

// Stored reads what is stored of billing, as it is. It is for whoever checks it. It is safe for
// concurrent use.
type Stored struct{ versions *versions }

// NewStored returns a reader, which remembers plan versions.
func NewStored() *Stored { return &Stored{newVersions()} }

// Invoices reads invoices with their lines, in no order. Drafts are not assembled again.
func (*Stored) Invoices(ctx context.Context, tx pgx.Tx, ids []string) ([]*billing.Invoice, error) {
	return invoicesOf(ctx, tx, readDrafts, ids)
}

// Standings reads how the lines of invoices stand. Credit notes have none.
func (*Stored) Standings(ctx context.Context, tx pgx.Tx, ids []string) (map[LineKey]*assembly.Standing, error) {
	all, err := readStandings(ctx, tx, ids)
	return all.lines, err
}

// PeriodKey names a closed billing period: the N-th of a customer's chain.
type PeriodKey struct {
	Customer int64
	Chain, N int
}

// Terms reads what prices closed billing periods. Those that are not closed are left out.
func (s *Stored) Terms(ctx context.Context, tx pgx.Tx, keys []PeriodKey) (map[PeriodKey]assembly.Terms, error) {
	wanted := make([]periodKey, len(keys))
	for i, k := range keys {
		wanted[i] = periodKey{k.Customer, k.Chain, k.N}
	}
	closed, err := closedPeriods(ctx, tx, wanted)
	if err != nil {
		return nil, err
	}
	return s.priced(ctx, tx, closed)
}

const readOpen = `
	SELECT customer_id, chain, n, start_at, end_at, full_start, full_end, known_end, trial, plan_id, version, prices FROM open_periods
	WHERE customer_id = ANY ($1) AND start_at IS NOT NULL`

// OpenTerms reads what prices the open billing periods of customers.
func (s *Stored) OpenTerms(ctx context.Context, tx pgx.Tx, customers []int64) (map[PeriodKey]assembly.Terms, error) {
	open, err := readPeriodRows(ctx, tx, readOpen, customers)
	if err != nil {
		return nil, err
	}
	return s.priced(ctx, tx, open)
}

// priced adds the plan versions of periods.
func (s *Stored) priced(ctx context.Context, tx pgx.Tx, periods map[periodKey]billing.Period) (map[PeriodKey]assembly.Terms, error) {
	var versions []versionKey
	for _, p := range periods {
		versions = append(versions, pricedBy(&p))
	}
	found, err := s.versions.get(ctx, tx, versions)
	if err != nil {
		return nil, err
	}
	all := make(map[PeriodKey]assembly.Terms, len(periods))
	for k, p := range periods {
		all[PeriodKey{k.customer, k.chain, k.n}] = found.terms(&p)
	}
	return all, nil
}
