package reconcile

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/upkeep"
)

// walkStored checks, for each counter, that the change under which the counter was judged exists.
func (r *Reconciler) walkStored(ctx context.Context, found *findings) error {
	w := walk[upkeep.Stored]{
		r: r, rows: "counters", checks: []string{ChangesExist}, next: upkeep.NextStored,
		look: func(ctx context.Context, tx pgx.Tx, keys []upkeep.Stored) (bad []wrong[upkeep.Stored], err error) {
			all, err := upkeep.UnnumberedOf(ctx, tx, keys)
			for _, u := range all {
				bad = append(bad, wrong[upkeep.Stored]{u.Stored, ChangesExist, Disagreement{customer: u.Customer, meter: u.Meter}.differs(
					u.Newest, u.Change,
					fmt.Sprintf("The counter of %s was judged under change %d. The newest change is %d.", cmp.Or(u.Attribute, "the customer"), u.Change, u.Newest),
				)})
			}
			return bad, err
		},
	}
	return w.run(ctx, upkeep.BeforeStored, found)
}
