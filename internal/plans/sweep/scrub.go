package sweep

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
)

const (
	// scrubErasures is how many erased customers one pass over the changes handles. scrubRows
	// is how many changes one transaction writes: it holds the lock that admin writes wait
	// for.
	scrubErasures = 100
	scrubRows     = 1000
)

// scrubOld takes the keys of customers that were erased long enough ago out of the changes.
func (s *Sweeper) scrubOld(ctx context.Context) error {
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	return s.scrub(ctx, now-s.scrubAfter.Microseconds())
}

// erasure says that changes up to Change may name an erased customer by Key. Its entries in the
// audit trail are those of Customer; 0: it has none.
type erasure struct {
	Change   int64
	Key      string
	Customer int64
}

const dueErasures = `SELECT change, key, coalesce(customer, 0) FROM erasures WHERE at <= $1 ORDER BY change LIMIT $2`

// scrub takes the keys of customers that were erased at until or before, µs, out of the changes, and out
// of the audit trail what it still says of them. A node that comes to such a change later forgets
// everything. Any number of nodes may do this at once.
func (s *Sweeper) scrub(ctx context.Context, until int64) (err error) {
	for more := true; more && err == nil; {
		more, err = s.scrubSome(ctx, until)
	}
	return store.Classify(err)
}

const scrubChanges = `UPDATE changes SET kind = 'erased', key = '' WHERE number = ANY ($1)`

const removeErasures = `DELETE FROM erasures WHERE change = ANY ($1)`

// scrubSome does so for the oldest erasures. more reports that it found some.
func (s *Sweeper) scrubSome(ctx context.Context, until int64) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.store.Within())
	defer cancel()
	rows, _ := s.store.Pool().Query(ctx, dueErasures, until, scrubErasures)
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[erasure])
	if err != nil || len(due) == 0 {
		return false, err
	}
	numbers, err := s.changesAbout(ctx, due)
	if err != nil {
		return false, err
	}
	for some := range slices.Chunk(numbers, scrubRows) {
		if err := s.execLocked(ctx, scrubChanges, some); err != nil {
			return false, err
		}
	}
	for _, e := range due {
		for more := e.Customer > 0; more; {
			if more, err = store.ScrubAudit(ctx, s.store.Pool(), e.Customer); err != nil {
				return false, err
			}
		}
	}
	done := make([]int64, len(due))
	for i := range due {
		done[i] = due[i].Change
	}
	return true, s.execLocked(ctx, removeErasures, done)
}

// changesAbout is one pass over all changes, since their index is by number only. It needs no
// lock: a change that is added meanwhile has a higher number.
const changesAbout = `
	SELECT number, key FROM changes WHERE kind = 'customer' AND number <= $1 AND key = ANY ($2) ORDER BY number`

// changesAbout are the numbers of the changes that name erased customers. The changes of a
// later customer of the same key are not among them.
func (s *Sweeper) changesAbout(ctx context.Context, due []erasure) (numbers []int64, err error) {
	last := make(map[string]int64, len(due))
	for _, e := range due { // in the order of the changes
		last[e.Key] = e.Change
	}
	var number int64
	var key string
	rows, _ := s.store.Pool().Query(ctx, changesAbout, due[len(due)-1].Change, slices.Collect(maps.Keys(last)))
	_, err = pgx.ForEachRow(rows, []any{&number, &key}, func() error {
		if number <= last[key] {
			numbers = append(numbers, number)
		}
		return nil
	})
	return numbers, err
}

const lockChanges = `SELECT number FROM change_number FOR UPDATE`

// execLocked runs a statement on the rows of these numbers, under the lock of admin writes.
// Admin writes delete old changes under that lock. Without the lock the two could deadlock.
func (s *Sweeper) execLocked(ctx context.Context, statement string, numbers []int64) error {
	return pgx.BeginFunc(ctx, s.store.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockChanges); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statement, numbers)
		return err
	})
}
