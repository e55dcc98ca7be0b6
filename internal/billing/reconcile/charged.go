package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/upkeep"
)

const selectKnown = `SELECT id FROM customers WHERE id = ANY ($1)`

// mismatches are those of customers that there are. Archived customers count. Of one that was
// forgotten only the usage stays, and its counters go a while after it: there is nothing to hold
// the usage against.
func mismatches(ctx context.Context, tx pgx.Tx, keys []upkeep.Charged) ([]upkeep.Mismatch, error) {
	all, err := upkeep.Mismatches(ctx, tx, keys)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	ids := make([]int64, len(all))
	for i, m := range all {
		ids[i] = m.Customer
	}
	rows, _ := tx.Query(ctx, selectKnown, ids)
	known, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return slices.DeleteFunc(all, func(m upkeep.Mismatch) bool { return !slices.Contains(known, m.Customer) }), err
}

// walkCharged checks, for each customer's meter, that what was charged is what was booked.
func (r *Reconciler) walkCharged(ctx context.Context, found *findings) error {
	w := walk[upkeep.Charged]{
		r: r, rows: "counters", checks: []string{ChargedIsBooked}, next: upkeep.NextCharged,
		look: func(ctx context.Context, tx pgx.Tx, keys []upkeep.Charged) (bad []wrong[upkeep.Charged], err error) {
			mismatches, err := mismatches(ctx, tx, keys)
			for _, m := range mismatches {
				bad = append(bad, wrong[upkeep.Charged]{m.Charged, ChargedIsBooked, Disagreement{customer: m.Customer, meter: m.Meter}.differs(
					m.Units, m.Finished+m.Running,
					fmt.Sprintf("%d units were charged. Booked are %d in finished hours and %d in the running one.", m.Units, m.Finished, m.Running),
				)})
			}
			return bad, err
		},
	}
	return w.run(ctx, upkeep.BeforeCharged, found)
}
