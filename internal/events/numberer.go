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
	// numberRows bounds one transaction. Nobody else gives ids meanwhile.
	numberRows = 1000
	// steppedBack is how far ahead of the present a time of writing is that PostgreSQL's clock showed before it was
	// set back. Such an event does not wait until the clock shows that time again.
	steppedBack = 10 * time.Second
	trimEvery   = time.Hour
	// trimRows bounds one transaction, and trimPause leaves the database to others between two.
	trimRows      = 1000
	trimPause     = 50 * time.Millisecond
	defaultWithin = 5 * time.Second
)

// Numberer gives ids to events whose transactions are committed, and deletes old ones.
//
// All nodes run one, on the same database. One at a time gives ids; the others leave it to that one.
type Numberer struct {
	// Within bounds each transaction, the wait for a connection included; 0 means 5 s. It is set
	// before the first use.
	Within time.Duration

	pool      *pgxpool.Pool
	retention time.Duration
	log       *slog.Logger
	numbered  atomic.Int64
}

// NewNumberer returns a Numberer. retention is from MinRetention to MaxRetention, the same on all
// nodes. A nil log is slog.Default.
func NewNumberer(pool *pgxpool.Pool, retention time.Duration, log *slog.Logger) *Numberer {
	if log == nil {
		log = slog.Default()
	}
	return &Numberer{pool: pool, retention: retention, log: log}
}

// Numbered is how many events this node has given ids to.
func (n *Numberer) Numbered() int64 { return n.numbered.Load() }

// Run works until ctx ends.
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

// oldestWaiting is one look at the index, also while rows that were moved are not vacuumed yet.
const oldestWaiting = `SELECT min(written_at) FROM outbox`

// Number gives ids to all events that are committed now. Where another node does that, it leaves the
// rest to it.
func (n *Numberer) Number(ctx context.Context) error {
	for {
		more, err := n.some(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// some gives ids to some events. more: there may be others.
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
// transaction, however that ends, so a node that dies holds up nobody.
const takeTurn = `SELECT number, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM event_number FOR UPDATE SKIP LOCKED`

// numberSome comes after takeTurn, as a statement of its own: so it sees all that whoever had the turn
// before has committed. Events that webhooks want are to be sent from the same commit on. $3, $4: later than the
// former and up to the latter waits.
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

// number gives ids to at most so many events, in the order in which they were written. It gives none
// where somebody else is at it. more: others may wait.
//
// Two events of which one was committed before the other was written are in that order, also where a charge
// wrote one of them: each event that was committed before an event of this pass was written is seen by the
// statements of this pass, for they come after the instant up to which it takes events. What was written
// later waits for the next pass.
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

// trimSome deletes the old ones of the first events after an id, and what was to be sent of them. Ids rise with the time at which they
// were given.
const trimSome = `
	WITH first AS (
		SELECT id, numbered_at FROM events WHERE id > $1 ORDER BY id LIMIT $2
	), gone AS (
		DELETE FROM events WHERE id IN (SELECT id FROM first WHERE numbered_at < clock_timestamp() - $3::interval) RETURNING id
	), unsent AS (
		DELETE FROM deliveries WHERE event IN (SELECT id FROM gone))
	SELECT count(*), coalesce(max(id), 0) FROM gone`

// trim deletes what is older than the retention, in pieces.
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
