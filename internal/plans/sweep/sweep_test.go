package sweep

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// An override that another node wrote counts here within a second, and so does its end,
// on every node and without anybody's call.
func TestOverridesCountAndExpireOnEveryNode(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	clock := new(sweepClock)
	nodes := []*node{nodeBy(t, url, "", clock.now).start(t), nodeBy(t, url, "", clock.now).start(t)}
	for _, n := range nodes {
		n.meets(t, "acme") // it is in memory
	}
	meet := func(what string, want int64) {
		t.Helper()
		soon(t, what, func(n *node) bool { return n.meets(t, "acme") == want }, nodes...)
	}
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		expires := planstest.DatabaseNow(t, admin).Add(time.Hour).Truncate(time.Microsecond)
		clock.at.Store(expires.UnixMicro() - 1)
		planstest.WriteOverride(t, admin, "acme", plans.OverrideInput{Limit: 9, ExpiresAt: &expires})
		meet("the override", 9)
		clock.sweeps(t, 10)
		meet("the override, a microsecond before its end", 9)
		clock.at.Store(expires.UnixMicro())
		testkit.Eventually(t, "its end", func() bool { return planstest.Count(t, admin, "count(*) FROM overrides") == 0 })
		meet("its end", 5)
		if stored := planstest.Must[*plans.Customer](t)(admin.GetCustomer(t.Context(), "acme")); stored.Change != planstest.ChangeNumber(t, admin) {
			t.Errorf("it ended by change %d of %d: more than one node wrote", stored.Change, planstest.ChangeNumber(t, admin))
		}
	}
}

