package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

func scanClock(row pgx.CollectableRow) (c model.TestClock, err error) {
	return c, row.Scan(&c.Key, &c.Now)
}

// putClock keeps a history of the newest 50 changes that set the clock, the oldest first. Each entry has
// the change's number and the instant that was set, so that the time of the clock at another change can
// be determined. A plain slice in a SET crashes a server with Citus.
const putClock = `
	INSERT INTO test_clocks AS t (key, now, change, history) VALUES ($1, $2, $3, ARRAY[$3, $2]::bigint[])
	ON CONFLICT (key) DO UPDATE SET now = excluded.now, change = excluded.change,
		history = coalesce((t.history || excluded.history)[greatest(1, cardinality(t.history) + 3 - 2 * 50):], '{}')`

// PutTestClock creates a test clock or sets it to any instant (now, µs since the Unix epoch, 1970 to
// 9000). created is true for a new clock. The instant applies on this node when PutTestClock returns, and
// on all nodes within a second. Setting a clock to the instant that it shows changes nothing.
//
// Errors: model.FieldErrors.
func (s *Store) PutTestClock(ctx context.Context, key string, now int64) (clock model.TestClock, created bool, err error) {
	if err := plans.CheckTestClock(key, now); err != nil {
		return model.TestClock{}, false, err
	}
	err = s.Write(ctx, KindClock, key, func(ctx context.Context, w *Writing) error {
		old, err := one(ctx, w, plans.ErrUnknownClock, scanClock, getClock, key)
		created = errors.Is(err, plans.ErrUnknownClock)
		switch {
		case err == nil && old.Now == now:
			return errUnchanged
		case err != nil && !created:
			return err
		case created && key == plans.AnyClock:
			return model.FieldErrors{{Field: "key", Detail: plans.AnyClockRule}}
		}
		if _, err = w.Exec(ctx, putClock, key, now, w.Number); err != nil {
			return err
		}
		if _, err := w.Exec(ctx, reachScheduled, key); err != nil {
			return err
		}
		if s.options.Billing != nil && !created {
			if err := s.options.Billing.ClockSet(ctx, w, key); err != nil {
				return err
			}
		}
		return w.Audit(ctx, plans.Audited{
			Action: plans.AuditWrite(created), Target: "test-clocks/" + key,
			Before: unless(created, auditClock(old)), After: auditClock(model.TestClock{Key: key, Now: now}),
		})
	})
	if err != nil {
		return model.TestClock{}, false, err
	}
	return model.TestClock{Key: key, Now: now}, created, nil
}

const getClock = `SELECT key, now FROM test_clocks WHERE key = $1`

// GetTestClock returns a test clock or the error plans.ErrUnknownClock.
func (s *Store) GetTestClock(ctx context.Context, key string) (model.TestClock, error) {
	if !plans.ValidKey(key) {
		return model.TestClock{}, plans.ErrUnknownClock
	}
	return read(ctx, s, plans.ErrUnknownClock, scanClock, getClock, key)
}

const listClocks = `SELECT key, now FROM test_clocks WHERE key > $1 ORDER BY key LIMIT $2`

// ListTestClocks returns the test clocks in the order of their keys.
func (s *Store) ListTestClocks(ctx context.Context, page plans.Page) (*plans.List[model.TestClock], error) {
	limit, after, err := OpenPage(page, KindClock, plans.ValidKey)
	if err != nil {
		return nil, err
	}
	clocks, err := list(ctx, s, scanClock, listClocks, limit, after)
	if err != nil {
		return nil, err
	}
	return Paged(clocks, limit, KindClock, func(c model.TestClock) string { return c.Key }), nil
}

// joinClock returns the test clock of a customer, or nil for PostgreSQL's time. A new customer gets the
// requested clock. An existing customer keeps its clock, which the request may repeat or omit, because
// the time of a counter must never run backwards.
func (w *Writing) joinClock(ctx context.Context, old *plans.Customer, created bool, asked *string) (*model.TestClock, error) {
	fault := func(detail string) error { return model.FieldErrors{{Field: "test_clock", Detail: detail}} }
	switch {
	case asked == nil:
		return old.Clock, nil
	case !created && (old.Clock == nil || old.Clock.Key != *asked):
		return nil, fault("cannot be changed: a customer lives by the clock that it was made with. Leave it out, or make another customer")
	case !created:
		return old.Clock, nil
	}
	if !plans.ValidKey(*asked) {
		return nil, fault(plans.KeyRule)
	}
	clock, err := one(ctx, w, plans.ErrUnknownClock, scanClock, getClock, *asked)
	if errors.Is(err, plans.ErrUnknownClock) {
		return nil, fault("no such test clock: make it with PUT /v1/test-clocks/" + plans.Shorten(*asked))
	}
	return &clock, err
}
