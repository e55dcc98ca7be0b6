package accounts

import (
	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/plans"
	"quotad/internal/postgres"
)

// PeriodRow is a row of the table periods, which contains closed periods.
type PeriodRow struct {
	Customer  int64                  `json:"customer_id"`
	Chain     int                    `json:"chain"`
	N         int                    `json:"n"`
	Start     int64                  `json:"start_at"`
	End       int64                  `json:"end_at"`
	FullStart int64                  `json:"full_start"`
	FullEnd   int64                  `json:"full_end"`
	KnownEnd  int64                  `json:"known_end"`
	Trial     bool                   `json:"trial"`
	PlanID    int32                  `json:"plan_id"`
	Version   int                    `json:"version"`
	Prices    map[string]plans.Price `json:"prices"`
	ClosedAt  int64                  `json:"closed_at"`
	Base      *billing.Base          `json:"base"`
}

// PeriodRowOf returns the row of a period that is closed at the instant closed, µs.
func PeriodRowOf(customer int64, p *billing.Period, closed int64) PeriodRow {
	r := PeriodRow{customer, p.Chain, p.N, p.Start, p.End, p.FullStart, p.FullEnd, p.KnownEnd, p.Trial, p.PlanID, p.Version, p.Prices, closed, p.Base}
	if r.Prices == nil {
		r.Prices = map[string]plans.Price{}
	}
	return r
}

const insertPeriods = `
	INSERT INTO periods (customer_id, chain, n, start_at, end_at, prior_end, full_start, full_end, known_end, trial, plan_id, version, prices, closed_at, base)
	SELECT customer_id, chain, n, start_at, end_at, (SELECT max(end_at) FROM periods p WHERE p.customer_id = r.customer_id),
		full_start, full_end, known_end, trial, plan_id, version, prices, closed_at, base
	FROM jsonb_populate_recordset(NULL::periods, $1) r`

// QueuePeriods queues the insertion of closed periods. The transaction has locked the rows of open_periods of
// their customers.
func QueuePeriods(b *pgx.Batch, closed []PeriodRow) error {
	return postgres.QueueRows(b, insertPeriods, closed)
}
