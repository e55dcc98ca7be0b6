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

// The bounds of the time for which ids are kept.
const (
	// A receipt must outlive its reservation and leave time for a late commit.
	MinIDRetention = 48 * time.Hour
	MaxIDRetention = 400 * 24 * time.Hour
)

// Rotator rotates the three tables of receipts. The turn of a table lasts half the time for which ids are kept,
// and a minute more. New receipts are written to the table whose turn it is. When the turn ends, the Rotator
// empties the next table by TRUNCATE, and that table receives the new receipts.
//
// Therefore a receipt stays for two turns after the turn in which it was written. Every id is found for the whole
// time for which ids are kept, and at most half as long again.
//
// A worker reads the present turn in its own transaction, and may still write to a table whose turn has just
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
	// rotateLimit is the maximum duration of one try. The try waits for readers of the table for at most
	// rotateLockWait, because later transactions queue behind it.
	rotateLimit    = 5 * time.Second
	rotateLockWait = "200ms"
)

// NewRotator returns a Rotator that keeps ids for keep. now returns PostgreSQL's time, µs since the Unix epoch. If
// log is nil, nothing is logged.
func NewRotator(pool *pgxpool.Pool, now func(context.Context) (int64, error), keep time.Duration, log *slog.Logger) *Rotator {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Rotator{pool: pool, now: now, keep: keep.Microseconds(), log: log, limit: rotateLimit, lockWait: rotateLockWait}
}

// Run rotates the tables when it is time, until ctx ends. An error is logged once, until a try succeeds again.
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

// rotate begins the next table's turn if it is time. done reports whether it did.
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
