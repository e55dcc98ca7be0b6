package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// Writers on several nodes at once: every node hears of every change. Each remembers of
// all customers that there are none, so one change that it missed would show.
func TestConcurrentWritersLoseNoChange(t *testing.T) {
	url := pgtest.NewDatabase(t)
	planstest.Populate(t, planstest.NewStore(t, url))
	first := planstest.ChangeNumber(t, planstest.NewStore(t, url))
	const writers, each = 16, 15
	customer := func(writer, i int) string { return fmt.Sprintf("c-%d-%d", writer, i) }
	nodes := make([]*Catalog, 2)
	resolveAll := func(c *Catalog, want error) {
		for i := range writers * each {
			key := customer(i%writers, i/writers)
			if _, err := c.Resolve(t.Context(), key, "api", 0); !errors.Is(err, want) {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
	for i := range nodes {
		nodes[i] = start(t, idleCatalog(t, url, testOptions()))
		resolveAll(nodes[i], plans.ErrUnknownCustomer)
	}
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			s := storeOf(nodes[w%len(nodes)])
			for i := range each {
				if _, _, err := s.PutCustomer(t.Context(), customer(w, i), planstest.OnPlan("basic"), plans.Precondition{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	for _, c := range nodes {
		testkit.Eventually(t, "all changes", func() bool { return c.Applied() == first+writers*each })
		resolveAll(c, nil)
	}
}

// changeSoon changes the plan on one node, and another obeys soon.
func changeSoon(t *testing.T, admin *store.Store, c *Catalog, limit int64) (took time.Duration) {
	t.Helper()
	planstest.PutPlan(t, admin, "basic", planstest.Hourly(limit))
	return soon(t, c, "the new limit", func() bool { return meets(t, c, "acme") == limit })
}

func TestAChangeCountsWithinASecond(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	_, heeding := newNode(t, url)
	deaf := idleCatalog(t, url, testOptions()) // polls only
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { deaf.follow(ctx) })
	defer following.Wait()
	defer cancel()
	for name, c := range map[string]*Catalog{"by notice": heeding, "by polling alone": deaf} {
		var took []time.Duration
		for i := range int64(8) {
			took = append(took, changeSoon(t, admin, c, 100+i))
		}
		t.Logf("%s: worst of %d %s", name, len(took), slices.Max(took))
	}
	if pollEvery > Freshness/2 {
		t.Errorf("a poll each %s leaves no time to do it in", pollEvery)
	}
}

// A notice of each change has the poller look at once.
func TestAChangeIsNoticed(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	c := idleCatalog(t, url, testOptions()) // it listens, and never polls
	ctx, cancel := context.WithCancel(t.Context())
	var listening sync.WaitGroup
	listening.Go(func() { c.listen(ctx) })
	defer listening.Wait()
	defer cancel()
	for i := range int64(3) {
		select {
		case <-c.wake: // by its beginning, or by the change before
		case <-testkit.Bounded(t).Done():
			t.Fatalf("change %d is not noticed", i)
		}
		planstest.PutPlan(t, admin, "basic", planstest.Hourly(100+i))
	}
	select {
	case <-c.wake:
	case <-testkit.Bounded(t).Done():
		t.Fatal("the last change is not noticed")
	}
}

// The listening connection is cut again and again while changes are made.
func TestALostListenerIsNoLoss(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	_, c := newNode(t, url)
	listeners := func() (n int) {
		err := admin.Pool().QueryRow(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()", listenerName).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i := range int64(5) {
		testkit.Eventually(t, "a listener", func() bool { return listeners() == 1 })
		if _, err := admin.Pool().Exec(t.Context(), `SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
			WHERE application_name = $1 AND datname = current_database()`, listenerName); err != nil {
			t.Fatal(err)
		}
		changeSoon(t, admin, c, 100+i)
	}
}

// A node that was away for longer than changes are kept, and one whose database is now
// an older state of itself, forget everything.
func TestBrokenSequencesAreForgotten(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"pruned":    `DELETE FROM changes WHERE number <= (SELECT number FROM change_number) - 1`,
		"restored":  `DELETE FROM changes; UPDATE change_number SET number = 1; INSERT INTO changes VALUES (1, 'plan', 'x')`,
		"forked":    `UPDATE changes SET token = gen_random_uuid()`,
		"emptied":   `DELETE FROM changes; UPDATE change_number SET number = 0`,
		"a missing": `DELETE FROM changes WHERE number = (SELECT number FROM change_number) - 1`,
	} {
		t.Run(name, func(t *testing.T) {
			url := pgtest.NewDatabase(t)
			admin := planstest.NewStore(t, url)
			planstest.Populate(t, admin)
			c := idleCatalog(t, url, testOptions())
			planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0))
			before := c.memory.Load()
			for limit := range int64(3) {
				planstest.PutPlan(t, admin, "basic", planstest.Hourly(limit)) // unheard of
			}
			if _, err := admin.Pool().Exec(t.Context(), damage); err != nil {
				t.Fatal(err)
			}
			if _, err := c.poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0)); planstest.LimitOf(got) != 2 {
				t.Errorf("limit %d survived", planstest.LimitOf(got))
			}
			again := c.memory.Load()
			if again == before || c.Applied() != planstest.ChangeNumber(t, admin) {
				t.Errorf("forgot everything: %v, applied %d", again != before, c.Applied())
			}
			planstest.PutPlan(t, admin, "basic", planstest.Hourly(50)) // and it goes on from there
			if _, err := c.poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0)); planstest.LimitOf(got) != 50 || c.memory.Load() != again {
				t.Errorf("limit %d", planstest.LimitOf(got))
			}
		})
	}
}

