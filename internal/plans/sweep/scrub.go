package sweep

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
)

const (
	// scrubErasures is the number of erased customers that one pass over the changes handles. scrubRows is
	// the number of changes that one transaction writes while it holds the lock for which admin writes wait.
	scrubErasures = 100
	scrubRows     = 1000
)

// scrubOld removes from the changes the keys of customers that were erased long enough ago.
func (s *Sweeper) scrubOld(ctx context.Context) error {
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	return s.scrub(ctx, now-s.scrubAfter.Microseconds())
}

// erasure records that changes up to Change may contain an erased customer's key, Key. Customer is the id
// of the customer in the audit trail, or 0 if there are no entries.
type erasure struct {
	Change   int64
	Key      string
	Customer int64
}

const dueErasures = `SELECT change, key, coalesce(customer, 0) FROM erasures WHERE at <= $1 ORDER BY change LIMIT $2`

// scrub removes the keys of customers that were erased at until or before, µs, from the changes, and
// their remaining data from the audit trail. A node that reads such a change later clears its memory. Any
// number of nodes may scrub at once.
func (s *Sweeper) scrub(ctx context.Context, until int64) (err error) {
	for more := true; more && err == nil; {
		more, err = s.scrubSome(ctx, until)
	}
	return store.Classify(err)
}

const scrubChanges = `UPDATE changes SET kind = 'erased', key = '' WHERE number = ANY ($1)`

const removeErasures = `DELETE FROM erasures WHERE change = ANY ($1)`

// scrubSome scrubs the oldest erasures. more is true if there were any.
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

// changesAbout scans all changes once, because their index is by number only. The scan needs no lock,
// because changes that are added meanwhile have higher numbers.
const changesAbout = `
	SELECT number, key FROM changes WHERE kind = 'customer' AND number <= $1 AND key = ANY ($2) ORDER BY number`

// changesAbout returns the numbers of the changes that contain keys of erased customers. Changes of a
// later customer with the same key are left out.
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

// execLocked runs a statement on the rows with these numbers, under the lock of admin writes. Admin
// writes delete old changes under the same lock, so without the lock the two could deadlock.
func (s *Sweeper) execLocked(ctx context.Context, statement string, numbers []int64) error {
	return pgx.BeginFunc(ctx, s.store.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockChanges); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statement, numbers)
		return err
	})
}
