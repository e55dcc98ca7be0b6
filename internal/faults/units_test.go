package faults

import (
	"math/rand/v2"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// TestEveryUnit has clients do operations of all kinds on three nodes, while connections
// break on both sides of quotad, quotad is killed and PostgreSQL crashes. In the end
// everything used, reserved and booked is what the clients were told, to the unit.
func TestEveryUnit(t *testing.T) {
	everyUnit(t, sized(800, 1500, 100_000), sized(1, 1, 50), sized(0, 1, 20))
}

// TestMoreEveryUnit does the rest of the operations, by another seed.
func TestMoreEveryUnit(t *testing.T) { everyUnit(t, 2500, 2, 1) }

// everyUnit does so many operations, kills quotad so many times and crashes PostgreSQL so many times.
func everyUnit(t *testing.T, operations, kills, crashes int) {
	t.Helper()
	seed := testkit.Seed(t)
	server := pgtest.Server(t)
	r := &run{
		seed: seed, clients: 16, operations: operations, ids: true, duplicates: 0.08,
		cluster: newCluster(t, seed, server.URL(), 3),
	}
	watch := &deadlocks{url: server.URL()}
	random := rand.New(rand.NewPCG(seed, 0x57121ce))
	var strikes []strike
	fall := func(do func()) {
		strikes = append(strikes, strike{r.operations/20 + random.IntN(r.operations*9/10), do})
	}
	for range kills {
		fall(func() { r.cluster.strike(random.IntN(len(r.cluster.nodes))) })
	}
	begun := time.Now()
	for range crashes {
		fall(func() {
			if time.Since(begun) > supervised {
				server.Restart()
				begun = time.Now()
			}
			watch.read(t) // a crash forgets them
			server.Crash()
			server.WaitReady()
		})
	}
	r.cluster.begin(0.06, 0.01)
	r.work(t, strikes)
	r.compare(t, server.URL(), true)

	// Every reservation that is still open expires, without anybody's doing, and is
	// committed late.
	r.advance(t)
	show(t, r.differences(t, false))
	r.cluster.begin(0.06, 0.01)
	for _, c := range r.members {
		if err := c.commitLate(); err != nil {
			t.Fatal(err)
		}
	}
	r.compare(t, server.URL(), false)
	if watch.read(t); watch.seen > 0 {
		t.Errorf("%d deadlocks", watch.seen)
	}
	r.report(t)
}

// supervised is for how long the same supervisor is let to start PostgreSQL again and
// again: one that dies all the time is given up.
const supervised = time.Minute

// compare ends all faults, and holds everything against the ledger. stands: no time has
// passed.
func (r *run) compare(t *testing.T, databaseURL string, stands bool) {
	t.Helper()
	r.cluster.rest()
	quiet(t, databaseURL)
	r.settle(t)
	show(t, r.passed())
	show(t, r.differences(t, stands))
	reconciled(t, r.cluster)
}

// advance sets the customers' clock, and waits until every node knows.
func (r *run) advance(t *testing.T) {
	t.Helper()
	write(t, r.cluster.client, request{http.MethodPut, "/v1/test-clocks/still", `{"now":"` + later + `"}`, ""}, "http://"+r.cluster.nodes[0].front.addr())
	for n := range r.cluster.nodes {
		testkit.Eventually(t, "a node knows the clock", func() bool {
			a, err := r.cluster.send(quotaOf(0, ""), n)
			return err == nil && a.At == later
		})
	}
	r.ledger.expire()
}

// quiet waits until the server works for nobody but the caller.
func quiet(t testing.TB, databaseURL string) {
	t.Helper()
	ctx := testkit.Context(t)
	conn, err := postgres.Connect(ctx, databaseURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	testkit.Eventually(t, "nothing is under way in PostgreSQL", func() bool {
		var busy int
		err := conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' AND backend_type = 'client backend'`).Scan(&busy)
		return err == nil && busy == 0
	})
}

// reconciled runs `quotad reconcile`.
func reconciled(t testing.TB, c *cluster) {
	t.Helper()
	cmd := exec.CommandContext(testkit.Bounded(t), c.binary, "reconcile", "--database-url="+c.url)
	cmd.Env = cleanEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("quotad reconcile: %v\n%s", err, out)
	}
}

// deadlocks adds up what PostgreSQL counts of them, which a crash forgets.
type deadlocks struct {
	url  string
	seen int64
}

func (d *deadlocks) read(t testing.TB) {
	t.Helper()
	ctx := testkit.Context(t)
	conn, err := postgres.Connect(ctx, d.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var n int64
	if err := conn.QueryRow(ctx, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n); err != nil {
		t.Fatal(err)
	}
	d.seen += n
}
