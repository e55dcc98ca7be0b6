package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrServing is returned by ClaimSchema while a quotad serves on the database.
var ErrServing = errors.New("a quotad serves on this database: stop every one of them first")

// ErrReadOnly is returned by CheckWrites if the session is read only.
var ErrReadOnly = errors.New("the database takes no writes: it is a standby, or set to be read only")

// CheckWrites returns ErrReadOnly if the session's transactions may not write.
func CheckWrites(ctx context.Context, conn *pgx.Conn) error {
	var readOnly bool
	err := conn.QueryRow(ctx, `SELECT current_setting('transaction_read_only')::boolean`).Scan(&readOnly)
	if err == nil && readOnly {
		err = ErrReadOnly
	}
	return err
}

// servingLockID is an advisory lock. Every connection of a serving pool holds it in shared mode. A process that
// changes data that serving nodes have read, such as the schema or a setting, holds it exclusively. The lock
// ends with its session, so a killed quotad leaves no lock behind.
const servingLockID = migrateLockID + 1

// claimPatience is the time for which ClaimSchema waits for the sessions of a quotad that has just stopped.
const claimPatience = 2 * time.Second

// claimPause is the pause between two attempts to acquire the exclusive lock.
const claimPause = 100 * time.Millisecond

// holdSchema takes the lock in shared mode. It waits while another session holds the lock exclusively.
func holdSchema(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SELECT pg_advisory_lock_shared($1)", int64(servingLockID))
	return err
}

// ClaimSchema takes the lock exclusively, so that no quotad can serve on the database until release is called.
// It returns ErrServing if a quotad serves. It tries repeatedly and never queues, because serving nodes would
// wait behind it.
func ClaimSchema(ctx context.Context, databaseURL string) (release func(), err error) {
	return claimSchema(ctx, databaseURL, claimPatience)
}

func claimSchema(ctx context.Context, databaseURL string, patience time.Duration) (release func(), err error) {
	conn, err := Connect(ctx, databaseURL, nil)
	if err != nil {
		return nil, err
	}
	for giveUp := time.Now().Add(patience); ; {
		var alone bool
		err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", int64(servingLockID)).Scan(&alone)
		switch {
		case err != nil:
			err = fmt.Errorf("look whether a quotad serves: %w", err)
		case alone:
			return func() { CloseConn(conn) }, nil
		case time.Now().After(giveUp):
			err = ErrServing
		case !Sleep(ctx, claimPause):
			err = ctx.Err()
		default:
			continue
		}
		CloseConn(conn)
		return nil, err
	}
}
