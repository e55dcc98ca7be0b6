package plans

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota"
)

// The database goes away and comes back: what is in memory goes on being answered, and
// nothing claims to be fresh; afterwards changes are seen again.
func TestOutage(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	admin, c := newNode(t, server.URL())
	populate(t, admin)
	ctx := t.Context()
	_, secret, err := admin.CreateKey(ctx, "k", ScopeBackend, nil)
	if err != nil {
		t.Fatal(err)
	}
	must[*quota.Target](t)(c.Resolve(ctx, "acme", "api", 0))
	server.Stop()
	eventually(t, "a stale memory", func() bool { return !c.Fresh() })
	if age, contacted := c.Age(); age <= Freshness || !contacted || !c.FreshWithin(time.Hour) {
		t.Errorf("age %s, %v", age, contacted)
	}
	if target, err := c.Resolve(ctx, "acme", "api", 0); err != nil || limitOf(target) != 5 {
		t.Errorf("from memory: %+v %v", target, err)
	}
	if _, err := c.Authenticate(ctx, secret); err != nil {
		t.Errorf("a key from memory: %v", err)
	}
	_, miss := c.Resolve(ctx, "new", "api", 0)
	_, behind := c.Resolve(ctx, "acme", "api", c.Applied()+1)
	_, _, write := admin.PutPlan(ctx, "basic", hourly(6), anyVersion)
	_, read := admin.GetCustomer(ctx, "acme")
	_, list := admin.ListPlans(ctx, Page{})
	for what, err := range map[string]error{"miss": miss, "behind": behind, "write": write, "read": read, "list": list} {
		if !errors.Is(err, quota.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	server.Start()
	eventually(t, "a fresh memory", c.Fresh)
	again := func(limit int64) {
		t.Helper()
		// Each connection that the pool had learns of its end by an error.
		eventually(t, "a write that counts", func() bool {
			if _, _, err := admin.PutPlan(ctx, "basic", hourly(limit), anyVersion); err != nil {
				return false
			}
			target, err := c.Resolve(ctx, "acme", "api", 0)
			return err == nil && limitOf(target) == limit
		})
	}
	again(70)
	server.Crash() // and its keeper starts it again
	again(71)
	eventually(t, "a fresh memory", c.Fresh)
}

// A caller who gives up does not take those with him who wait for the same.
func TestACallerWhoGivesUp(t *testing.T) {
	t.Parallel()
	c := idleCatalog(t, pgtest.NewDatabase(t), testOptions())
	populate(t, c.store)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Resolve(gone, "acme", "api", 0); !errors.Is(err, context.Canceled) || errors.Is(err, quota.ErrUnavailable) {
		t.Errorf("cancelled: %v", err)
	}
	must[*quota.Target](t)(c.Resolve(t.Context(), "acme", "api", 0))
	if _, _, err := c.store.PutMeter(gone, "x", PutMeterInput{Unit: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a write: %v", err)
	}
	if _, err := c.store.GetMeter(t.Context(), "x"); !errors.Is(err, ErrUnknownMeter) {
		t.Errorf("it left %v", err)
	}
}

// Writes that wait for the lock end with their deadline and with nothing written, and
// leave connections to those who read.
func TestWritesThatWaitTooLong(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	blocker, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = blocker.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := blocker.Exec(t.Context(), takeChangeNumber); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var waiting sync.WaitGroup
	for range 20 { // more than the pool has connections, of which reads find one
		waiting.Go(func() {
			if _, _, err := s.PutPlan(ctx, "late", hourly(5), Precondition{}); !errors.Is(err, quota.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
		})
	}
	eventually(t, "the writers", func() bool { return len(s.writers) == maxWriters })
	for range 20 {
		if _, err := s.GetCustomer(ctx, "acme"); err != nil {
			t.Errorf("a read meanwhile: %v", err)
		}
	}
	waiting.Wait()
	if err := blocker.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetPlan(t.Context(), "late"); !errors.Is(err, ErrUnknownPlan) {
		t.Errorf("it left %v", err)
	}
}

func TestErrorsAreTold(t *testing.T) {
	code := func(code string) error { return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code}) }
	if err := classify(code("40001")); !errors.Is(err, quota.ErrBusy) || errors.Is(err, quota.ErrUnavailable) {
		t.Errorf("rolled back: %v", err)
	}
	for _, c := range []struct {
		err    error
		outage bool
	}{
		{ErrArchived, false},
		{fmt.Errorf("%w", quota.FieldErrors{{Field: "a", Detail: "b"}}), false},
		{errors.New("other"), false},
		{context.Canceled, false},
		{context.DeadlineExceeded, true},
		{io.ErrUnexpectedEOF, true},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, true},
		{code("23505"), false},
		{code("57014"), false},
		{code("57P01"), true},
		{code("08006"), true},
		{code("25006"), true},
	} {
		once := classify(c.err)
		if got := errors.Is(once, quota.ErrUnavailable); got != c.outage || !errors.Is(once, c.err) {
			t.Errorf("%v: outage %v", c.err, got)
		}
		if twice := classify(once); twice.Error() != once.Error() {
			t.Errorf("%v: wrapped twice: %v", c.err, twice)
		}
	}
	for _, refused := range []string{"53300", "28P01", "42501"} {
		if err := classify(code(refused)); !errors.Is(err, quota.ErrNoSession) || errors.Is(err, quota.ErrUnavailable) {
			t.Errorf("%s: %v", refused, err)
		}
	}
	if classify(nil) != nil || settle(nil) != nil {
		t.Error("nil became an error")
	}
	for err, unknown := range map[error]bool{code("23505"): false, code("57P01"): true, io.EOF: true, context.Canceled: true} {
		if got := errors.Is(settle(err), quota.ErrOutcomeUnknown); got != unknown {
			t.Errorf("%v at a commit: unknown %v", err, got)
		}
	}
}

// A write that panics leaves the room for the next one, and its change undone.
func TestAPanicLeavesNoWriterBehind(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	before := changeNumber(t, s)
	for range 2 * maxWriters {
		func() {
			defer func() { _ = recover() }()
			_ = s.write(t.Context(), kindPlan, "x", func(context.Context, *writing) error { panic("boom") })
		}()
	}
	if n := changeNumber(t, s); n != before {
		t.Errorf("it left change %d", n)
	}
	putPlan(t, s, "basic", hourly(6))
}
