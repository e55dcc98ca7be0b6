package sweep

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
	"quotad/internal/quota/upkeep"
)

const (
	sweepEvery = 250 * time.Millisecond
	// sweepRows is the number of overrides that one transaction looks up. The transaction ends all expired
	// overrides of their customers while it holds the lock for which admin writes wait.
	sweepRows = 200
	// settleEvery is the interval at which scheduled changes are settled, unless a read or write of the
	// customer settles a change earlier.
	settleEvery = time.Second
	scrubEvery  = 5 * time.Second
	// scrubAfter is far longer than the time in which a node with a database learns of a change.
	scrubAfter = time.Minute
	// signOutEvery is the interval at which ended sessions are removed, signOutRows at a time. A session is
	// invalid from its end on, even before it is removed.
	signOutEvery = time.Minute
	signOutRows  = 1000
)

// Sweeper ends overrides when they expire, and writes scheduled changes into their customers once the
// changes apply. It also removes erased customers' keys from old changes, and removes ended sessions of
// the pages. All work is retried during an outage.
//
// All nodes run a Sweeper on the same database. Later nodes find nothing to do.
type Sweeper struct {
	store *store.Store
	now   func(context.Context) (int64, error)
	log   *slog.Logger

	scrubEvery, scrubAfter time.Duration // the constants, except in tests
}

// NewSweeper returns a Sweeper. now returns the best known time of the database, in µs since the Unix
// epoch. A nil log means slog.Default.
func NewSweeper(store *store.Store, now func(context.Context) (int64, error), log *slog.Logger) *Sweeper {
	if log == nil {
		log = slog.Default()
	}
	return &Sweeper{store: store, now: now, log: log, scrubEvery: scrubEvery, scrubAfter: scrubAfter}
}

// Run sweeps until ctx ends. Each kind of work has its own goroutine, so that no override waits for other
// work.
func (s *Sweeper) Run(ctx context.Context) {
	ends := upkeep.Repeated{
		Log: s.log, First: sweepEvery, Pause: sweepEvery, Do: s.endExpired,
		Fails: "cannot end what has expired", Works: "what has expired is ended again",
	}
	settles := upkeep.Repeated{
		Log: s.log, First: settleEvery, Pause: settleEvery, Do: s.settleScheduled,
		Fails: "cannot write scheduled changes that count; they count all the same, and it is tried again", Works: "scheduled changes are written again",
	}
	scrubs := upkeep.Repeated{
		Log: s.log, First: s.scrubEvery, Pause: s.scrubEvery, Do: s.scrubOld,
		Fails: "cannot take erased customers' keys out of old changes; it is tried again",
		Works: "erased customers' keys are taken out of old changes again",
	}
	signsOut := upkeep.Repeated{
		Log: s.log, First: signOutEvery, Pause: signOutEvery, Do: s.endSessions,
		Fails: "cannot remove sessions that are over; it is tried again", Works: "sessions that are over are removed again",
	}
	var all sync.WaitGroup
	all.Go(func() { ends.Run(ctx) })
	all.Go(func() { settles.Run(ctx) })
	all.Go(func() { scrubs.Run(ctx) })
	all.Go(func() { signsOut.Run(ctx) })
	all.Wait()
}

// endExpired ends all overrides that have expired.
func (s *Sweeper) endExpired(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.store.Within()/2)
	defer cancel()
	now, err := s.now(ctx)
	for more := true; more && err == nil; {
		more, err = s.endOverrides(ctx, now)
	}
	return err
}

// settleScheduled writes scheduled changes into their customers once the changes apply.
func (s *Sweeper) settleScheduled(ctx context.Context) error {
	now, err := s.now(ctx)
	for more := true; more && err == nil; {
		var keys []string
		keys, err = s.store.DueScheduled(ctx, now, sweepRows)
		for _, key := range keys {
			err = errors.Join(err, s.store.Settle(ctx, key)) // a failure does not delay other customers
		}
		more = len(keys) > 0
	}
	return err
}

// endSessions removes the sessions, and the links into the portal, that have ended.
func (s *Sweeper) endSessions(ctx context.Context) error {
	now, err := s.now(ctx)
	for more := true; more && err == nil; {
		more, err = s.store.DeleteOverSessions(ctx, now, signOutRows)
	}
	return err
}

// expiredOverrides leaves out customers on a test clock, whose overrides expire without a write when the
// clock is set, because the catalog checks the expiry. It also leaves out customers whose scheduled
// change has not been written yet, because that write records the past rates of their limits and needs
// the overrides.
const expiredOverrides = `
	SELECT DISTINCT id, key FROM (
		SELECT c.id, c.key FROM overrides o JOIN customers c ON c.id = o.customer_id
		WHERE o.expires_at <= $1 AND c.test_clock_id IS NULL
			AND NOT EXISTS (SELECT FROM customer_terms s WHERE s.customer_id = c.id AND s.waits AND s.limits_at <= $1) ORDER BY o.expires_at LIMIT $2) due
	ORDER BY id`

const endOverrides = `
	WITH ended AS (DELETE FROM overrides WHERE customer_id = ANY ($1::bigint[]) AND expires_at <= $2)
	UPDATE customers c SET change = $3::bigint + due.n - 1
	FROM unnest($1::bigint[]) WITH ORDINALITY AS due(id, n) WHERE c.id = due.id`

// endOverrides ends overrides that have expired at now, µs. Each of their customers gets a change, so
// that all nodes learn of the end. more is true if overrides were found, because there may be further
// overrides.
func (s *Sweeper) endOverrides(ctx context.Context, now int64) (more bool, err error) {
	rows, _ := s.store.Pool().Query(ctx, expiredOverrides, now, sweepRows)
	ids, _, err := expired(rows)
	if err != nil || len(ids) == 0 {
		return false, store.Classify(err)
	}
	err = s.store.Write(ctx, store.KindCustomer, "", func(ctx context.Context, w *store.Writing) error {
		// Query again under the lock, because another node may have been quicker.
		rows, _ := w.Query(ctx, expiredOverrides, now, sweepRows)
		ids, keys, err := expired(rows)
		if err != nil {
			return err
		}
		if more = len(ids) > 0; !more {
			return store.Unchanged()
		}
		if _, err := w.Exec(ctx, endOverrides, ids, now, w.Number); err != nil {
			return err
		}
		return w.Changed(ctx, keys)
	})
	return more, err
}

// expired reads the customers that expiredOverrides found.
func expired(rows pgx.Rows) (ids []int64, keys []string, err error) {
	var id int64
	var key string
	_, err = pgx.ForEachRow(rows, []any{&id, &key}, func() error {
		ids, keys = append(ids, id), append(keys, key)
		return nil
	})
	return ids, keys, err
}
