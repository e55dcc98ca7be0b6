package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/quota/locked"
)

// The bounds of the retention of ids.
const (
	// A receipt must outlive its reservation and leave time for a late commit.
	MinIDRetention = 48 * time.Hour
	MaxIDRetention = 400 * 24 * time.Hour
)

// Rotator rotates the three tables of receipts. A turn of a table lasts half of the retention of ids, and one
// minute more. New receipts are written to the table whose turn it is. When the turn ends, the Rotator empties
// the next table by TRUNCATE, and the next table receives the new receipts.
//
// Therefore a receipt remains for two turns after the turn in which it was written. Every id is found for its
// whole retention, and for at most half the retention longer.
//
// A worker reads in its own transaction whose turn it is, and may still write to a table whose turn has just
// ended. The additional minute is far longer than such a transaction.
//
// All nodes may run a Rotator on the same database.
type Rotator struct {
	pool *pgxpool.Pool
	now  func(context.Context) (int64, error)
	keep int64 // µs
	log  *slog.Logger

	limit    time.Duration // rotateLimit
	lockWait string        // rotateLockWait
}

const (
	rotateEvery = time.Minute
	// rotateLimit bounds one attempt. An attempt waits at most rotateLockWait for sessions that read the table,
	// because later sessions wait behind the attempt.
	rotateLimit    = 5 * time.Second
	rotateLockWait = "200ms"
)

// NewRotator returns a Rotator whose retention of ids is keep. now returns PostgreSQL's time, µs since the Unix
// epoch. If log is nil, nothing is logged.
func NewRotator(pool *pgxpool.Pool, now func(context.Context) (int64, error), keep time.Duration, log *slog.Logger) *Rotator {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Rotator{pool: pool, now: now, keep: keep.Microseconds(), log: log, limit: rotateLimit, lockWait: rotateLockWait}
}

// Run rotates whenever a turn ends, until ctx ends. It logs an error once until an attempt succeeds.
func (r *Rotator) Run(ctx context.Context) {
	work := Repeated{
		Log: r.log, Pause: rotateEvery,
		Fails: "the ids of old requests cannot be dropped now; it is tried again", Works: "the ids of old requests are dropped again",
		Do: func(ctx context.Context) error {
			_, err := r.rotate(ctx)
			return err
		},
	}
	work.Run(ctx)
}

const (
	dueTurnSQL  = `SELECT slot FROM receipt_turn WHERE one AND since <= $1`
	lockTurnSQL = dueTurnSQL + ` FOR UPDATE`
	nextTurnSQL = `UPDATE receipt_turn SET slot = $1, since = $2 WHERE one`
)

// rotate starts the next table's turn if the present turn is over. done reports whether it did.
func (r *Rotator) rotate(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	now, err := r.now(ctx)
	if err != nil {
		return false, err
	}
	due, slot := now-r.keep/2-rotateEvery.Microseconds(), 0
	err = r.pool.QueryRow(ctx, dueTurnSQL, due).Scan(&slot)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '`+r.lockWait+`'`); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, lockTurnSQL, due).Scan(&slot)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // another node has rotated first
		}
		if err != nil {
			return err
		}
		next := (slot + 1) % len(locked.ReceiptTables)
		if _, err = tx.Exec(ctx, `TRUNCATE receipts_`+strconv.Itoa(next)); err == nil {
			_, err = tx.Exec(ctx, nextTurnSQL, next, now)
		}
		done = err == nil
		return err
	})
	return done && err == nil, err
}