// A new session finds out whether its database has what this node saw, and only then is used. What
// was resolved before is of another history otherwise.
func TestConfirm(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	options, log := testOptions(), new(pgtest.Log)
	options.Log = slog.New(slog.NewTextHandler(log, nil))
	c := idleCatalog(t, url, options)
	confirm := func() {
		t.Helper()
		conn := planstest.Must[*pgx.Conn](t)(postgres.Connect(t.Context(), url, nil))
		defer func() { _ = conn.Close(t.Context()) }()
		if err := c.Confirm(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
	}
	confirm() // the first contact
	first := c.History()
	before := planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0))
	planstest.PutPlan(t, admin, "basic", planstest.Hourly(7))
	confirm() // what is new is no other history
	if c.History() != first || before.History != first || c.WentBack() != 0 {
		t.Fatalf("history %d, of the target %d, and first %d; it went back %d times", c.History(), before.History, first, c.WentBack())
	}
	planstest.Declare(t, admin, "other")
	newest := planstest.ChangeNumber(t, admin)
	for i, damage := range []string{
		`UPDATE changes SET token = gen_random_uuid()`,
		`UPDATE change_number SET number = number - 1; DELETE FROM changes WHERE number > (SELECT number FROM change_number)`,
	} {
		if _, err := c.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		pgtest.Exec(t, url, damage)
		confirm()
		confirm()
		if _, err := c.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0))
		if want := first + uint64(i) + 1; c.History() != want || after.History != want || c.WentBack() != int64(i)+1 {
			t.Errorf("%s: history %d, of the target %d, and not %d; it went back %d times", damage, c.History(), after.History, want, c.WentBack())
		}
	}
	if c.Applied() != newest-1 || log.Count("the database went back") != 2 {
		t.Errorf("change %d of %d; logged:\n%s", c.Applied(), newest-1, log)
	}
	if got, err := c.Resolve(t.Context(), "acme", "api", newest-1); err != nil || got.AsOf() != newest-1 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := c.Resolve(t.Context(), "acme", "api", newest); !errors.Is(err, session.ErrBusy) {
		t.Errorf("a lost change was reached: %v, %v", got, err)
	}
}

