package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/planstest"
)

// overdue is a context whose deadline comes when done is closed.
type overdue struct {
	context.Context
	done chan struct{}
}

func (o overdue) Done() <-chan struct{} { return o.done }

func (o overdue) Err() error {
	select {
	case <-o.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Writes that wait for the lock end with their deadline and with nothing written, and
// leave connections to those who read.
func TestWritesThatWaitTooLong(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	blocker, err := s.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = blocker.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := blocker.Exec(t.Context(), store.LockChangeNumber); err != nil {
		t.Fatal(err)
	}
	ctx := overdue{t.Context(), make(chan struct{})}
	var waiting sync.WaitGroup
	for range 20 { // more than the pool has connections, of which reads find one
		waiting.Go(func() {
			if _, _, err := s.PutPlan(ctx, "late", planstest.Hourly(5), plans.Precondition{}); !errors.Is(err, session.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
		})
	}
	testkit.Eventually(t, "the writers", func() bool { return store.BusyWriters(s) == store.WritersAtOnce })
	for range 20 {
		if _, err := s.GetCustomer(t.Context(), "acme"); err != nil {
			t.Errorf("a read meanwhile: %v", err)
		}
	}
	close(ctx.done)
	waiting.Wait()
	if err := blocker.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetPlan(t.Context(), "late"); !errors.Is(err, plans.ErrUnknownPlan) {
		t.Errorf("it left %v", err)
	}
}

// A write that panics leaves the room for the next one, and its change undone.
func TestAPanicLeavesNoWriterBehind(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	before := planstest.ChangeNumber(t, s)
	for range 2 * store.WritersAtOnce {
		func() {
			defer func() { _ = recover() }()
			_ = s.Write(t.Context(), store.KindPlan, "x", func(context.Context, *store.Writing) error { panic("boom") })
		}()
	}
	if n := planstest.ChangeNumber(t, s); n != before {
		t.Errorf("it left change %d", n)
	}
	planstest.PutPlan(t, s, "basic", planstest.Hourly(6))
}

// The rows of the table of changes are kept to the same number, however many changes one
// write makes.
func TestManyChangesPruneAsMany(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	const more = store.KeptChanges + 10
	if _, err := s.Pool().Exec(t.Context(), `
		INSERT INTO changes (number, kind, key) SELECT n, 'meter', 'api' FROM change_number, generate_series(number + 1, $1::bigint) n
		ON CONFLICT DO NOTHING`, more); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pool().Exec(t.Context(), "DELETE FROM changes WHERE number <= 10"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pool().Exec(t.Context(), "UPDATE change_number SET number = $1", more); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{3, 1, 0, 2} {
		err := s.Write(t.Context(), store.KindCustomer, "", func(ctx context.Context, w *store.Writing) error {
			keys := make([]string, n)
			for i := range keys {
				keys[i] = fmt.Sprint("k", i)
			}
			if n == 0 {
				return store.Unchanged()
			}
			return w.Changed(ctx, keys)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if planstest.ChangeNumber(t, s) != more+6 || planstest.Count(t, s, "count(*) FROM changes") != store.KeptChanges ||
		planstest.Count(t, s, "min(number) FROM changes") != 17 {
		t.Errorf("number %d, %d rows from %d on", planstest.ChangeNumber(t, s), planstest.Count(t, s, "count(*) FROM changes"),
			planstest.Count(t, s, "min(number) FROM changes"))
	}
}
