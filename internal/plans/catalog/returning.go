package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
)

// maxReturning limits the set of meters whose units can be returned by other means than time, such as
// refunds. If there are more such meters, every meter counts as one of them.
const maxReturning = 20_000

// Returning marks a meter in a store as a meter whose units can be returned by refunds and reservations.
// Every node learns of the mark within a second, and from then on caches refusals on the meter for at
// most a second. Returning must be called before units are returned or reserved. It writes only once for
// each meter.
//
// Errors: plans.ErrUnknownMeter, and the errors of the Store's writes.
func (c *Catalog) Returning(ctx context.Context, in *store.Store, meter string) error {
	e, err := c.meterEntry(ctx, meter)
	if err != nil || e.returns {
		return err
	}
	return in.SetReturning(ctx, meter)
}

// Returns reports whether units of the meter with this id can be returned by other means than time or a
// change. Until the node knows the marked meters, the result is true for every meter.
func (c *Catalog) Returns(meter int32) bool {
	known := c.memory.Load().returning.Load()
	if known == nil {
		return true
	}
	_, returns := (*known)[meter]
	return returns
}

// meterSet is an immutable set of meters, by id.
type meterSet map[int32]struct{}

const loadReturning = `SELECT id FROM meters WHERE returns LIMIT $1`

// readReturning reads the meters whose units can be returned by other means than time. The result is nil
// if there are too many to cache. A mark is never removed, so a read that is newer than requested does no
// harm.
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
