package events

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/postgres"
	"quotad/internal/quota/upkeep"
)

// The bounds of the retention of events.
const (
	MinRetention = 48 * time.Hour // a webhook is retried for a day
	MaxRetention = 10 * 365 * 24 * time.Hour
)

const (
	numberEvery = 250 * time.Millisecond
	// numberRows bounds one transaction, during which no other node can assign ids.
	numberRows = 1000
	// steppedBack is the distance into the future at which a time of writing shows that PostgreSQL's clock was
	// set back afterwards. Such an event does not wait until the clock shows that time again.
	steppedBack = 10 * time.Second
	trimEvery   = time.Hour
	// trimRows bounds one transaction. trimPause is the pause between two transactions, in which the database
	// serves others.
	trimRows      = 1000
	trimPause     = 50 * time.Millisecond
	defaultWithin = 5 * time.Second
)

// Numberer assigns ids to committed events and deletes old events.
//
// All nodes run a Numberer on the same database. One node at a time assigns ids, and the others skip their turn.
type Numberer struct {
	// Within bounds each transaction, including the wait for a connection; 0 means 5 s. Set it before the first
	// use.
	Within time.Duration

	pool      *pgxpool.Pool
	retention time.Duration
	log       *slog.Logger
	numbered  atomic.Int64
}

// NewNumberer returns a Numberer. The retention must be between MinRetention and MaxRetention, and the same on
// all nodes. If log is nil, the Numberer logs to slog.Default.
func NewNumberer(pool *pgxpool.Pool, retention time.Duration, log *slog.Logger) *Numberer {
	if log == nil {
		log = slog.Default()
	}
	return &Numberer{pool: pool, retention: retention, log: log}
}

// Numbered returns the number of events to which this node has assigned ids.
func (n *Numberer) Numbered() int64 { return n.numbered.Load() }

// Run assigns ids and deletes old events until ctx ends.
func (n *Numberer) Run(ctx context.Context) {
	numbers := upkeep.Repeated{
		Log: n.log, First: numberEvery, Pause: numberEvery, Do: n.Number,
		Fails: "events cannot be shown now: they wait, and it is tried again", Works: "events are shown again",
	}
	trims := upkeep.Repeated{
		Log: n.log, First: rand.N(time.Minute), Pause: trimEvery, Do: n.trim, //nolint:gosec // not all nodes at one time, and not a secret
		Fails: "old events cannot be deleted now; it is tried again", Works: "old events are deleted again",
	}
	var both sync.WaitGroup
	both.Go(func() { numbers.Run(ctx) })
	both.Go(func() { trims.Run(ctx) })
	both.Wait()
}

// oldestWaiting reads one entry of the index, even if rows that were moved are not vacuumed yet.
const oldestWaiting = `SELECT min(written_at) FROM outbox`

// Number assigns ids to all events that are committed at the time of the call. If another node is assigning ids,
// Number leaves the remaining events to that node.
func (n *Numberer) Number(ctx context.Context) error {
	for {
		more, err := n.some(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// some assigns ids to a part of the events. It reports whether there may be more.
func (n *Numberer) some(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(n.Within, defaultWithin))
	defer cancel()
	var oldest *int64
	var reached bool
	b := new(pgx.Batch)
	b.Queue(oldestWaiting).QueryRow(func(row pgx.Row) error { return row.Scan(&oldest) })
	upkeep.QueueAnyThresholds(b, &reached)
	if err := postgres.Send(ctx, n.pool, b); err != nil || oldest == nil && !reached {
		return false, err
	}
	var done int64
	err = pgx.BeginFunc(ctx, n.pool, func(tx pgx.Tx) (err error) {
		done, more, err = number(ctx, tx, numberRows)
		return err
	})
	if err == nil {
		n.numbered.Add(done)
	}
	return more, err
}

// takeTurn locks the last number until the commit, and reads PostgreSQL's time, µs. The lock ends with the
// transaction, however the transaction ends, so a node that dies blocks no other node.
const takeTurn = `SELECT number, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM event_number FOR UPDATE SKIP LOCKED`

// numberSome runs after takeTurn as a separate statement, so that it sees all events that the previous holder of
// the lock has committed. The same commit inserts the deliveries to webhooks. Events written later than $3 and
// up to $4 wait for the next pass.
const numberSome = `
	WITH next AS (
		SELECT written_at, seq FROM outbox WHERE written_at <= $3 OR written_at > $4 ORDER BY written_at, seq LIMIT $2 FOR UPDATE
	), taken AS (
		DELETE FROM outbox WHERE (written_at, seq) IN (SELECT written_at, seq FROM next) RETURNING *
	), given AS (
		INSERT INTO events (id, type, at, customer, test_clock, data, numbered_at)
		SELECT $1 + row_number() OVER (ORDER BY written_at, seq), type, at, customer, test_clock, data, clock_timestamp() FROM taken
		RETURNING id, type
	), sent AS (
		INSERT INTO deliveries (event, webhook, since, due_at)
		SELECT g.id, w.id, clock_timestamp(), clock_timestamp() FROM given g
		JOIN webhooks w ON w.disabled_at IS NULL AND (w.types = '{}' OR g.type = ANY (w.types)))
	UPDATE event_number SET number = $1 + (SELECT count(*) FROM taken) RETURNING number - $1`

// number assigns ids to at most most events, in the order in which the events were written. It assigns no ids
// while another node holds the lock, and reports whether more events may wait.
//
// If one event was committed before another event was written, the first event has the lower id. This also holds
// for an event that a charge wrote. The statements of a pass run after the instant up to which the pass takes
// events, so they see every event that was committed before an event of the pass was written. Events that are
// written later wait for the next pass.
func number(ctx context.Context, tx pgx.Tx, most int) (done int64, more bool, err error) {
	var last, now int64
	switch err := tx.QueryRow(ctx, takeTurn).Scan(&last, &now); {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	}
	moved, err := moveThresholds(ctx, tx, most)
	if err != nil || moved == most { // some that were left may be older than what waits in outbox
		return 0, err == nil, err
	}
	err = tx.QueryRow(ctx, numberSome, last, most, now, now+steppedBack.Microseconds()).Scan(&done)
	return done, done == int64(most), err
}

// trimSome deletes those of the first events after an id that are older than the retention, together with their
// deliveries. Ids rise with the time at which they were assigned.
const trimSome = `
	WITH first AS (
		SELECT id, numbered_at FROM events WHERE id > $1 ORDER BY id LIMIT $2
	), gone AS (
		DELETE FROM events WHERE id IN (SELECT id FROM first WHERE numbered_at < clock_timestamp() - $3::interval) RETURNING id
	), unsent AS (
		DELETE FROM deliveries WHERE event IN (SELECT id FROM gone))
	SELECT count(*), coalesce(max(id), 0) FROM gone`

// trim deletes, in pieces, the events that are older than the retention.
func (n *Numberer) trim(ctx context.Context) error {
	for after := int64(0); ; {
		rows, last, err := n.trimPiece(ctx, after)
		if err != nil || rows < trimRows {
			return err
		}
		after = last
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(trimPause):
		}
	}
}

func (n *Numberer) trimPiece(ctx context.Context, after int64) (rows, last int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(n.Within, defaultWithin))
	defer cancel()
	err = n.pool.QueryRow(ctx, trimSome, after, trimRows, n.retention).Scan(&rows, &last)
	return rows, last, err
}
