package upkeep

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/quota/model"
)

// keepRefusals is the time for which rows of refusals are kept, µs.
const keepRefusals = int64(30 * 24 * 3600e6)

const (
	// trimKeys is the maximum number of customers and meters that a step reads, and trimRows is the maximum number
	// of rows that it deletes.
	trimKeys = 500
	trimRows = 2000
)

// Trimmer deletes rows of refusals that are older than 30 days. It walks the customers and meters of these rows in
// the order of the key, some in each step, and reads no other rows.
//
// All nodes may run a Trimmer on the same database.
type Trimmer struct {
	pool   *pgxpool.Pool
	now    func(context.Context) (int64, error)
	usable func() bool
	log    *slog.Logger
	shard  int16
	after  trimmed       // the position in the shard
	limit  time.Duration // stepLimit
}

// trimmed is a customer and a meter.
type trimmed struct {
	Customer int64
	Meter    int32
}

// NewTrimmer returns a Trimmer, which does nothing while usable reports that the database is out of reach. now
// returns the database's time, µs. Run runs the Trimmer.
func NewTrimmer(pool *pgxpool.Pool, now func(context.Context) (int64, error), usable func() bool, log *slog.Logger) *Trimmer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	at := rand.N(int16(model.Shards)) //nolint:gosec // not a secret
	return &Trimmer{pool: pool, now: now, usable: usable, log: log, shard: at, limit: stepLimit}
}

// Run deletes rows until ctx ends. An error is logged once, until a step succeeds.
func (t *Trimmer) Run(ctx context.Context) {
	work := Repeated{Log: t.log, First: restPause, Fails: "old refusals cannot be deleted now", Works: "old refusals are deleted again"}
	work.Do = func(ctx context.Context) error {
		more, err := t.step(ctx)
		if work.Pause = restPause; more && err == nil {
			work.Pause = busyPause
		}
		return err
	}
	work.Run(ctx)
}

// TrimKeysSQL finds the next customers and meters of a shard. It reads one row for each customer and meter instead
// of all rows, because it searches each key from the key before. The parameters are $1 the shard, $2–$3 the key
// after which to continue, and $4 the number of keys.
const TrimKeysSQL = `
WITH RECURSIVE k AS (
	(SELECT customer, meter, 1 AS n FROM refusals
	 WHERE shard = $1 AND (customer, meter) > ($2::bigint, $3::integer) ORDER BY customer, meter LIMIT 1)
	UNION ALL
	SELECT r.customer, r.meter, k.n + 1 FROM k,
	LATERAL (SELECT customer, meter FROM refusals
		WHERE shard = $1 AND (customer, meter) > (k.customer, k.meter) ORDER BY customer, meter LIMIT 1) r
	WHERE k.n < $4::integer
)
SELECT customer, meter FROM k`

// TrimSQL deletes old rows of customers and meters. It does not wait for rows that are being written. The
// parameters are $1 the shard, $2–$3 customers and meters, $4 the instant before which a row is old, and $5 the
// number of rows.
const TrimSQL = `
DELETE FROM refusals r USING (
	SELECT $1::smallint AS shard, k.customer, k.meter, o.minute, o.limit_name
	FROM unnest($2::bigint[], $3::integer[]) AS k(customer, meter),
	LATERAL (SELECT minute, limit_name FROM refusals
		WHERE shard = $1 AND customer = k.customer AND meter = k.meter AND minute < $4 AND written_at < $4
		ORDER BY minute, limit_name LIMIT $5 FOR UPDATE SKIP LOCKED) o
	LIMIT $5) old
WHERE r.shard = ANY (ARRAY[old.shard]) AND r.customer = old.customer AND r.meter = old.meter AND r.minute = old.minute AND r.limit_name = old.limit_name`

// step processes the next customers and meters. more reports that some of their old rows may be left.
func (t *Trimmer) step(ctx context.Context) (more bool, err error) {
	if !t.usable() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	now, err := t.now(ctx)
	if err != nil {
		return false, err
	}
	rows, _ := t.pool.Query(ctx, TrimKeysSQL, t.shard, t.after.Customer, t.after.Meter, trimKeys)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[trimmed])
	if err != nil {
		return false, err
	}
	if len(found) == 0 {
		t.next()
		return false, nil
	}
	customers, meters := make([]int64, len(found)), make([]int32, len(found))
	for i, f := range found {
		customers[i], meters[i] = f.Customer, f.Meter
	}
	done, err := t.pool.Exec(ctx, TrimSQL, t.shard, customers, meters, now-keepRefusals, trimRows)
	if err != nil {
		t.next() // so that an error in this shard cannot block all other shards
		return false, err
	}
	switch {
	case done.RowsAffected() == trimRows:
		return true, nil
	case len(found) < trimKeys:
		t.next()
	default:
		t.after = found[len(found)-1]
	}
	return false, nil
}

// next continues with the next shard.
func (t *Trimmer) next() { t.shard, t.after = (t.shard+1)%model.Shards, trimmed{} }
