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
	"quotad/internal/plans/store"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
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
	if k, err := c.Authenticate(ctx, chosen, anyKey); err != nil || k.Scope != plans.ScopeAdmin || k.Name != "bootstrap" {
		t.Errorf("%+v %v", k, err)
	}
	made, secret, err := admin.CreateKey(ctx, "gateway", plans.ScopeBackend, nil)
	if err != nil {
		t.Fatal(err)
	}
	soon(t, c, "the new key", func() bool {
		k, err := c.Authenticate(ctx, secret, anyKey)
		return err == nil && k == made
	})
	for _, wrong := range []string{"", "qk_", secret + "x", secret[1:], strings.Repeat("x", 500)} {
		if _, err := c.Authenticate(ctx, wrong, anyKey); !errors.Is(err, plans.ErrUnknownKey) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if err := admin.RevokeKey(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	soon(t, c, "the revocation", func() bool {
		_, err := c.Authenticate(ctx, secret, anyKey)
		return errors.Is(err, plans.ErrUnknownKey)
	})
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
	_, secret, err := storeOf(c).CreateKey(t.Context(), "k", plans.ScopeRead, &expires)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int64]error{expires.UnixMicro() - 1: nil, expires.UnixMicro(): plans.ErrUnknownKey} {
		now.Store(at)
		if _, err := c.Authenticate(t.Context(), secret, anyKey); !errors.Is(err, want) {
			t.Errorf("%d µs before the expiry: %v", expires.UnixMicro()-at, err)
		}
	}
	unsure.Store(true)
	if _, err := c.Authenticate(t.Context(), secret, anyKey); !errors.Is(err, session.ErrNoSession) {
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
		if k, err := c.Authenticate(ctx, secret, anyKey); err != nil || k != late {
			t.Errorf("beyond the bound: %+v %v", k, err)
		}
		if k, err := c.Authenticate(ctx, "1", anyKey); err != nil || k.ID != "key_1" {
			t.Errorf("within: %+v %v", k, err)
		}
		if _, err := c.Authenticate(ctx, "nonsense", anyKey); !errors.Is(err, plans.ErrUnknownKey) {
			t.Errorf("nonsense: %v", err)
		}
	}
	if m := c.memory.Load(); m.lateKeys.Len() != 1 || m.keys.Load().wrong.Len() != 1 {
		t.Errorf("%d looked up keys are remembered, and %d wrong ones", m.lateKeys.Len(), m.keys.Load().wrong.Len())
	}
	revoked(t, admin, c, late, secret, anyKey)
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
		if k, err := c.Authenticate(ctx, secret, anyKey); err != nil || k != late {
			t.Fatalf("%s: %+v %v", when, k, err)
		}
	}
	known("at first")
	guess := func(i int) error {
		_, err := c.Authenticate(ctx, fmt.Sprint("guess-", i), anyKey)
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
	if err := guess(-1); !errors.Is(err, session.ErrBusy) { // it waits for nobody: a late answer is another error
		t.Errorf("a guess too many: %v", err)
	}
	if _, _, err := admin.CreateKey(ctx, "another", plans.ScopeBackend, nil); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the change", func() bool { return c.Applied() == planstest.ChangeNumber(t, admin) })
	known("when another key has changed")
	for range maxLookups {
		<-c.lookups
	}
	revoked(t, admin, c, late, secret, anyKey)
}

// A key that this node does not know is asked for before it is looked up or refused. A key that it
// knows, or knew, is not.
func TestUnknownKeysAskFirst(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	ctx := t.Context()
	early, secret, err := admin.CreateKey(ctx, "early", plans.ScopeBackend, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, c := newNode(t, url)
	refused := errors.New("refused")
	refuse := func() error { return refused }
	if _, err := c.Authenticate(ctx, "guess", refuse); !errors.Is(err, refused) {
		t.Errorf("a guess: %v", err)
	}
	if _, err := c.Authenticate(ctx, strings.Repeat("x", 500), refuse); !errors.Is(err, refused) {
		t.Errorf("a long guess: %v", err)
	}
	if k, err := c.Authenticate(ctx, secret, refuse); err != nil || k != early {
		t.Errorf("a key that is known: %+v %v", k, err)
	}
	revoked(t, admin, c, early, secret, refuse)
	// Where not all keys are in memory, a guess costs no look-up.
	if _, err := admin.Pool().Exec(ctx, `INSERT INTO keys SELECT 'key_' || n, 'n', 'read', sha256(n::text::bytea), now() - interval '1 day'
		FROM generate_series(1, $1::integer) n`, maxKeys); err != nil {
		t.Fatal(err)
	}
	late, secret, err := admin.CreateKey(ctx, "late", plans.ScopeBackend, nil)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the keys", func() bool { return c.memory.Load().keys.Load().wrong != nil })
	for range maxLookups { // a look-up would be ErrBusy
		c.lookups <- struct{}{}
	}
	if _, err := c.Authenticate(ctx, "guess", refuse); !errors.Is(err, refused) {
		t.Errorf("a guess among many keys: %v", err)
	}
	if _, err := c.Authenticate(ctx, secret, refuse); !errors.Is(err, refused) {
		t.Errorf("a late key at its first use: %v", err)
	}
	for range maxLookups {
		<-c.lookups
	}
	for _, ask := range []func() error{anyKey, refuse} {
		if k, err := c.Authenticate(ctx, secret, ask); err != nil || k != late {
			t.Errorf("a late key: %+v %v", k, err)
		}
	}
}

// revoked revokes a key, and waits until a node knows of it.
func revoked(t *testing.T, admin *store.Store, c *Catalog, key plans.Key, secret string, ask func() error) {
	t.Helper()
	if err := admin.RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the revocation", func() bool {
		_, err := c.Authenticate(t.Context(), secret, ask)
		return errors.Is(err, plans.ErrUnknownKey)
	})
}
