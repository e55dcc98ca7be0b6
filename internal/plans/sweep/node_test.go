package sweep

import (
	"context"
	"errors"
	"log/slog"
	"sync"
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
	n := &node{log: new(pgtest.Log)}
	log := slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	pool := planstest.NewPool(t, url)
	n.catalog = catalog.New(pool, catalog.Options{Monotonic: planstest.Monotonic, Now: planstest.WallClock, DefaultPlan: defaultPlan, Log: log})
	n.Store = store.New(pool, store.Options{Committed: n.catalog.Committed})
	n.sweeper = NewSweeper(n.Store, planstest.WallClock, log)
	return n
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
