package invoices

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
)

// Stored reads billing data exactly as stored, for checks. It is safe for concurrent use.
type Stored struct{ versions *accounts.Versions }

// NewStored returns a Stored with an empty cache of plan versions.
func NewStored() *Stored { return &Stored{accounts.NewVersions()} }

// Invoices reads invoices with their lines, in no particular order. Drafts are not reassembled.
func (*Stored) Invoices(ctx context.Context, tx pgx.Tx, ids []string) ([]*billing.Invoice, error) {
	return invoicesOf(ctx, tx, readDrafts, ids)
}

// Standings reads the corrected, unused and credited amounts of each invoice line. Lines of credit notes are
// omitted.
func (*Stored) Standings(ctx context.Context, tx pgx.Tx, ids []string) (map[LineKey]*assembly.Standing, error) {
	all, err := readStandings(ctx, tx, ids)
	return all.lines, err
}

// Terms reads the pricing terms of closed billing periods. The result omits periods that are not closed.
func (s *Stored) Terms(ctx context.Context, tx pgx.Tx, keys []accounts.PeriodKey) (map[accounts.PeriodKey]assembly.Terms, error) {
	closed, err := accounts.ClosedPeriods(ctx, tx, keys)
	if err != nil {
		return nil, err
	}
	return s.priced(ctx, tx, closed)
}

// OpenTerms reads the pricing terms of the customers' open billing periods.
func (s *Stored) OpenTerms(ctx context.Context, tx pgx.Tx, customers []int64) (map[accounts.PeriodKey]assembly.Terms, error) {
	open, err := accounts.OpenPeriods(ctx, tx, customers)
	if err != nil {
		return nil, err
	}
	return s.priced(ctx, tx, open)
}

// priced combines periods with their plan versions.
func (s *Stored) priced(ctx context.Context, tx pgx.Tx, periods map[accounts.PeriodKey]billing.Period) (map[accounts.PeriodKey]assembly.Terms, error) {
	var versions []accounts.VersionKey
	for _, p := range periods {
		versions = append(versions, accounts.VersionsOf(&p)...)
	}
	found, err := s.versions.Get(ctx, tx, versions)
	if err != nil {
		return nil, err
	}
	all := make(map[accounts.PeriodKey]assembly.Terms, len(periods))
	for k, p := range periods {
		all[k] = found.Terms(&p)
	}
	return all, nil
}