// Scheduled changes that count are written into their customers once, by whichever node: in real time
// from their instant on, and on a test clock where the clock has shown it.
func TestScheduledChangesAreWritten(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	planstest.PutPlan(t, admin, "large", planstest.Hourly(9))
	const customers = sweepRows + 20
	for _, statement := range []string{
		`INSERT INTO test_clocks (key, now, change) VALUES ('clock', 5, 3)`,
		fmt.Sprintf(`INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change, test_clock_id)
			SELECT 'c' || n, 'x', 1, 1, 'UTC', '2026-01-01T00:00:00', 3, CASE WHEN n %% 4 < 2 THEN 1 END FROM generate_series(1, %d) n`, customers),
		// Those on the clock with an odd number were done when the clock showed more than now.
		`INSERT INTO customer_terms (customer_id, clock_id, change, how, limits_at, from_at, waits, plan_id, joined_version, timezone, billing_anchor, reached)
			SELECT id, test_clock_id, 3, 'period_end', at, at, true, 2, 1, timezone, billing_anchor,
				CASE WHEN test_clock_id IS NOT NULL AND id % 2 = 1 THEN 4 END
			FROM customers, LATERAL (SELECT CASE WHEN test_clock_id IS NULL AND id % 2 = 0 THEN 4e15 ELSE 6 END AS at) a WHERE key LIKE 'c%'`,
	} {
		if _, err := admin.Pool().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	const state = `SELECT count(*) FILTER (WHERE s.customer_id IS NULL AND c.plan_id = 2), count(*) FILTER (WHERE c.plan_id = 1 AND s.customer_id IS NOT NULL),
		count(DISTINCT c.change) FILTER (WHERE c.plan_id = 2), (SELECT count(*) FROM customer_terms WHERE NOT waits AND limits_at = 6)
		FROM customers c LEFT JOIN customer_terms s ON s.customer_id = c.id AND s.waits WHERE c.key LIKE 'c%'`
	var due, after, waits, changes, terms int
	if err := admin.Pool().QueryRow(t.Context(),
		`SELECT count(*) FROM customer_terms WHERE waits AND (reached IS NOT NULL OR clock_id IS NULL AND limits_at < 4e15)`).Scan(&due); err != nil || due == 0 || due == customers {
		t.Fatal(due, err)
	}
	startNode(t, url, "")
	startNode(t, url, "")
	testkit.Eventually(t, "all are written", func() bool {
		if err := admin.Pool().QueryRow(t.Context(), state).Scan(&after, &waits, &changes, &terms); err != nil {
			t.Fatal(err)
		}
		return after == due
	})
	if waits != customers-due || changes != due || terms != due {
		t.Errorf("%d are due of %d: %d wait, %d changes, %d rows of terms", due, customers, waits, changes, terms)
	}
}

// An override that has ended stays until a scheduled change that counts since then is settled: what the
// limits were until the change depends on the override.
func TestOverridesOutlastAChangeToSettle(t *testing.T) {
	t.Parallel()
	s := planstest.NewStore(t, pgtest.NewDatabase(t))
	planstest.Populate(t, s)
	now := planstest.DatabaseNow(t, s)
	ends := now.Add(time.Hour).Truncate(time.Microsecond)
	planstest.WriteOverride(t, s, "acme", plans.OverrideInput{Limit: 9, ExpiresAt: &ends})
	if _, err := s.Pool().Exec(t.Context(), `
		INSERT INTO customer_terms (customer_id, change, how, limits_at, from_at, waits, plan_id, joined_version, timezone, billing_anchor)
		SELECT id, change, 'period_end', $1, $1, true, plan_id, joined_version, timezone, billing_anchor FROM customers WHERE key = 'acme'`,
		now.UnixMicro()-1); err != nil {
		t.Fatal(err)
	}
	sweeper := NewSweeper(s, func(context.Context) (int64, error) { return ends.UnixMicro(), nil }, nil)
	for _, left := range []int64{1, 0} {
		if err := sweeper.endExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := planstest.Count(t, s, "count(*) FROM overrides"); got != left {
			t.Errorf("%d overrides, want %d", got, left)
		}
		if err := s.Settle(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
	}
}

// Many that expire at one instant, twelve of each customer and more than one transaction ends: each customer has a
// change of its own, none is missing, and no node has to forget everything.
func TestManyOverridesExpireAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	const customers = 2*sweepRows + 50
	if _, err := admin.Pool().Exec(t.Context(), `
		INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change)
		SELECT 'c' || n, 'x', 1, 1, 'UTC', '2026-01-01T00:00:00', 3 FROM generate_series(1, $1) n`, customers); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Pool().Exec(t.Context(), `
		INSERT INTO overrides (customer_id, limit_name, "limit", expires_at, change)
		SELECT id, l, 9, expires_at, 3 FROM customers,
			(VALUES ('hourly', 4e15), ('later', 4e15), ('stays', NULL)
			 UNION ALL SELECT 'gone' || n, 4e15 FROM generate_series(1, 11) n) AS o(l, expires_at)
		WHERE key LIKE 'c%'`); err != nil {
		t.Fatal(err)
	}
	nodes := make([]*node, 2)
	for i := range nodes {
		nodes[i] = startNode(t, url, "")
		for n := 1; n <= customers; n++ {
			if got := nodes[i].meets(t, fmt.Sprint("c", n)); got != 9 {
				t.Fatalf("c%d: %d before the end", n, got)
			}
		}
	}
	first := planstest.ChangeNumber(t, admin)
	// Only now that both nodes know them all: reading them may take any time.
	if _, err := admin.Pool().Exec(t.Context(), `
		UPDATE overrides SET expires_at = (extract(epoch FROM now()) * 1e6)::bigint
		WHERE limit_name = 'hourly' OR limit_name LIKE 'gone%'`); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		testkit.Eventually(t, "the last change", func() bool { return node.catalog.Applied() >= first+customers })
	}
	for _, node := range nodes {
		for n := 1; n <= customers; n++ {
			target := node.target(t, fmt.Sprint("c", n))
			if planstest.LimitOf(target) != 5 || target.Change <= first {
				t.Fatalf("c%d: %d by change %d", n, planstest.LimitOf(target), target.Change)
			}
		}
		if node.forgot() {
			t.Error("a node forgot everything")
		}
	}
	var changes, distinct, left int64
	if err := admin.Pool().QueryRow(t.Context(), `
		SELECT count(*), count(DISTINCT key), (SELECT sum(CASE WHEN limit_name IN ('later', 'stays') THEN 1 ELSE -1 END) FROM overrides)
		FROM changes
		WHERE number > $1 AND kind = 'customer' AND key LIKE 'c%'`, first).Scan(&changes, &distinct, &left); err != nil {
		t.Fatal(err)
	}
	if changes != customers || distinct != customers || left != 2*customers || planstest.ChangeNumber(t, admin) != first+customers {
		t.Errorf("%d changes of %d customers up to %d, %d overrides left", changes, distinct, planstest.ChangeNumber(t, admin)-first, left)
	}
}

