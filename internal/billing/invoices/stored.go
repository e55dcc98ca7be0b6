package invoices

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/postgres"
)

// Stored reads what is stored of billing, as it is. It is for whoever checks it. It is safe for
// concurrent use.
type Stored struct{ versions *accounts.Versions }

// NewStored returns a reader, which remembers plan versions.
func NewStored() *Stored { return &Stored{accounts.NewVersions()} }

// Invoices reads invoices with their lines, in no order. Drafts are not assembled again.
func (*Stored) Invoices(ctx context.Context, tx pgx.Tx, ids []string) ([]*billing.Invoice, error) {
	return invoicesOf(ctx, tx, readDrafts, ids)
}

// Standings reads how the lines of invoices stand. Credit notes have none.
func (*Stored) Standings(ctx context.Context, tx pgx.Tx, ids []string) (map[LineKey]*assembly.Standing, error) {
	all, err := readStandings(ctx, tx, ids)
	return all.lines, err
}

// Terms reads what prices closed billing periods. Those that are not closed are left out.
func (s *Stored) Terms(ctx context.Context, tx pgx.Tx, keys []PeriodKey) (map[PeriodKey]assembly.Terms, error) {
	closed, err := closedPeriods(ctx, tx, keys)
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
func (s *Stored) priced(ctx context.Context, tx pgx.Tx, periods map[PeriodKey]billing.Period) (map[PeriodKey]assembly.Terms, error) {
	var versions []accounts.VersionKey
	for _, p := range periods {
		versions = append(versions, accounts.PricedBy(&p))
	}
	found, err := s.versions.Get(ctx, tx, versions)
	if err != nil {
		return nil, err
	}
	all := make(map[PeriodKey]assembly.Terms, len(periods))
	for k, p := range periods {
		all[k] = found.Terms(&p)
	}
	return all, nil
}

const readClosed = `
	SELECT p.customer_id, p.chain, p.n, p.start_at, p.end_at, p.full_start, p.full_end, p.known_end, p.trial, p.plan_id, p.version, p.prices
	FROM unnest($1::bigint[], $2::integer[], $3::integer[]) AS w (customer, chain, n)
	JOIN periods p ON p.customer_id = w.customer AND p.chain = w.chain AND p.n = w.n`

// PeriodKey names a billing period: the N-th of a customer's chain.
type PeriodKey struct {
	Customer int64
	Chain, N int
}

// closedPeriods reads closed periods. Those that are not closed are left out.
func closedPeriods(ctx context.Context, q postgres.Querier, keys []PeriodKey) (map[PeriodKey]billing.Period, error) {
	customers := make([]int64, len(keys))
	chains, numbers := make([]int, len(keys)), make([]int, len(keys))
	for i, k := range keys {
		customers[i], chains[i], numbers[i] = k.Customer, k.Chain, k.N
	}
	return readPeriodRows(ctx, q, readClosed, customers, chains, numbers)
}

// readPeriodRows reads periods. statement has the columns of readClosed.
func readPeriodRows(ctx context.Context, q postgres.Querier, statement string, args ...any) (map[PeriodKey]billing.Period, error) {
	all := make(map[PeriodKey]billing.Period)
	var customer int64
	var p billing.Period
	var prices []byte
	err := postgres.ForEach(ctx, q, []any{
		&customer, &p.Chain, &p.N, &p.Start, &p.End, &p.FullStart, &p.FullEnd, &p.KnownEnd, &p.Trial, &p.PlanID, &p.Version, &prices,
	}, func() (err error) {
		p.Prices, err = accounts.ReadPrices(prices)
		all[PeriodKey{customer, p.Chain, p.N}] = p
		return err
	}, statement, args...)
	return all, err
}