// Whatever else is read, and however long, a change counts: the poll waits for nobody.
func TestChangesCountWhileThePoolIsBusy(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	made, secret, err := admin.CreateKey(t.Context(), "k", plans.ScopeBackend, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, c := newNode(t, url)
	if _, err := c.Authenticate(t.Context(), secret, anyKey); err != nil {
		t.Fatal(err)
	}
	holdConnections(t, s)
	if err := admin.RevokeKey(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	plan := planstest.PutPlan(t, admin, "basic", planstest.Hourly(6))
	soon(t, c, "the revocation and the plan", func() bool {
		_, err := c.Authenticate(t.Context(), secret, anyKey)
		return errors.Is(err, plans.ErrUnknownKey) && c.Applied() == planstest.ChangeNumber(t, admin)
	})
	if stat := s.Pool().Stat(); plan.Version != 2 || stat.AcquiredConns() != stat.MaxConns() {
		t.Errorf("version %d, and %d connections are taken", plan.Version, stat.AcquiredConns())
	}
	testkit.Eventually(t, "a fresh memory", c.Fresh)
}

// More changes than one poll applies.
func TestALongAbsence(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	c := idleCatalog(t, url, testOptions())
	planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0))
	before := c.memory.Load()
	if _, err := admin.Pool().Exec(t.Context(), `
		INSERT INTO changes SELECT n, CASE WHEN n % 2 = 0 THEN 'key' ELSE 'customer' END, 'c' || n
		FROM change_number, generate_series(number + 1, number + 20000) n;
		UPDATE change_number SET number = number + 20000`); err != nil {
		t.Fatal(err)
	}
	first, confirmed := c.Applied(), c.confirmed.Load()
	for page := int64(1); page <= 20; page++ {
		if more, err := c.poll(t.Context()); err != nil || c.Applied() != first+page*pollRows || more != (page < 20) || (c.confirmed.Load() == confirmed) != more {
			t.Fatalf("page %d: applied %d of %d, more %v, %v", page, c.Applied(), first+20000, more, err)
		}
	}
	if err := c.CatchUp(t.Context(), planstest.ChangeNumber(t, admin)); err != nil {
		t.Error(err)
	}
	if c.memory.Load() != before {
		t.Error("it forgot everything instead of what changed")
	}
}

func TestTheTableOfChangesIsBounded(t *testing.T) {
	t.Parallel()
	const changesKept = 100_000
	s := planstest.PopulatedStore(t)
	if _, err := s.Pool().Exec(t.Context(), `
		INSERT INTO changes SELECT n, 'plan', 'x' FROM change_number, generate_series(number + 1, $1) n`, changesKept); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pool().Exec(t.Context(), `UPDATE change_number SET number = $1`, changesKept); err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		planstest.PutPlan(t, s, "basic", planstest.Hourly(100+i))
	}
	var oldest, rows int64
	if err := s.Pool().QueryRow(t.Context(), "SELECT min(number), count(*) FROM changes").Scan(&oldest, &rows); err != nil {
		t.Fatal(err)
	}
	if oldest != 4 || rows != changesKept {
		t.Errorf("%d rows from %d on", rows, oldest)
	}
	// Polling is a look-up in the key, before the statistics know anything, and after.
	for range 2 {
		var plan string
		rows, err := s.Pool().Query(t.Context(), "EXPLAIN "+selectChanges, int64(changesKept), pollRows)
		for err == nil && rows.Next() {
			var line string
			if err = rows.Scan(&line); err == nil {
				plan += line + "\n"
			}
		}
		if err != nil || !strings.Contains(plan, "Index Scan using changes_pkey") {
			t.Errorf("%v\n%s", err, plan)
		}
		if _, err := s.Pool().Exec(t.Context(), "ANALYZE changes"); err != nil {
			t.Fatal(err)
		}
	}
}

// Everything that Run began is over when it returns, and what the pool began when that
// is closed; also when there never was a database.
func TestRunLeavesNothingBehind(t *testing.T) {
	for name, url := range map[string]string{
		"database":    pgtest.NewDatabase(t),
		"no database": "postgres://nobody@/nothing?host=" + t.TempDir(),
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			pool, err := postgres.Open(t.Context(), url, postgres.PoolOptions{})
			if err != nil {
				t.Fatal(err)
			}
			c := New(pool, testOptions())
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() {
				if err := c.Run(ctx); err != nil {
					t.Error(err)
				}
			})
			if name == "database" {
				testkit.Eventually(t, "the first poll", c.Fresh)
			} else if _, err := c.Resolve(ctx, "acme", "api", 0); err == nil {
				t.Error("resolved without a database")
			}
			cancel()
			running.Wait()
			pool.Close()
			goleak.VerifyNone(t, before)
		})
	}
}
