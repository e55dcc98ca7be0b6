package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/upkeep"
)

const selectKnown = `SELECT id FROM customers WHERE id = ANY ($1)`

// walkCharged checks, for each customer's meter, that the charged units equal the booked units, and that a
// cap counts the booked units. Archived customers are checked, too. Forgotten customers are skipped, because
// only their usage remains and their counters are deleted a while later.
func (r *Reconciler) walkCharged(ctx context.Context, found *findings) error {
	w := walk[upkeep.Charged]{
		r: r, rows: "counters", checks: []string{ChargedIsBooked, CapsCountBooked}, next: upkeep.NextCharged,
		look: func(ctx context.Context, tx pgx.Tx, keys []upkeep.Charged) (bad []wrong[upkeep.Charged], err error) {
			mismatches, err := upkeep.Mismatches(ctx, tx, keys)
			if err != nil {
				return nil, err
			}
			for _, m := range mismatches {
				bad = append(bad, wrong[upkeep.Charged]{m.Charged, ChargedIsBooked, Disagreement{customer: m.Customer, meter: m.Meter}.differs(
					m.Units, m.Finished+m.Running,
					fmt.Sprintf("%d units were charged. Booked are %d in finished hours and %d in the running one.", m.Units, m.Finished, m.Running),
				)})
			}
			misheld, err := upkeep.MisheldValues(ctx, tx, keys)
			if err != nil {
				return nil, err
			}
			for _, m := range misheld {
				bad = append(bad, wrong[upkeep.Charged]{m.Charged, ChargedIsBooked, Disagreement{customer: m.Customer, meter: m.Meter}.differs(
					m.Together, m.Each,
					fmt.Sprintf("The values of the attribute hold %d units together, %d by their own counters, and the meter holds %d.", m.Together, m.Each, m.Level),
				)})
			}
			miscounts, err := upkeep.Miscounts(ctx, tx, keys)
			if err != nil {
				return nil, err
			}
			for _, m := range miscounts {
				bad = append(bad, wrong[upkeep.Charged]{m.Charged, CapsCountBooked, Disagreement{customer: m.Customer, meter: m.Meter}.on(m.Start).differs(
					m.Booked, m.Counted, fmt.Sprintf("The cap counts %d units in its billing period. Booked are %d, adjustments among them.", m.Counted, m.Booked),
				)})
			}
			return known(ctx, tx, bad)
		},
	}
	return w.run(ctx, upkeep.BeforeCharged, found)
}

// known returns the rows of customers that exist.
func known(ctx context.Context, tx pgx.Tx, bad []wrong[upkeep.Charged]) ([]wrong[upkeep.Charged], error) {
	if len(bad) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(bad))
	for i := range bad {
		ids[i] = bad[i].customer
	}
	rows, _ := tx.Query(ctx, selectKnown, ids)
	there, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return slices.DeleteFunc(bad, func(w wrong[upkeep.Charged]) bool { return !slices.Contains(there, w.customer) }), err
}
