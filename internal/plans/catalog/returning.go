package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
)

// maxReturning bounds the set of meters whose units may come back. Where there are more such
// meters, every meter counts as one.
const maxReturning = 20_000

// Returning marks a meter in a store: its units may come back, by refunds and reservations. Every node
// knows the mark within a second, and from then on remembers refusals on the meter no longer
// than that. It is called before units are given back or reserved. It writes only once for
// each meter.
//
// Errors: plans.ErrUnknownMeter, and those of Store's writes.
func (c *Catalog) Returning(ctx context.Context, in *store.Store, meter string) error {
	e, err := c.meterEntry(ctx, meter)
	if err != nil || e.returns {
		return err
	}
	return in.SetReturning(ctx, meter)
}

// Returns reports whether units of the meter with this id may come back by something else than
// time or a change. While a node does not know yet, it is true of every meter.
func (c *Catalog) Returns(meter int32) bool {
	known := c.memory.Load().returning.Load()
	if known == nil {
		return true
	}
	_, returns := (*known)[meter]
	return returns
}

// meterSet is an immutable set of meters, by their ids.
type meterSet map[int32]struct{}

const loadReturning = `SELECT id FROM meters WHERE returns LIMIT $1`

// readReturning reads the meters whose units may come back; nil when there are too many to
// keep. A mark is never removed, so a newer read than was asked for does no harm.
func readReturning(ctx context.Context, from *pgx.Conn) (*meterSet, error) {
	rows, _ := from.Query(ctx, loadReturning, maxReturning+1)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil || len(ids) > maxReturning {
		return nil, err
	}
	set := make(meterSet, len(ids))
	for _, id := range ids {
		set[id] = struct{}{}
	}
	return &set, nil
}
