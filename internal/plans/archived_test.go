package plans

import (
	"log/slog"
	"testing"
	"time"

	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota"
)

func clearerOf(s *Store) *Clearer {
	return &Clearer{store: s, usable: func() bool { return true }, log: slog.New(slog.DiscardHandler)}
}

func clearArchivedNow(t testing.TB, c *Clearer) {
	t.Helper()
	if err := c.clearAll(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestArchivedCustomersAreCleared: values' counters go, own ones lose their buckets once
// the running hour is booked, and stay; those of others are not touched.
func TestArchivedCustomersAreCleared(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := newStore(t, url)
	c := start(t, NewCatalog(s, testOptions()))
	populate(t, s)
	putCustomer(t, s, "other", onPlan("basic"))
	acme, other := resolved(t, c, "acme"), resolved(t, c, "other")
	for _, target := range []*quota.Target{acme, other} {
		charge(t, s, target, "", 3, time.Hour)
		charge(t, s, target, "ip=1", 0, time.Hour)
		charge(t, s, target, "ip=2", 0, time.Second)
	}
	if _, err := s.pool.Exec(t.Context(), "UPDATE counters SET state = '{1,2,1}'"); err != nil {
		t.Fatal(err)
	}
	clearer := clearerOf(s)
	clearArchivedNow(t, clearer)
	if err := s.ArchiveCustomer(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	waiting := clearerOf(s)
	waiting.grace = time.Minute
	clearArchivedNow(t, waiting)
	if n := count(t, s, "count(*) FROM counters WHERE state <> '{}'"); n != 6 {
		t.Fatalf("%d counters are left before their time", n)
	}
	clearer.usable = func() bool { return false }
	clearArchivedNow(t, clearer)
	if n := count(t, s, "count(*) FROM counters WHERE state <> '{}'"); n != 6 {
		t.Fatalf("%d counters are left after an outage", n)
	}
	clearer.usable = func() bool { return true }
	clearArchivedNow(t, clearer)

	if n := count(t, s, "count(*) FROM counters WHERE state <> '{}' AND customer = $1", idOf(other)); n != 3 {
		t.Errorf("another customer has %d counters", n)
	}
	const own = "count(*) FROM counters WHERE customer = $1 AND attribute = '' AND state = '{}' AND units = 0 AND total = 3 AND version = 1 AND at > 0"
	if all := count(t, s, "count(*) FROM counters WHERE customer = $1", idOf(acme)); all != 1 || count(t, s, own, idOf(acme)) != 1 {
		t.Errorf("%d counters are left, or not what the account needs", all)
	}
	if n := count(t, s, "admitted FROM usage WHERE customer = $1 AND hour = 3600000000", idOf(acme)); n != 3 || clearer.Removed() != 2 {
		t.Errorf("%d units booked, %d counters removed", n, clearer.Removed())
	}
	if report, err := quota.Reconcile(t.Context(), s.pool); err != nil || !report.OK || report.Checks[0].Rows != 2 {
		t.Errorf("%+v, %v", report, err)
	}

	// What is clean is not written again.
	version := count(t, s, "xmin::text::bigint FROM counters WHERE customer = $1", idOf(acme))
	clearer.at = archivedAt{}
	clearArchivedNow(t, clearer)
	if count(t, s, "xmin::text::bigint FROM counters WHERE customer = $1", idOf(acme)) != version {
		t.Error("the row was written again")
	}
	// What a late node charges is found by the next whole walk.
	if _, err := s.pool.Exec(t.Context(), "UPDATE counters SET units = 2, total = 5, state = '{1,2,1}' WHERE customer = $1", idOf(acme)); err != nil {
		t.Fatal(err)
	}
	clearArchivedNow(t, clearer)
	clearer.at = archivedAt{}
	clearArchivedNow(t, clearer)
	if n := count(t, s, "admitted FROM usage WHERE customer = $1", idOf(acme)); n != 5 {
		t.Errorf("%d units booked", n)
	}
}

// A customer with more values than one transaction takes, and more customers than a page.
func TestManyArchivedCountersAreCleared(t *testing.T) {
	s := newStore(t, pgtest.NewDatabase(t))
	populate(t, s)
	if _, err := s.pool.Exec(t.Context(), `
		INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change, archived_at)
		SELECT 'c' || i, '', plan_id, 1, timezone, billing_anchor, change, now() FROM customers, generate_series(1, 450) i`); err != nil {
		t.Fatal(err)
	}
	var shards []int16
	var ids []int64
	for id := count(t, s, "min(id) FROM customers WHERE archived_at IS NOT NULL"); id <= count(t, s, "max(id) FROM customers"); id++ {
		shards, ids = append(shards, quota.Shard(id)), append(ids, id)
	}
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO counters (shard, customer, meter, attribute)
		SELECT shard, customer, 1, 'ip=' || n FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer),
		generate_series(1, CASE WHEN customer % 100 = 0 THEN 2500 ELSE 1 END) n`, shards, ids); err != nil {
		t.Fatal(err)
	}
	clearer := clearerOf(s)
	clearArchivedNow(t, clearer)
	if n := count(t, s, "count(*) FROM counters"); n != 0 || clearer.Removed() < 2500 {
		t.Errorf("%d counters are left of %d", n, n+clearer.Removed())
	}
}

// TestTargetsByID: the same as Resolve's, and nothing of it is remembered.
func TestTargetsByID(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := newStore(t, url)
	c := start(t, NewCatalog(s, testOptions()))
	populate(t, s)
	declare(t, s, "other")
	putCustomer(t, s, "gone", onPlan("basic"))
	gone := must[*Customer](t)(s.GetCustomer(t.Context(), "gone"))
	if err := s.ArchiveCustomer(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	acme := must[*Customer](t)(s.GetCustomer(t.Context(), "acme"))
	api := int32(count(t, s, "id FROM meters WHERE key = 'api'"))
	other := int32(count(t, s, "id FROM meters WHERE key = 'other'"))
	keys := []quota.CounterKey{
		{Customer: acme.ID, Meter: api, Attribute: "ip=1"},
		{Customer: acme.ID, Meter: other, Attribute: "ip=1"},
		{Customer: gone.ID, Meter: api},
		{Customer: 77, Meter: api},
		{Customer: acme.ID, Meter: api, Attribute: "ip=2"},
	}
	targets := must[[]*quota.Target](t)(c.Targets(t.Context(), keys))
	if targets[2] != nil || targets[3] != nil || targets[0] == nil || targets[0] != targets[4] {
		t.Fatalf("%v", targets)
	}
	if limitOf(targets[0]) != 5 || targets[1].NumLimits() != 0 || targets[1].Counters[0].Key.Meter != other {
		t.Errorf("%v", targets)
	}
	if _, ok := c.memory.Load().customers.Get("acme", 0); ok {
		t.Error("a customer was remembered")
	}
	if want := resolved(t, c, "acme"); want.Change != targets[0].Change {
		t.Errorf("change %d, Resolve says %d", targets[0].Change, want.Change)
	}
	putPlan(t, newStore(t, url), "basic", hourly(9)) // by another node
	if targets := must[[]*quota.Target](t)(c.Targets(t.Context(), keys[:1])); limitOf(targets[0]) != 9 {
		t.Errorf("the limit is still %d", limitOf(targets[0]))
	}
	if targets := must[[]*quota.Target](t)(c.Targets(t.Context(), nil)); len(targets) != 0 {
		t.Error("targets of nothing")
	}
}
