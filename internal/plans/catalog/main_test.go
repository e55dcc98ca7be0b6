package catalog

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"quotad/internal/plans/store"
	"quotad/internal/plans/sweep"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// testOptions: wall clocks are good enough for keys that expire in an hour. A slow machine ends no read.
func testOptions() Options {
	return Options{
		Monotonic: planstest.Monotonic,
		Now:       planstest.WallClock,
		Within:    testkit.Patience,
		Log:       slog.New(slog.DiscardHandler),
	}
}

// idleCatalog is a catalog on a store of its own that nothing keeps current but what is
// asked of it.
func idleCatalog(t testing.TB, url string, options Options) *Catalog {
	t.Helper()
	c := New(planstest.NewPool(t, url), options)
	t.Cleanup(c.poller.close)
	return c
}

// storeOf is a store whose writes a catalog hears of.
func storeOf(c *Catalog) *store.Store {
	return store.New(c.pool, store.Options{Committed: c.Committed, Within: testkit.Patience})
}

// start runs a catalog, and what ends overrides, until the test ends, and returns after its first poll.
func start(t testing.TB, c *Catalog) *Catalog {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	running.Go(func() { sweep.NewSweeper(storeOf(c), c.options.Now, c.options.Log).Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	testkit.Eventually(t, "the first poll", c.Fresh)
	return c
}

// soon holds a node to its word: what was changed before the call counts there from the first poll on
// that began after it. Polls come four times a second; that it all takes less than a second is measured
// in the long form only, as it is the machine's time, too.
func soon(t testing.TB, c *Catalog, what string, counts func() bool) (took time.Duration) {
	t.Helper()
	changed := c.options.Monotonic()
	testkit.Eventually(t, "a poll after "+what, func() bool { return c.confirmed.Load() >= int64(changed) })
	took = c.options.Monotonic() - changed
	testkit.AtMost(t, "the poll after "+what, took, Freshness)
	if !counts() {
		t.Errorf("%s does not count after the next poll", what)
	}
	return took
}

// newNode is a store and its running catalog on a database, as one node has them.
func newNode(t testing.TB, url string) (*store.Store, *Catalog) {
	t.Helper()
	c := idleCatalog(t, url, testOptions())
	return storeOf(c), start(t, c)
}

// openNode is a node that makes customers on the plan free.
func openNode(t testing.TB, url string) (*store.Store, *Catalog) {
	t.Helper()
	options := testOptions()
	options.DefaultPlan = "free"
	c := idleCatalog(t, url, options)
	return storeOf(c), start(t, c)
}

func resolved(t testing.TB, c *Catalog, customer string) *model.Target {
	t.Helper()
	return planstest.Must[*model.Target](t)(c.Resolve(t.Context(), customer, "api", 0))
}

// meets is the limit that hits of a customer on api meet now.
func meets(t testing.TB, c *Catalog, customer string) int64 {
	t.Helper()
	return planstest.LimitOf(planstest.Must[*model.Target](t)(c.Resolve(t.Context(), customer, "api", 0)))
}

// holdConnections takes all of a store's connections until they are released.
func holdConnections(t *testing.T, s *store.Store) (release func()) {
	t.Helper()
	var held []func()
	for range s.Pool().Config().MaxConns {
		conn, err := s.Pool().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn.Release)
	}
	release = sync.OnceFunc(func() {
		for _, release := range held {
			release()
		}
	})
	t.Cleanup(release)
	return release
}

// anyKey lets all unknown keys be looked up.
func anyKey() error { return nil }
