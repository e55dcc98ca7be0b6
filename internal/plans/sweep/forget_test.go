package sweep

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// forgetter has a TTL that tests can wait for, and no patience.
func forgetter(n *node, ttl time.Duration) *Forgetter {
	return &Forgetter{store: n.Store, targets: n.catalog.Targets, ttl: ttl, log: slog.New(slog.DiscardHandler)}
}

// charge books units in a customer's counter, as a hit did so long ago.
func charge(t testing.TB, s *store.Store, target *model.Target, attribute string, units int64, ago time.Duration) {
	t.Helper()
	k := target.Counters[0].Key
	if _, err := s.Pool().Exec(t.Context(), `
		INSERT INTO counters (shard, customer, meter, attribute, at, hour, units, total, version)
		VALUES ($1, $2, $3, $4, (extract(epoch FROM clock_timestamp() - $5::interval) * 1000000)::bigint, 3600000000, $6, $6, 1)`,
		model.Shard(k.Customer), k.Customer, k.Meter, attribute, ago, units); err != nil {
		t.Fatal(err)
	}
}

func forgetNow(t testing.TB, f *Forgetter) {
	t.Helper()
	if err := f.walk(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func clearNow(t testing.TB, f *Forgetter) {
	t.Helper()
	if err := f.clearAll(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// age lets customers have been made so long ago.
func age(t testing.TB, s *store.Store, ago time.Duration) {
	t.Helper()
	if _, err := s.Pool().Exec(t.Context(), "UPDATE customers SET created_at = created_at - $1::interval", ago); err != nil {
		t.Fatal(err)
	}
}

func TestIdleAnonymousCustomersAreForgotten(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	one, two := startNode(t, url, "free"), startNode(t, url, "free")
	s := one.Store
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	before := map[string]*model.Target{}
	for _, key := range []string{"untouched", "idle", "busy", "busy by one address", "named", "archived", "overridden", "suspended"} {
		before[key] = one.target(t, key)
		two.target(t, key)
	}
	charge(t, s, before["idle"], "", 3, 2*time.Hour)
	charge(t, s, before["idle"], "ip=1", 0, 2*time.Hour)
	charge(t, s, before["busy"], "", 3, time.Minute)
	charge(t, s, before["busy by one address"], "", 3, 2*time.Hour)
	charge(t, s, before["busy by one address"], "ip=1", 0, time.Minute)
	planstest.PutCustomer(t, s, "named", planstest.OnPlan("free"))
	if err := s.ArchiveCustomer(t.Context(), "archived"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutOverride(t.Context(), "overridden", "hourly", plans.OverrideInput{Limit: 9}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Suspend(t.Context(), "suspended", "abuse"); err != nil { // else its next hit would be a new customer's
		t.Fatal(err)
	}
	age(t, s, 2*time.Hour)
	one.target(t, "young")
	changes := planstest.ChangeNumber(t, s)
	f := forgetter(one, time.Hour)
	forgetNow(t, f)
	forgetNow(t, f)

	if got := planstest.ChangeNumber(t, s); got != changes+2 || planstest.Count(t, s, "count(*) FROM changes") != got || one.catalog.Applied() != got {
		t.Errorf("%d changes for two customers", got-changes)
	}
	gone := map[string]bool{"untouched": true, "idle": true}
	for key, target := range before {
		_, err := s.GetCustomer(t.Context(), key)
		if errors.Is(err, plans.ErrUnknownCustomer) != gone[key] {
			t.Errorf("%s: %v", key, err)
		}
		if key == "archived" {
			continue
		}
		// Here at once, on the other node soon: the next hit makes another customer.
		if after := one.target(t, key); (planstest.IDOf(after) != planstest.IDOf(target)) != gone[key] {
			t.Errorf("%s: %d, was %d", key, planstest.IDOf(after), planstest.IDOf(target))
		}
		testkit.Eventually(t, key+" on the other node", func() bool { return planstest.IDOf(two.target(t, key)) == planstest.IDOf(one.target(t, key)) })
	}
	if _, err := s.GetCustomer(t.Context(), "young"); err != nil {
		t.Errorf("young: %v", err)
	}
}

// Units of an allocation and open reservations do not come back by waiting: whoever has any
// stays, and goes when they are given back, also where the plan has that limit no more. What else counts in the state keeps nobody.
func TestWhoHasUnitsInUseStays(t *testing.T) {
	t.Parallel()
	c := startNode(t, pgtest.NewDatabase(t), "free")
	s := c.Store
	planstest.Declare(t, s, "api")
	plan := planstest.Hourly(5)
	plan.Limits = append(plan.Limits,
		plans.Limit{Meter: "api", Spec: model.Spec{Name: "seats", Algorithm: "allocation", Limit: 5}},
		plans.Limit{Meter: "api", Spec: model.Spec{Name: "files", Algorithm: "allocation", Limit: 5, Per: "dir"}})
	planstest.PutPlan(t, s, "free", plan)
	window, seats := c.target(t, "windowed").Counters[0].Limits[0].ID, c.target(t, "windowed").Counters[0].Limits[1].ID
	files := c.target(t, "windowed").For(map[string]string{"dir": "1"}).Counters[1].Limits[0].ID
	for key, state := range map[string][]int64{
		"windowed": {window, 3, 1, 9}, "seated": {window, 3, 1, 9, seats, 2, 1, model.Stays}, "stood up": {window, 3, 1, 9, seats, 0, 1, 9},
		"reserving": {0, 1, 1, 0, window, 3, 1, 9}, "left": {window, 3, 1, 9, 5, 2, 1, model.Stays},
	} {
		charge(t, s, c.target(t, key), "", 3, 2*time.Hour)
		setState(t, s, c.target(t, key), "", state)
	}
	filing := c.target(t, "filing")
	charge(t, s, filing, "", 3, 2*time.Hour)
	charge(t, s, filing, "dir=1", 0, 2*time.Hour)
	setState(t, s, filing, "dir=1", []int64{files, 1, 1, model.Stays})
	apart := c.target(t, "apart")
	charge(t, s, apart, "", 3, 2*time.Hour)
	setDeparted(t, s, apart, []int64{1, 5, 2, 1, model.Stays})
	c.target(t, "untouched")
	age(t, s, 2*time.Hour)
	forgetNow(t, forgetter(c, time.Hour))
	var left string
	if err := s.Pool().QueryRow(t.Context(), "SELECT string_agg(key, ',' ORDER BY key) FROM customers").Scan(&left); err != nil ||
		left != "apart,filing,left,reserving,seated" {
		t.Errorf("left are %s, %v", left, err)
	}
	setDeparted(t, s, apart, nil)
	for key, attribute := range map[string]string{"seated": "", "reserving": "", "left": "", "filing": "dir=1"} {
		setState(t, s, c.target(t, key), attribute, nil)
	}
	forgetNow(t, forgetter(c, time.Hour))
	if n := planstest.Count(t, s, "count(*) FROM customers"); n != 0 {
		t.Errorf("%d are left", n)
	}
}

func setDeparted(t testing.TB, s *store.Store, target *model.Target, departed []int64) {
	t.Helper()
	k := target.Counters[0].Key
	if _, err := s.Pool().Exec(t.Context(), "UPDATE counters SET departed = $1 WHERE customer = $2 AND meter = $3", departed, k.Customer, k.Meter); err != nil {
		t.Fatal(err)
	}
}

func setState(t testing.TB, s *store.Store, target *model.Target, attribute string, state []int64) {
	t.Helper()
	if state == nil {
		state = []int64{}
	}
	k := target.Counters[0].Key
	if _, err := s.Pool().Exec(t.Context(), "UPDATE counters SET state = $1 WHERE customer = $2 AND meter = $3 AND attribute = $4", state, k.Customer,
		k.Meter, attribute); err != nil {
		t.Fatal(err)
	}
}

// A node that had not heard of it charges a forgotten customer once more: its counters
// are booked, and go.
func TestForgottenCustomersCountersAreBooked(t *testing.T) {
	t.Parallel()
	c := startNode(t, pgtest.NewDatabase(t), "free")
	s := c.Store
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	idle, busy := c.target(t, "idle"), c.target(t, "busy")
	for attribute, units := range map[string]int64{"": 3, "ip=1": 0} {
		charge(t, s, idle, attribute, units, 2*time.Hour)
		charge(t, s, busy, attribute, units, time.Minute)
	}
	if _, err := s.Pool().Exec(t.Context(), `INSERT INTO open_adjustments SELECT id, 0, 1, gen_random_uuid() FROM customers`); err != nil {
		t.Fatal(err)
	}
	age(t, s, 2*time.Hour)
	f := forgetter(c, time.Hour)
	forgetNow(t, f)
	f.grace = time.Minute
	clearNow(t, f)
	if n := planstest.Count(t, s, "count(*) FROM counters"); n != 4 {
		t.Errorf("%d counters before their time", n)
	}
	id := planstest.IDOf(idle)
	for _, sql := range []string{
		"UPDATE counters SET units = units + 2 WHERE customer = $1 AND attribute = ''",
		"INSERT INTO usage (shard, customer, meter, hour, admitted) SELECT shard, customer, meter, hour, 10 FROM counters WHERE customer = $1 AND attribute = ''",
	} {
		if _, err := s.Pool().Exec(t.Context(), sql, id); err != nil {
			t.Fatal(err)
		}
	}
	f.grace = 0
	clearNow(t, f)
	if n := planstest.Count(t, s, "count(*) FROM counters WHERE customer = $1", planstest.IDOf(busy)); n != 2 ||
		planstest.Count(t, s, "count(*) FROM counters") != 2 {
		t.Errorf("%d counters of another are left", n)
	}
	if n := planstest.Count(t, s, "count(*) FROM open_adjustments WHERE customer <> $1", planstest.IDOf(busy)); n != 0 ||
		planstest.Count(t, s, "count(*) FROM open_adjustments") != 1 {
		t.Errorf("%d adjustments of the forgotten wait for an invoice", n)
	}
	if n := planstest.Count(t, s, "sum(admitted)::bigint FROM usage"); n != 15 ||
		planstest.Count(t, s, "sum(admitted)::bigint FROM usage WHERE customer = $1 AND hour = 3600000000", id) != 15 {
		t.Errorf("%d units of usage", n)
	}
	if n := planstest.Count(t, s, "count(*) FROM forgotten"); n != 0 {
		t.Errorf("%d customers still wait for the end", n)
	}
}

// The receipts of a forgotten customer go, too, however many: they name values of attributes.
func TestForgottenCustomersReceiptsGo(t *testing.T) {
	t.Parallel()
	c := startNode(t, pgtest.NewDatabase(t), "free")
	s := c.Store
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	idle, busy := c.target(t, "idle"), c.target(t, "busy")
	charge(t, s, idle, "", 3, 2*time.Hour)
	charge(t, s, busy, "", 3, time.Minute)
	for id, n := range map[int64]int{planstest.IDOf(idle): maxClearedRows + 10, planstest.IDOf(busy): 10} {
		if _, err := s.Pool().Exec(t.Context(), `INSERT INTO receipts_1 (shard, customer, key, payload, at, cost, meter, body)
			SELECT $1, $2, md5(i::text)::uuid, 1, 1, 1, 1, 'a' FROM generate_series(1, $3) i`, model.Shard(id), id, n); err != nil {
			t.Fatal(err)
		}
	}
	age(t, s, 2*time.Hour)
	f := forgetter(c, time.Hour)
	forgetNow(t, f)
	clearNow(t, f)
	if n := planstest.Count(t, s, "count(*) FROM receipts_1 WHERE customer = $1", planstest.IDOf(idle)); n != 0 ||
		planstest.Count(t, s, "count(*) FROM receipts_1") != 10 {
		t.Errorf("%d receipts are left", n)
	}
	if n := planstest.Count(t, s, "count(*) FROM forgotten"); n != 0 {
		t.Errorf("%d customers still wait for the end", n)
	}
}

// Between the look at who is idle and the removal a customer may be charged, named,
// archived or given an override: then it stays, and nothing has changed.
func TestWhoIsNoLongerIdleStays(t *testing.T) {
	t.Parallel()
	c := startNode(t, pgtest.NewDatabase(t), "free")
	s := c.Store
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	var ids []int64
	for _, key := range []string{"charged", "named", "archived", "overridden"} {
		target := c.target(t, key)
		ids = append(ids, planstest.IDOf(target))
		if key == "charged" {
			charge(t, s, target, "", 1, time.Minute)
		}
	}
	planstest.PutCustomer(t, s, "named", planstest.OnPlan("free"))
	if err := s.ArchiveCustomer(t.Context(), "archived"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutOverride(t.Context(), "overridden", "hourly", plans.OverrideInput{Limit: 9}); err != nil {
		t.Fatal(err)
	}
	before := planstest.ChangeNumber(t, s)
	if err := forgetter(c, time.Hour).forget(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	if planstest.Count(t, s, "count(*) FROM customers") != 4 || planstest.Count(t, s, "count(*) FROM forgotten") != 0 || planstest.ChangeNumber(t, s) != before {
		t.Error("somebody was forgotten")
	}
}

// A counter that a hit holds, and a customer that another node clears, wait for the next
// time; a hit waits for nothing but the moment of the removal.
func TestHeldCountersAreClearedLater(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	c := startNode(t, url, "free")
	s := c.Store
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	charge(t, s, c.target(t, "a"), "", 1, 2*time.Hour)
	charge(t, s, c.target(t, "b"), "", 1, 2*time.Hour)
	held := planstest.IDOf(c.target(t, "a"))
	age(t, s, 2*time.Hour)
	f := forgetter(c, time.Hour)
	forgetNow(t, f)
	tx, err := s.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "SELECT FROM counters WHERE customer = $1 FOR UPDATE", held); err != nil {
		t.Fatal(err)
	}
	clearNow(t, f)
	if n := planstest.Count(t, s, "min(customer) FROM counters"); n != held || planstest.Count(t, s, "count(*) FROM counters") != 1 ||
		planstest.Count(t, s, "count(*) FROM forgotten") != 1 {
		t.Error("not just the held counter is left")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	clearNow(t, f)
	if planstest.Count(t, s, "count(*) FROM counters") != 0 || planstest.Count(t, s, "count(*) FROM forgotten") != 0 ||
		planstest.Count(t, s, "sum(admitted)::bigint FROM usage") != 2 {
		t.Error("what was held is not cleared afterwards")
	}
}

// More than one page, more than one change, with changes pruned on the way: no node
// misses one.
func TestManyAreForgotten(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	c := startNode(t, url, "free")
	s := c.Store
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	before := planstest.IDOf(c.target(t, "x"))
	if _, err := s.Pool().Exec(t.Context(), `
		INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change, anonymous)
		SELECT 'c' || n, '', 1, 1, 'UTC', '2026-01-01T00:00:00', 1, n % 10 <> 0 FROM generate_series(1, $1::integer) n`, 3*maxForgotten); err != nil {
		t.Fatal(err)
	}
	age(t, s, 2*time.Hour)
	changes := planstest.ChangeNumber(t, s)
	forgetNow(t, forgetter(c, time.Hour))
	const gone = 3*maxForgotten*9/10 + 1
	if n := planstest.Count(t, s, "count(*) FROM customers"); n != 3*maxForgotten/10 {
		t.Errorf("%d customers are left", n)
	}
	if now := planstest.ChangeNumber(t, s); now != changes+gone || planstest.Count(t, s, "count(*) FROM changes") != now ||
		planstest.Count(t, s, "count(DISTINCT key) FROM changes WHERE kind = 'customer' AND number > $1", changes) != gone {
		t.Errorf("%d changes for %d customers", now-changes, gone)
	}
	if id := planstest.IDOf(c.target(t, "x")); id == before {
		t.Error("the node has not heard of it")
	}
	if c.forgot() {
		t.Error("the node found a gap in the changes and forgot everything")
	}
}

func TestForgetterRuns(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	c := startNode(t, url, "free")
	s := c.Store
	planstest.Declare(t, s, "api")
	planstest.PutPlan(t, s, "free", planstest.Hourly(5))
	charge(t, s, c.target(t, "x"), "", 4, time.Minute)
	f := NewForgetter(s, c.catalog.Targets, time.Second, slog.New(slog.DiscardHandler))
	f.grace, f.every = 0, 100*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { f.Run(ctx); close(ended) }()
	testkit.Eventually(t, "it to be forgotten, and its units to be booked", func() bool {
		return planstest.Count(t, s, "coalesce(sum(admitted), 0)::bigint FROM usage") == 4 && planstest.Count(t, s, "count(*) FROM customers") == 0
	})
	cancel()
	<-ended
}
