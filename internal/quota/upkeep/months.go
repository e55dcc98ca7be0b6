package upkeep

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Partitioner creates the partitions of usage, adjustments and audit for the running UTC month and some later
// months. Rows of a month without a partition are in the default partition. When a month is created, its hours are
// moved to the new partition in the same transaction. Entries of the audit trail are never moved, so their month
// stays in the default partition.
//
// All nodes may run a Partitioner on the same database.
type Partitioner struct {
	pool *pgxpool.Pool
	now  func(context.Context) (int64, error)
	log  *slog.Logger

	lockWait, limit string // partitionLockWait, partitionLimit
}

const (
	// monthsAhead is the number of months after the running month that have partitions.
	monthsAhead    = 3
	partitionEvery = 10 * time.Minute
	makeLimit      = time.Minute
	// Charges to an hour of the default partition wait while a month is created. The following two limits bound
	// the wait.
	partitionLockWait = "200ms"
	partitionLimit    = "5s"
	// partitionLock is the advisory lock that is held while monthly partitions are created.
	partitionLock = 0x71756f74616d // "quotam"
)

// NewPartitioner returns a Partitioner. now returns PostgreSQL's time, µs since the Unix epoch. If log is nil,
// nothing is logged.
func NewPartitioner(pool *pgxpool.Pool, now func(context.Context) (int64, error), log *slog.Logger) *Partitioner {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Partitioner{pool: pool, now: now, log: log, lockWait: partitionLockWait, limit: partitionLimit}
}

// Run creates months until ctx ends. An error is logged once, until a try succeeds again.
func (p *Partitioner) Run(ctx context.Context) {
	work := Repeated{
		Log: p.log, Pause: partitionEvery,
		Fails: "the tables of the months to come cannot be made now; it is tried again", Works: "the tables of the months to come are made again",
		Do: func(ctx context.Context) error {
			_, err := p.Make(ctx)
			return err
		},
	}
	work.Run(ctx)
}

// partitioned is a partitioned table, with the storage parameters of its partitions.
type partitioned struct {
	name, column, with string
	timestamps         bool // the column's type is a timestamp; otherwise the column contains µs since the Unix epoch
	stays              bool // rows are never moved or truncated
}

// byMonth contains the tables that are partitioned by month.
var byMonth = []partitioned{
	{name: "usage", column: "hour", with: " WITH (fillfactor = 80)"},
	{name: "adjustments", column: "hour"},
	{name: "audit", column: "at", timestamps: true, stays: true},
}

// literal returns an instant in the form of the table's column.
func (t *partitioned) literal(at time.Time) string {
	if t.timestamps {
		return "'" + at.Format(time.RFC3339) + "'"
	}
	return strconv.FormatInt(at.UnixMicro(), 10)
}

// Make creates the missing partitions, and returns the number of created partitions. It does not wait for another
// node that is creating partitions.
func (p *Partitioner) Make(ctx context.Context) (made int, err error) {
	ctx, cancel := context.WithTimeout(ctx, makeLimit)
	defer cancel()
	now, err := p.now(ctx)
	if err != nil {
		return 0, err
	}
	year, month, _ := time.UnixMicro(now).UTC().Date()
	for _, table := range byMonth {
		for n := range time.Month(monthsAhead + 1) {
			start := time.Date(year, month+n, 1, 0, 0, 0, 0, time.UTC)
			done, err := p.makeMonth(ctx, table, start)
			if err != nil {
				return made, fmt.Errorf("make the partition of %s for %s: %w", table.name, start.Format("2006-01"), err)
			}
			if done {
				made++
			}
		}
	}
	return made, nil
}

// boundsSQL returns the partitions of a table except for the default partition, with their bounds, µs since the
// Unix epoch. A null means that there is no bound. The parameters are $1 the table, and $2 whether its column has
// timestamps.
const boundsSQL = `
SELECT c.oid::regclass::text AS partition,
	CASE WHEN lower = 'MINVALUE' THEN NULL WHEN $2::boolean THEN extract(epoch FROM lower::timestamptz) * 1000000 ELSE lower::numeric END AS lower,
	CASE WHEN upper = 'MAXVALUE' THEN NULL WHEN $2::boolean THEN extract(epoch FROM upper::timestamptz) * 1000000 ELSE upper::numeric END AS upper
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid,
	substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \(''?([^'')]+)') AS lower,
	substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''?([^'')]+)') AS upper
WHERE i.inhparent = to_regclass($1) AND lower IS NOT NULL`