// Customers with several that expire: nothing is left until the next time.
func TestAllThatHasExpiredEndsInOneGo(t *testing.T) {
	t.Parallel()
	n := newNode(t, pgtest.NewDatabase(t), "")
	s := n.Store
	planstest.Populate(t, s)
	for _, sql := range []string{
		`INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change)
			SELECT 'c' || n, 'x', 1, 1, 'UTC', '2026-01-01T00:00:00', 3 FROM generate_series(1, 300) n`,
		`INSERT INTO overrides (customer_id, limit_name, "limit", expires_at, change)
			SELECT id, 'l' || n, 9, id, 3 FROM customers, generate_series(1, 3) n WHERE key LIKE 'c%'`,
	} {
		if _, err := s.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	before := planstest.ChangeNumber(t, s)
	if err := n.sweeper.endExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := planstest.Count(t, s, "count(*) FROM overrides"); left != 0 || planstest.ChangeNumber(t, s) != before+300 {
		t.Errorf("%d are left after %d changes", left, planstest.ChangeNumber(t, s)-before)
	}
}

// What expires in an outage ends after it; the log says once that it waits.
func TestSweepOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	clock := new(sweepClock)
	n := nodeBy(t, server.URL(), "", clock.now).start(t)
	s := n.Store
	planstest.Populate(t, s)
	expires := planstest.DatabaseNow(t, s).Add(time.Hour)
	clock.at.Store(expires.UnixMicro() - 1)
	planstest.WriteOverride(t, s, "acme", plans.OverrideInput{Limit: 9, ExpiresAt: &expires})
	// A change that the node hears of later takes what is remembered away.
	if err := n.catalog.CatchUp(t.Context(), planstest.ChangeNumber(t, s)); err != nil {
		t.Fatal(err)
	}
	if got := n.meets(t, "acme"); got != 9 {
		t.Fatalf("meets %d", got)
	}
	server.Stop()
	clock.at.Store(expires.UnixMicro())
	const waits, ends = "cannot end what has expired", "what has expired is ended again"
	testkit.Eventually(t, "a word in the log", func() bool { return n.log.Count(waits) == 1 })
	clock.sweeps(t, 10) // several more attempts fail
	if words := n.log.Count(waits); words != 1 {
		t.Errorf("%d words in the log", words)
	}
	if got := n.meets(t, "acme"); got != 9 {
		t.Errorf("it ended without a database: %d", got)
	}
	server.Start()
	testkit.Eventually(t, "its end", func() bool {
		target, err := n.catalog.Resolve(t.Context(), "acme", "api", 0)
		return err == nil && planstest.LimitOf(target) == 5
	})
	testkit.Eventually(t, "a word in the log", func() bool { return n.log.Count(ends) == 1 })
}

// Keys that are taken out of old changes, which may take its time, hold up no override's end.
func TestExpiryDoesNotWaitForErasures(t *testing.T) {
	t.Parallel()
	clock := new(sweepClock)
	clock.at.Store(time.Now().UnixMicro())
	n := nodeBy(t, pgtest.NewDatabase(t), "", clock.now)
	n.sweeper.scrubEvery, n.sweeper.scrubAfter = time.Millisecond, 0
	s := n.start(t).Store
	planstest.Populate(t, s)
	tx, err := s.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "LOCK TABLE erasures"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the look for erasures to wait", func() bool {
		return planstest.Count(t, s, "count(*) FROM pg_locks WHERE NOT granted AND relation = 'erasures'::regclass") > 0
	})
	expires := planstest.DatabaseNow(t, s).Add(time.Hour)
	planstest.WriteOverride(t, s, "acme", plans.OverrideInput{Limit: 9, ExpiresAt: &expires})
	if got := n.meets(t, "acme"); got != 9 {
		t.Errorf("before its end it meets %d", got)
	}
	clock.at.Store(expires.UnixMicro())
	testkit.Eventually(t, "the override's end", func() bool { return n.meets(t, "acme") == 5 }) // while the lock is held
}

// Looking for what has expired reaches rows by the index, however many do not expire yet.
func TestExpiredOverridesAreFoundByTheirIndex(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	for _, statement := range []string{
		`INSERT INTO overrides SELECT 1, 'l' || n, 1, NULL, CASE WHEN n % 2 = 0 THEN 9000000000000000 + n END, 3 FROM generate_series(1, 20000) n`,
		`ANALYZE overrides`,
	} {
		if _, err := s.Pool().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := s.Pool().Query(t.Context(), "EXPLAIN "+expiredOverrides, planstest.DatabaseNow(t, s).UnixMicro(), sweepRows)
	var plan strings.Builder
	for err == nil && rows.Next() {
		var line string
		if err = rows.Scan(&line); err == nil {
			plan.WriteString(line + "\n")
		}
	}
	if err != nil || !strings.Contains(plan.String(), "overrides_expiry") {
		t.Errorf("%v\n%s", err, plan.String())
	}
}
