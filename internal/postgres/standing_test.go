package postgres_test

import (
	"strings"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// What is said of a server is what the server says, a transaction that is open included.
func TestStandingOf(t *testing.T) {
	ctx, url := testkit.Context(t), pgtest.NewDatabase(t)
	pool, err := postgres.Open(ctx, url, postgres.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	standing := func() postgres.Standing {
		t.Helper()
		s, err := postgres.StandingOf(ctx, pool)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := standing()
	if version := pgtest.Query[string](t, url, "SELECT version()"); !strings.Contains(version, "PostgreSQL "+s.Version) {
		t.Errorf("%q is not the version of %s", s.Version, version)
	}
	if most := pgtest.Query[int](t, url, "SELECT setting::integer FROM pg_settings WHERE name = 'max_connections'"); s.MaxConnections != most {
		t.Errorf("max_connections is %d, want %d", s.MaxConnections, most)
	}
	if s.Bytes < 1e6 || s.InRecovery || s.Replicas != 0 || s.ReplicaLag != nil || s.OldestTransaction != nil || s.Connections < 1 {
		t.Errorf("%+v", s)
	}
	open, err := postgres.Connect(ctx, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close(ctx)
	var began time.Time
	tx, err := open.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(ctx, "SELECT now()").Scan(&began); err != nil {
		t.Fatal(err)
	}
	if s := standing(); s.OldestTransaction == nil || !s.OldestTransaction.Equal(began) || s.Connections < 2 {
		t.Errorf("a transaction is open since %s: %+v", began, s)
	}
	if _, err := tx.Exec(ctx, "CREATE TABLE large AS SELECT repeat('x', 1000) FROM generate_series(1, 5000)"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if after := standing(); after.Bytes < s.Bytes+4e6 || after.OldestTransaction != nil {
		t.Errorf("after 5 MB were written: %+v, before %+v", after, s)
	}
}