// missingSQL reports whether rows of a month go to the default partition of a table. The bounds of a partition are
// starts of months, so a partition that overlaps the month contains the whole month. The parameters $1 and $2 are
// those of boundsSQL, and $3 and $4 are the month.
const missingSQL = `
SELECT EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = to_regclass($1) AND partdefid <> 0) AND NOT EXISTS (
	SELECT FROM (` + boundsSQL + `) b WHERE coalesce(lower < $4::bigint, true) AND coalesce(upper > $3::bigint, true))`

// makeMonth creates one partition unless it exists. It fills the new table before attaching it. Therefore the
// parent table is never locked against charges, and the default partition is locked only while rows are moved.
func (p *Partitioner) makeMonth(ctx context.Context, table partitioned, start time.Time) (made bool, err error) {
	from, to := start.UnixMicro(), start.AddDate(0, 1, 0).UnixMicro()
	missing := false
	args := []any{table.name, table.timestamps, from, to}
	if err := p.pool.QueryRow(ctx, missingSQL, args...).Scan(&missing); err != nil || !missing {
		return false, err
	}
	// The following texts contain only numbers and names from the code, because such statements accept no
	// parameters.
	month, rest := table.name+"_"+start.Format("2006_01"), table.name+"_default"
	first, last := table.literal(start), table.literal(start.AddDate(0, 1, 0))
	within := table.column + ` >= ` + first + ` AND ` + table.column + ` < ` + last
	filled := `WITH moved AS (DELETE FROM ` + rest + ` WHERE ` + within + ` RETURNING *) INSERT INTO ` + month + ` SELECT * FROM moved`
	if table.stays {
		filled = `CREATE TRIGGER ` + table.name + `_stays BEFORE TRUNCATE ON ` + month + ` FOR EACH STATEMENT EXECUTE FUNCTION ` + table.name + `_stands()`
	}
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		var alone bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, partitionLock).Scan(&alone); err != nil || !alone {
			return err
		}
		if err := tx.QueryRow(ctx, missingSQL, args...).Scan(&made); err != nil || !made {
			return err
		}
		if table.stays {
			if err := tx.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM `+rest+` WHERE `+within+`)`).Scan(&made); err != nil || !made {
				return err
			}
		}
		for _, sql := range []string{
			`SET LOCAL lock_timeout = '` + p.lockWait + `'`,
			`SET LOCAL statement_timeout = '` + p.limit + `'`,
			`CREATE TABLE ` + month + ` (LIKE ` + table.name + ` INCLUDING DEFAULTS INCLUDING INDEXES INCLUDING STORAGE)` + table.with,
			`LOCK TABLE ` + rest + ` IN ACCESS EXCLUSIVE MODE`,
			filled,
			`ALTER TABLE ` + table.name + ` ATTACH PARTITION ` + month + ` FOR VALUES FROM (` + first + `) TO (` + last + `)`,
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	return made && err == nil, err
}

// DropMonths drops the partitions of the audit trail whose last entry is older than an instant, µs since the Unix
// epoch. It waits only briefly for a partition that is being read. If the wait fails, the next call drops the
// partition.
func DropMonths(ctx context.Context, pool *pgxpool.Pool, before int64) error {
	rows, _ := pool.Query(ctx, `SELECT partition FROM (`+boundsSQL+`) b WHERE upper <= $3::bigint`, "audit", true, before)
	old, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, partition := range old {
		if err == nil { // the catalog has returned and quoted the name
			_, err = pool.Exec(ctx, `SET LOCAL lock_timeout = '`+partitionLockWait+`'; DROP TABLE IF EXISTS `+partition, pgx.QueryExecModeSimpleProtocol)
		}
	}
	return err
}
