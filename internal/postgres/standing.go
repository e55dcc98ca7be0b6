package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standing is the state of a server and its database. It leaves out the data of other sessions that the role may
// not read.
type Standing struct {
	Version        string
	Bytes          int64 // size of the database on disk
	Connections    int   // number of client connections to all databases of the server
	MaxConnections int
	InRecovery     bool // the server accepts no writes
	Replicas       int
	// ReplicaLag is the number of bytes of WAL that the slowest replica has not replayed. It is nil if there is
	// no replica or the role may not read the lag.
	ReplicaLag *int64
	// OldestTransaction is the start of the oldest open transaction in the database, or nil if no transaction is
	// open.
	OldestTransaction *time.Time
}

const standingSQL = `
	SELECT current_setting('server_version'), pg_database_size(current_database()),
		(SELECT count(*) FROM pg_stat_activity WHERE usesysid IS NOT NULL AND datid IS NOT NULL AND leader_pid IS NULL),
		current_setting('max_connections')::integer, pg_is_in_recovery(),
		(SELECT count(*) FROM pg_stat_replication),
		CASE WHEN NOT pg_is_in_recovery() THEN
			(SELECT max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn))::bigint FROM pg_stat_replication) END,
		(SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid())`

// StandingOf reads the state of a server. from is a pool or a connection.
func StandingOf(ctx context.Context, from interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) (s Standing, err error) {
	err = from.QueryRow(ctx, standingSQL).Scan(&s.Version, &s.Bytes, &s.Connections, &s.MaxConnections, &s.InRecovery, &s.Replicas, &s.ReplicaLag,
		&s.OldestTransaction)
	return s, err
}
