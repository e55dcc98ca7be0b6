package sweep

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"quotad/internal/plans"
	"quotad/internal/plans/catalog"
	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// node is a node of several: its store, its memory, what ends overrides, and what both say.
type node struct {
	*store.Store
	catalog *catalog.Catalog
	sweeper *Sweeper
	log     *pgtest.Log
}

// newNode is a node that nothing keeps current but what is asked of it. It makes
// customers on the default plan, if there is one.
func newNode(t testing.TB, url, defaultPlan string) *node {
	t.Helper()
	return nodeBy(t, url, defaultPlan, planstest.WallClock)
}

// nodeBy is a node that takes now for the database's time.
func nodeBy(t testing.TB, url, defaultPlan string, now func(context.Context) (int64, error)) *node {
	t.Helper()
	n := &node{log: new(pgtest.Log)}
	log := slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	pool := planstest.NewPool(t, url)
	n.catalog = catalog.New(pool, catalog.Options{Monotonic: planstest.Monotonic, Now: now, DefaultPlan: defaultPlan, Within: testkit.Patience, Log: log})
	n.Store = store.New(pool, store.Options{Committed: n.catalog.Committed, Within: testkit.Patience})
	n.sweeper = NewSweeper(n.Store, now, log)
	return n
}

// sweepClock is the clock of nodes. It counts how often it is asked: each sweep begins with that.
type sweepClock struct{ at, asked atomic.Int64 }

func (c *sweepClock) now(context.Context) (int64, error) {
	c.asked.Add(1)
	return c.at.Load(), nil
}

// sweeps waits until so many times somebody has asked for the time.
func (c *sweepClock) sweeps(t testing.TB, times int64) {
	t.Helper()
	asked := c.asked.Load()
	testkit.Eventually(t, "sweeps", func() bool { return c.asked.Load() >= asked+times })
}

// soon holds nodes to their word: what was changed before the call counts on each from the first poll on
// that began after it. That it all takes less than a second is measured in the long form only, as it is
// the machine's time, too.
func soon(t testing.TB, what string, counts func(n *node) bool, nodes ...*node) {
	t.Helper()
	changed := planstest.Monotonic()
	for _, n := range nodes {
		testkit.Eventually(t, "a poll after "+what, func() bool {
			now := planstest.Monotonic()
			age, polled := n.catalog.Age()
			return polled && now-age >= changed
		})
	}
	testkit.AtMost(t, "polls after "+what, planstest.Monotonic()-changed, catalog.Freshness)
	for i, n := range nodes {
		if !counts(n) {
			t.Errorf("%s does not count on node %d after the next poll", what, i)
		}
	}
}

// startNode runs one until the test ends.
func startNode(t testing.TB, url, defaultPlan string) *node {
	t.Helper()
	return newNode(t, url, defaultPlan).start(t)
}

// start returns after the first poll.
func (n *node) start(t testing.TB) *node {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := n.catalog.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	running.Go(func() { n.sweeper.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	testkit.Eventually(t, "the first poll", n.catalog.Fresh)
	return n
}

// target is what hits of a customer on api are judged by now.
func (n *node) target(t testing.TB, customer string) *model.Target {
	t.Helper()
	return planstest.Must[*model.Target](t)(n.catalog.Resolve(t.Context(), customer, "api", 0))
}

// meets is the limit that they meet.
func (n *node) meets(t testing.TB, customer string) int64 {
	t.Helper()
	return planstest.LimitOf(n.target(t, customer))
}

// knows reports whether there is such a customer for its hits.
func (n *node) knows(t testing.TB, customer string) bool {
	t.Helper()
	_, err := n.catalog.Resolve(t.Context(), customer, "api", 0)
	if err != nil && !errors.Is(err, plans.ErrUnknownCustomer) {
		t.Fatal(err)
	}
	return err == nil
}

// forgot reports whether its memory was ever thrown away whole.
func (n *node) forgot() bool { return n.log.Count("forgot everything") > 0 }

// A node that finds a gap in the changes says so: forgot is nothing without it.
func TestANodeSaysThatItForgot(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.NewDatabase(t), "")
	planstest.Populate(t, n.Store)
	n.meets(t, "acme")
	if n.forgot() {
		t.Fatal("it has nothing to forget")
	}
	if _, err := n.Pool().Exec(t.Context(), "DELETE FROM changes"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "a word in the log", n.forgot)
}
