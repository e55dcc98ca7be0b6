package upkeep

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Census reads the sizes of the hot tables once a minute. It reads the server's statistics and no rows of the
// tables.
type Census struct {
	pool *pgxpool.Pool
	now  func(context.Context) (int64, error)
	keep int64 // the time for which ids are kept, µs
	log  *slog.Logger
	last atomic.Pointer[Counts]
}

// Counts contains the results of a Census. The partitions of a table count as one table.
type Counts struct {
	At       int64 // PostgreSQL's time, µs
	Tables   []TableCounts
	Database int64 // the size of the database, bytes
	Holds    int64 // the approximate number of holds, which each open reservation has in each of its counters
	// IDs is the age of the turn of the present table of ids. Overdue is the time since that turn should have
	// ended. Both are in µs.
	IDs, Overdue int64
}

// TableCounts contains the size of one hot table. Rows and Dead are the server's estimates.
type TableCounts struct {
	Name                string
	Bytes               int64 // including indexes
	Rows, Dead          int64
	Updates, HotUpdates int64 // since the server's statistics were reset
}

const (
	censusEvery = time.Minute
	censusLimit = 10 * time.Second
)

// NewCensus returns a Census. now returns PostgreSQL's time, µs since the Unix epoch. keep is the time for which
// ids are kept. If log is nil, nothing is logged.
func NewCensus(pool *pgxpool.Pool, now func(context.Context) (int64, error), keep time.Duration, log *slog.Logger) *Census {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Census{pool: pool, now: now, keep: keep.Microseconds(), log: log}
}

// Last returns the latest results, or nil if nothing has been read yet.
func (c *Census) Last() *Counts { return c.last.Load() }

// Run reads until ctx ends. An error is logged once, until a read succeeds again.
func (c *Census) Run(ctx context.Context) {
	work := Repeated{
		Log: c.log, Pause: censusEvery, Do: c.read,
		Fails: "the sizes of tables cannot be read now; it is tried again", Works: "the sizes of tables are read again",
	}
	work.Run(ctx)
}

const (
	tablesSQL = `
SELECT coalesce(p.relname, s.relname), sum(pg_total_relation_size(s.relid))::bigint, sum(s.n_live_tup)::bigint, sum(s.n_dead_tup)::bigint,
	sum(s.n_tup_upd)::bigint, sum(s.n_tup_hot_upd)::bigint
FROM pg_stat_user_tables s LEFT JOIN pg_class p ON p.oid = pg_partition_root(s.relid)
WHERE s.schemaname = current_schema() AND coalesce(p.relname, s.relname) IN
	('counters', 'usage', 'receipts_0', 'receipts_1', 'receipts_2', 'holds', 'adjustments', 'refusals')
GROUP BY 1 ORDER BY 1`
	turnSQL = `SELECT since, pg_database_size(current_database()) FROM receipt_turn WHERE one`
)

// read reads all results.
func (c *Census) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, censusLimit)
	defer cancel()
	now, err := c.now(ctx)
	if err != nil {
		return err
	}
	counts := Counts{At: now}
	var since int64
	if err := c.pool.QueryRow(ctx, turnSQL).Scan(&since, &counts.Database); err != nil {
		return err
	}
	counts.IDs = max(0, now-since)
	counts.Overdue = max(0, counts.IDs-c.keep/2-rotateEvery.Microseconds())
	rows, _ := c.pool.Query(ctx, tablesSQL)
	counts.Tables, err = pgx.CollectRows(rows, pgx.RowToStructByPos[TableCounts])
	if err != nil {
		return err
	}
	for _, t := range counts.Tables {
		if t.Name == "holds" {
			counts.Holds = t.Rows
		}
	}
	c.last.Store(&counts)
	return nil
}
