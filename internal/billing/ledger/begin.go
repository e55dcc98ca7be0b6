package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// begin fixes what prices periods that were written before they began: they begin now. Versions
// of plans may have come meanwhile.
func (l *Ledger) begin(ctx context.Context, tx pgx.Tx, due []*job) error {
	customers := make(map[int64]*customer, len(due))
	for _, j := range due {
		customers[j.c.id] = j.c
	}
	lines, err := timelines(ctx, tx, customers)
	if err != nil {
		return err
	}
	for id, c := range customers {
		p, ok := lines[id].Again(c.open, true)
		opening := false
		if err := tx.QueryRow(ctx, noOpening, id, c.chain).Scan(&opening); err != nil {
			return err
		}
		if err := writeOpen(ctx, tx, c, &p, ok, true, opening && p.N == 0); err != nil {
			return err
		}
	}
	return nil
}
