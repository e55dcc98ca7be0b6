package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/plans/planstest"
	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota/session"
)

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	ctx := t.Context()
	const chosen = "0123456789abcdef"
	if err := admin.EnsureKey(ctx, chosen, "bootstrap", plans.ScopeAdmin); err != nil {
		t.Fatal(err)
	}
	_, c := newNode(t, url)
	if k, err := c.Authenticate(ctx, chosen); err != nil || k.Scope != plans.ScopeAdmin || k.Name != "bootstrap" {
		t.Errorf("%+v %v", k, err)
	}
	made, secret, err := admin.CreateKey(ctx, "gateway", plans.ScopeBackend, nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	planstest.Eventually(t, "the new key", func() bool {
		k, err := c.Authenticate(ctx, secret)
		return err == nil && k == made
	})
	for _, wrong := range []string{"", "qk_", secret + "x", secret[1:], strings.Repeat("x", 500)} {
		if _, err := c.Authenticate(ctx, wrong); !errors.Is(err, plans.ErrUnknownKey) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if err := admin.RevokeKey(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	planstest.Eventually(t, "the revocation", func() bool {
		_, err := c.Authenticate(ctx, secret)
		return errors.Is(err, plans.ErrUnknownKey)
	})
	if took := time.Since(began); took > 2*Freshness {
		t.Errorf("a key's beginning and end took %s", took)
	}
}

func TestKeysExpire(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	var now atomic.Int64
	var unsure atomic.Bool
	options := testOptions()
	options.Now = func(context.Context) (int64, error) {
		if unsure.Load() {
			return 0, errors.New("unsure")
		}
		return now.Load(), nil
	}
	c := idleCatalog(t, url, options)
	expires := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	_, secret, err := c.store.CreateKey(t.Context(), "k", plans.ScopeRead, &expires)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int64]error{expires.UnixMicro() - 1: nil, expires.UnixMicro(): plans.ErrUnknownKey} {
		now.Store(at)
		if _, err := c.Authenticate(t.Context(), secret); !errors.Is(err, want) {
			t.Errorf("%d µs before the expiry: %v", expires.UnixMicro()-at, err)
		}
	}
	unsure.Store(true)
	if _, err := c.Authenticate(t.Context(), secret); !errors.Is(err, session.ErrNoSession) {
		t.Errorf("at an unknown time: %v", err)
	}
}

// Beyond the keys that fit in memory they are looked up, and forgotten by a revocation.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	ctx := t.Context()
	if _, err := admin.Pool().Exec(ctx, `INSERT INTO keys SELECT 'key_' || n, 'n', 'read', sha256(n::text::bytea), now() - interval '1 day'
		FROM generate_series(1, $1::integer) n`, maxKeys); err != nil {
		t.Fatal(err)
	}
	late, secret, err := admin.CreateKey(ctx, "late", plans.ScopeBackend, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, c := newNode(t, url)
	for range 3 {
		if k, err := c.Authenticate(ctx, secret); err != nil || k != late {
			t.Errorf("beyond the bound: %+v %v", k, err)
		}
		if k, err := c.Authenticate(ctx, "1"); err != nil || k.ID != "key_1" {
			t.Errorf("within: %+v %v", k, err)
		}
		if _, err := c.Authenticate(ctx, "nonsense"); !errors.Is(err, plans.ErrUnknownKey) {
			t.Errorf("nonsense: %v", err)
		}
	}
	if m := c.memory.Load(); m.lateKeys.Len() != 1 || m.keys.Load().wrong.Len() != 1 {
		t.Errorf("%d looked up keys are remembered, and %d wrong ones", m.lateKeys.Len(), m.keys.Load().wrong.Len())
	}
	if err := admin.RevokeKey(ctx, late.ID); err != nil {
		t.Fatal(err)
	}
	planstest.Eventually(t, "the revocation", func() bool {
		_, err := c.Authenticate(ctx, secret)
		return errors.Is(err, plans.ErrUnknownKey)
	})
}

// Whoever guesses keys takes nothing from those who have one, also where not all live keys
// are in memory.
func TestGuessedKeys(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	ctx := t.Context()
	if _, err := admin.Pool().Exec(ctx, `INSERT INTO keys SELECT 'key_' || n, 'n', 'read', sha256(n::text::bytea), now() - interval '1 day'
		FROM generate_series(1, $1::integer) n`, maxKeys); err != nil {
		t.Fatal(err)
	}
	late, secret, err := admin.CreateKey(ctx, "late", plans.ScopeBackend, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, c := newNode(t, url)
	known := func(when string) {
		t.Helper()
		if k, err := c.Authenticate(ctx, secret); err != nil || k != late {
			t.Fatalf("%s: %+v %v", when, k, err)
		}
	}
	known("at first")
	guess := func(i int) error {
		_, err := c.Authenticate(ctx, fmt.Sprint("guess-", i))
		return err
	}
	for i := range maxWrongKept + 500 {
		if err := guess(i); !errors.Is(err, plans.ErrUnknownKey) {
			t.Fatalf("a guess: %v", err)
		}
	}
	if n := c.memory.Load().keys.Load().wrong.Len(); n > maxWrongKept {
		t.Errorf("%d guesses are remembered", n)
	}
	for range maxLookups { // the database is slow
		c.lookups <- struct{}{}
	}
	known("while others are looked up")
	began := time.Now()
	if err := guess(-1); !errors.Is(err, session.ErrBusy) || time.Since(began) > loadTimeout/2 {
		t.Errorf("a guess too many: %v after %s", err, time.Since(began))
	}
	if _, _, err := admin.CreateKey(ctx, "another", plans.ScopeBackend, nil); err != nil {
		t.Fatal(err)
	}
	planstest.Eventually(t, "the change", func() bool { return c.Applied() == planstest.ChangeNumber(t, admin) })
	known("when another key has changed")
	for range maxLookups {
		<-c.lookups
	}
	if err := admin.RevokeKey(ctx, late.ID); err != nil {
		t.Fatal(err)
	}
	planstest.Eventually(t, "the revocation", func() bool {
		_, err := c.Authenticate(ctx, secret)
		return errors.Is(err, plans.ErrUnknownKey)
	})
}
