package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// maxReturning bounds the set of meters whose units may come back. With more of them,
// those of any meter may.
const maxReturning = 20_000

// Returning makes sure that units of a meter may come back, by refunds and reservations:
// every node knows within a second, and remembers its refusals no longer than that. It is
// called before units are given back or reserved, and writes once in a meter's life.
//
// Errors: plans.ErrUnknownMeter, and those of Store's writes.
func (c *Catalog) Returning(ctx context.Context, meter string) error {
	e, err := c.meterEntry(ctx, meter)
	if err != nil || e.returns {
		return err
	}
	return c.store.SetReturning(ctx, meter)
}

// Returns reports whether units of the meter with this id may come back otherwise than by
// time or a change. A node that does not know yet says so of every meter.
func (c *Catalog) Returns(meter int32) bool {
	known := c.memory.Load().returning.Load()
	if known == nil {
		return true
	}
	_, returns := (*known)[meter]
	return returns
}

// meterSet is a set of meters by their ids, never changed.
type meterSet map[int32]struct{}

const loadReturning = `SELECT id FROM meters WHERE returns LIMIT $1`

// readReturning reads the meters whose units may come back; nil when there are too many
// to keep. What was set stays set, so a reading that is newer than asked for is as good.
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
