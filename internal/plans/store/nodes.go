package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

const (
	// nodeKept is the time after a node's last report for which its row is kept, µs. A node that restarts
	// under the same name replaces the row sooner.
	nodeKept = int64(3600e6)
	// nodeSilent is the time without reports after which a restarted node may replace the row, µs.
	nodeSilent = int64(30e6)
	// decisionsKept is the time for which a minute of decisions is kept, µs: a day, and an hour for slow
	// readers.
	decisionsKept = int64(25 * 3600e6)
	// maxNodes is the greatest length of a list of nodes.
	maxNodes = 1000
)

// A node writes its decisions of a minute as a total, so that a write can be repeated safely.
const beat = `
	WITH told AS (
		INSERT INTO nodes (id, name, version, state, reason, started_at, seen_at, checked_at, disagreeing)
		VALUES ($1::text, $2, $3, $4, $5, $6, $7::bigint, $8, $9)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason, seen_at = excluded.seen_at,
			checked_at = excluded.checked_at, disagreeing = excluded.disagreeing
	), counted AS (
		INSERT INTO decisions (minute, node, admitted, refused)
		SELECT $10::bigint, $1, $11::bigint, $12::bigint WHERE $11 + $12 > 0
		ON CONFLICT (minute, node) DO UPDATE SET admitted = excluded.admitted, refused = excluded.refused
	), old AS (
		DELETE FROM decisions WHERE minute < $7 - $13::bigint
	)
	DELETE FROM nodes n WHERE n.id <> $1
		AND (n.seen_at < $7 - $14::bigint OR n.name = $2 AND n.seen_at < $7 - $15::bigint)`

// Beat reports the state of a node and its decisions so far in the minute that starts at minute, µs. Beat
// also deletes old rows of all nodes.
func (s *Store) Beat(ctx context.Context, n *plans.Node, minute int64, d plans.Decided) error {
	return s.exec(ctx, beat, n.ID, n.Name, n.Version, n.State, n.Reason, n.StartedAt, n.SeenAt, n.CheckedAt, append([]string{}, n.Disagreeing...),
		minute, d.Admitted, d.Refused, decisionsKept, nodeKept, nodeSilent)
}

// EndNode removes a node. The node's decisions are kept.
func (s *Store) EndNode(ctx context.Context, id string) error {
	return s.exec(ctx, `DELETE FROM nodes WHERE id = $1`, id)
}

const listNodes = `
	SELECT id, name, version, state, reason, started_at, seen_at, checked_at, disagreeing FROM nodes ORDER BY name, started_at, id LIMIT $1`

// Nodes returns at most 1,000 nodes, ordered by name.
func (s *Store) Nodes(ctx context.Context) ([]plans.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	rows, _ := s.pool.Query(ctx, listNodes, maxNodes)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (n plans.Node, err error) {
		err = row.Scan(&n.ID, &n.Name, &n.Version, &n.State, &n.Reason, &n.StartedAt, &n.SeenAt, &n.CheckedAt, &n.Disagreeing)
		return n, err
	})
	return all, Classify(err)
}

const decidedSince = `
	SELECT node, coalesce(sum(admitted) FILTER (WHERE minute >= $1), 0)::bigint, coalesce(sum(refused) FILTER (WHERE minute >= $1), 0)::bigint,
		coalesce(sum(admitted) FILTER (WHERE minute >= $2), 0)::bigint, coalesce(sum(refused) FILTER (WHERE minute >= $2), 0)::bigint,
		sum(admitted)::bigint, sum(refused)::bigint
	FROM decisions WHERE minute >= $3 GROUP BY node ORDER BY node`

// DecidedSince returns the number of decisions of each node in the minutes from recent, hour and day on,
// µs. recent is the latest of the three instants, and day is at most 25 hours ago.
func (s *Store) DecidedSince(ctx context.Context, recent, hour, day int64) ([]plans.NodeDecided, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	rows, _ := s.pool.Query(ctx, decidedSince, recent, hour, day)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d plans.NodeDecided, err error) {
		err = row.Scan(&d.Node, &d.Recent.Admitted, &d.Recent.Refused, &d.Hour.Admitted, &d.Hour.Refused, &d.Day.Admitted, &d.Day.Refused)
		return d, err
	})
	return all, Classify(err)
}
