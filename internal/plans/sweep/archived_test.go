package sweep

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
	"quotad/internal/quota/upkeep"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

func archiverOf(s *store.Store) *Archiver {
	return &Archiver{store: s, usable: func() bool { return true }, log: slog.New(slog.DiscardHandler)}
}

func clearArchivedNow(t testing.TB, a *Archiver) {
	t.Helper()
	if err := a.clearAll(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func archive(t testing.TB, s *store.Store, customer string) {
	t.Helper()
	if err := s.ArchiveCustomer(t.Context(), customer); err != nil {
		t.Fatal(err)
	}
}

// withBuckets is a store with two customers of three counters each, all with state; each
// one's own has 3 units.
func withBuckets(t testing.TB) (s *store.Store, acme, other int64) {
	t.Helper()
	n := startNode(t, pgtest.NewDatabase(t), "")
	s = n.Store
	planstest.Populate(t, s)
	planstest.PutCustomer(t, s, "other", planstest.OnPlan("basic"))
	for _, customer := range []string{"acme", "other"} {
		target := n.target(t, customer)
		charge(t, s, target, "", 3, time.Hour)
		charge(t, s, target, "ip=1", 0, time.Hour)
		charge(t, s, target, "ip=2", 0, time.Second)
	}
	if _, err := s.Pool().Exec(t.Context(), "UPDATE counters SET state = '{1,2,1,9}'"); err != nil {
		t.Fatal(err)
	}
	return s, planstest.IDOf(n.target(t, "acme")), planstest.IDOf(n.target(t, "other"))
}

// booked compares what was charged with what was booked. It returns on how many customers' meters.
func booked(t testing.TB, s *store.Store) (looked int, wrong []upkeep.Mismatch) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), s.Pool(), func(tx pgx.Tx) error {
		keys, err := upkeep.NextCharged(t.Context(), tx, upkeep.BeforeCharged, 100)
		if err == nil {
			looked = len(keys)
			wrong, err = upkeep.Mismatches(t.Context(), tx, keys)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return looked, wrong
}

const withState = "count(*) FROM counters WHERE state <> '{}'"

// TestArchivedCustomersAreCleared: values' counters go, own ones lose their buckets once
// the running hour is booked, and stay; those of others are not touched.
func TestArchivedCustomersAreCleared(t *testing.T) {
	t.Parallel()
	s, acme, other := withBuckets(t)
	archive(t, s, "acme")
	archiver := archiverOf(s)
	clearArchivedNow(t, archiver)
	if n := planstest.Count(t, s, withState+" AND customer = $1", other); n != 3 {
		t.Errorf("another customer has %d counters", n)
	}
	const own = "count(*) FROM counters WHERE customer = $1 AND attribute = '' AND state = '{}' AND units = 0 AND total = 3 AND version = 2 AND at > 0"
	if all := planstest.Count(t, s, "count(*) FROM counters WHERE customer = $1", acme); all != 1 || planstest.Count(t, s, own, acme) != 1 {
		t.Errorf("%d counters are left, or not what the account needs", all)
	}
	if n := planstest.Count(t, s, "admitted FROM usage WHERE customer = $1 AND hour = 3600000000", acme); n != 3 || archiver.Removed() != 2 {
		t.Errorf("%d units booked, %d counters removed", n, archiver.Removed())
	}
	if looked, wrong := booked(t, s); looked != 2 || len(wrong) > 0 {
		t.Errorf("of %d: %+v", looked, wrong)
	}
}

// Not while other nodes may not have heard of it, nor in an outage.
func TestArchivedCustomersAreClearedInTime(t *testing.T) {
	t.Parallel()
	s, _, _ := withBuckets(t)
	archiver := archiverOf(s)
	untouched := func(when string) {
		t.Helper()
		clearArchivedNow(t, archiver)
		if n := planstest.Count(t, s, withState); n != 6 || archiver.at != (archivedAt{}) {
			t.Fatalf("%s: %d counters are left", when, n)
		}
	}
	untouched("nobody is archived")
	archive(t, s, "acme")
	archiver.grace = time.Minute
	untouched("it is too soon")
	archiver.grace, archiver.usable = 0, func() bool { return false }
	untouched("in an outage")
}

// The next whole walk finds what a late node charged, and does not write again what is clean.
func TestArchivedCustomersAreClearedAgain(t *testing.T) {
	t.Parallel()
	s, acme, _ := withBuckets(t)
	archive(t, s, "acme")
	archiver := archiverOf(s)
	clearArchivedNow(t, archiver)
	const written = "xmin::text::bigint FROM counters WHERE customer = $1"
	before := planstest.Count(t, s, written, acme)
	archiver.at = archivedAt{}
	clearArchivedNow(t, archiver)
	if planstest.Count(t, s, written, acme) != before {
		t.Error("the row was written again")
	}
	if _, err := s.Pool().Exec(t.Context(), "UPDATE counters SET units = 2, total = 5, state = '{1,2,1,9}' WHERE customer = $1", acme); err != nil {
		t.Fatal(err)
	}
	clearArchivedNow(t, archiver)
	if n := planstest.Count(t, s, "admitted FROM usage WHERE customer = $1", acme); n != 3 {
		t.Errorf("%d units booked by a walk that was past it", n)
	}
	archiver.at = archivedAt{}
	clearArchivedNow(t, archiver)
	if n := planstest.Count(t, s, "admitted FROM usage WHERE customer = $1", acme); n != 5 {
		t.Errorf("%d units booked", n)
	}
}

// A counter that somebody holds is cleared the next time, and nobody waits for it.
func TestHeldCountersOfTheArchivedAreNotPassedOver(t *testing.T) {
	t.Parallel()
	s, acme, _ := withBuckets(t)
	archive(t, s, "acme")
	archive(t, s, "other")
	tx, err := s.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "SELECT FROM counters WHERE customer = $1 AND attribute = 'ip=1' FOR UPDATE", acme); err != nil {
		t.Fatal(err)
	}
	archiver := archiverOf(s)
	for range 2 {
		clearArchivedNow(t, archiver)
		if n := planstest.Count(t, s, withState); n != 1 || planstest.Count(t, s, withState+" AND customer = $1", acme) != 1 {
			t.Fatalf("%d counters are left", n)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	clearArchivedNow(t, archiver)
	if n := planstest.Count(t, s, withState); n != 0 || archiver.at == (archivedAt{}) {
		t.Errorf("%d counters are left; at %v", n, archiver.at)
	}
}

// Customers with more values than one transaction takes, and more customers than a page,
// some of them archived at the same instant.
func TestManyArchivedCountersAreCleared(t *testing.T) {
	t.Parallel()
	s := planstest.NewStore(t, pgtest.NewDatabase(t))
	planstest.Populate(t, s)
	if _, err := s.Pool().Exec(t.Context(), `
		INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change, archived_at)
		SELECT 'c' || i, '', plan_id, 1, timezone, billing_anchor, change, now() - interval '1s' * ((i * 37 % 450) / 15)
		FROM customers, generate_series(1, 450) i`); err != nil {
		t.Fatal(err)
	}
	var shards []int16
	var ids []int64
	for id := planstest.Count(t, s, "min(id) FROM customers WHERE archived_at IS NOT NULL"); id <= planstest.Count(t, s, "max(id) FROM customers"); id++ {
		shards, ids = append(shards, model.Shard(id)), append(ids, id)
	}
	if _, err := s.Pool().Exec(t.Context(), `INSERT INTO counters (shard, customer, meter, attribute)
		SELECT shard, customer, 1, 'ip=' || n FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer),
		generate_series(1, CASE WHEN customer % 100 = 0 THEN 2500 ELSE 1 END) n`, shards, ids); err != nil {
		t.Fatal(err)
	}
	archiver := archiverOf(s)
	clearArchivedNow(t, archiver)
	if n := planstest.Count(t, s, "count(*) FROM counters"); n != 0 || archiver.Removed() < 2500 {
		t.Errorf("%d counters are left of %d", n, n+archiver.Removed())
	}
}
