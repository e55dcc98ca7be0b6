package store_test

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

func TestKeysAreMadeListedAndRevoked(t *testing.T) {
	t.Parallel()
	s := planstest.NewStore(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	expires := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	k, secret, err := s.CreateKey(ctx, "gateway", plans.ScopeBackend, &expires)
	if err != nil || !strings.HasPrefix(k.ID, "key_") || !strings.HasPrefix(secret, "qk_") || len(secret) != 46 ||
		k.Name != "gateway" || k.Scope != plans.ScopeBackend || !k.ExpiresAt.Equal(expires) {
		t.Fatalf("%+v %q %v", k, secret, err)
	}
	var stored []byte
	if err := s.Pool().QueryRow(ctx, "SELECT hash FROM keys WHERE id = $1", k.ID).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if want := sha256.Sum256([]byte(secret)); !slices.Equal(stored, want[:]) {
		t.Error("stored is not the SHA-256")
	}
	want := []string{k.ID}
	for _, scope := range []plans.Scope{plans.ScopeAdmin, plans.ScopeRead} {
		other, otherSecret, err := s.CreateKey(ctx, "other", scope, nil)
		if err != nil || otherSecret == secret || other.ExpiresAt != nil {
			t.Fatalf("%+v %v", other, err)
		}
		want = append(want, other.ID)
	}
	slices.Sort(want)
	walk(t, "keys", want, func(p plans.Page) (*plans.List[plans.Key], error) { return s.ListKeys(ctx, p) }, func(k plans.Key) string { return k.ID })

	for range 2 {
		if err := s.RevokeKey(ctx, k.ID); err != nil {
			t.Fatal(err)
		}
	}
	if n := planstest.ChangeNumber(t, s); n != 4 {
		t.Errorf("three keys and a revocation made %d changes", n)
	}
	want = slices.DeleteFunc(want, func(id string) bool { return id == k.ID })
	walk(t, "keys", want, func(p plans.Page) (*plans.List[plans.Key], error) { return s.ListKeys(ctx, p) }, func(k plans.Key) string { return k.ID })
	for _, unknown := range []string{"key_nope", "", "a\x00"} {
		if err := s.RevokeKey(ctx, unknown); !errors.Is(err, plans.ErrUnknownKey) {
			t.Errorf("%q: %v", unknown, err)
		}
	}
}

func TestKeyFaults(t *testing.T) {
	t.Parallel()
	s := planstest.NewStore(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	past := time.Now().Add(-time.Hour)
	beyond := time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -14*3600)) // in UTC it is 10000
	longAgo := time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name    string
		scope   plans.Scope
		expires *time.Time
		want    []string
	}{
		{"", "root", nil, []string{"name", "scope"}},
		{"a\x00", plans.ScopeRead, nil, []string{"name"}},
		{"a", "", nil, []string{"scope"}},
		{"a", plans.ScopeRead, &past, []string{"expires_at"}},
		{"a", plans.ScopeRead, &beyond, []string{"expires_at"}},
		{"a", plans.ScopeRead, &longAgo, []string{"expires_at"}},
	} {
		if _, secret, err := s.CreateKey(ctx, c.name, c.scope, c.expires); secret != "" || !slices.Equal(planstest.Fields(err), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, secret := range []string{"", "0123456789abcde", strings.Repeat("x", 201), "0123456789 abcdef", "0123456789äbcdef"} {
		if err := s.EnsureKey(ctx, secret, "a", plans.ScopeAdmin); !slices.Equal(planstest.Fields(err), []string{"secret"}) {
			t.Errorf("%q: %v", secret, err)
		}
	}
	if n := planstest.ChangeNumber(t, s); n != 0 {
		t.Errorf("what was refused left change %d", n)
	}
}

func TestTheFirstAdminKey(t *testing.T) {
	t.Parallel()
	s := planstest.NewStore(t, pgtest.NewDatabase(t))
	ctx := t.Context()
	has := func(want bool) {
		t.Helper()
		var got bool
		if err := s.Pool().QueryRow(ctx, store.AdminKeyQuery).Scan(&got); err != nil || got != want {
			t.Errorf("has an admin key: %v %v", got, err)
		}
	}
	has(false)
	if _, _, err := s.CreateKey(ctx, "b", plans.ScopeBackend, nil); err != nil {
		t.Fatal(err)
	}
	has(false)
	const secret = "0123456789abcdef"
	for range 2 {
		if err := s.EnsureKey(ctx, secret, "bootstrap", plans.ScopeAdmin); err != nil {
			t.Fatal(err)
		}
	}
	has(true)
	if n := planstest.ChangeNumber(t, s); n != 2 {
		t.Errorf("a key and the same key again made change %d", n)
	}
	if err := s.EnsureKey(ctx, secret, "bootstrap", plans.ScopeRead); !slices.Equal(planstest.Fields(err), []string{"secret"}) {
		t.Errorf("of another scope: %v", err)
	}
	for _, k := range planstest.Must[*plans.List[plans.Key]](t)(s.ListKeys(ctx, plans.Page{})).Items {
		if err := s.RevokeKey(ctx, k.ID); err != nil {
			t.Fatal(err)
		}
	}
	has(false)
	if err := s.EnsureKey(ctx, secret, "bootstrap", plans.ScopeAdmin); !slices.Equal(planstest.Fields(err), []string{"secret"}) {
		t.Errorf("revoked: %v", err)
	}
	if _, err := s.Pool().Exec(ctx, `INSERT INTO keys VALUES ('key_old', 'old', 'admin', '\x00', now(), now() - interval '1s')`); err != nil {
		t.Fatal(err)
	}
	has(false)
	made, err := s.FirstAdminKey(ctx, "bootstrap")
	if err != nil || !plans.ValidSecret(made) {
		t.Errorf("the first one: %q %v", made, err)
	}
	has(true)
	if again, err := s.FirstAdminKey(ctx, "bootstrap"); err != nil || again != "" {
		t.Errorf("a second one: %q %v", again, err)
	}
}

// Nodes that start on one empty database at once make one admin key between them.
func TestTheFirstAdminKeyIsOne(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	var made atomic.Int32
	var starting sync.WaitGroup
	for range 8 {
		s := planstest.NewStore(t, url)
		starting.Go(func() {
			secret, err := s.FirstAdminKey(t.Context(), "bootstrap")
			if err != nil {
				t.Error(err)
			}
			if secret != "" {
				made.Add(1)
			}
		})
	}
	starting.Wait()
	s := planstest.NewStore(t, url)
	if n := len(planstest.Must[*plans.List[plans.Key]](t)(s.ListKeys(t.Context(), plans.Page{})).Items); n != 1 || made.Load() != 1 {
		t.Errorf("%d keys, of which %d are known", n, made.Load())
	}
}
