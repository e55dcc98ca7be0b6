package reconcile

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/upkeep"
)

// walkCharged checks, for each customer's meter, that what was charged is what was booked.
func (r *Reconciler) walkCharged(ctx context.Context, found *findings) error {
	w := walk[upkeep.Charged]{
		r: r, rows: "counters", checks: []string{ChargedIsBooked}, next: upkeep.NextCharged,
		look: func(ctx context.Context, tx pgx.Tx, keys []upkeep.Charged) (bad []wrong[upkeep.Charged], err error) {
			mismatches, err := upkeep.Mismatches(ctx, tx, keys)
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
