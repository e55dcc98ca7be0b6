package main

import (
	"strings"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

func TestOutage(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	n := start(t, server.URL())
	n.setUp(fixed("l", 100))
	n.do("PUT", "/v1/plans/strict", planOf(fixed("a", 100), fixed("b", 100, `"on_outage":"deny"`))).is(201)
	n.do("PUT", "/v1/customers/strict", strings.Replace(onPlan, "basic", "strict", 1)).is(201)
	n.do("PUT", "/v1/customers/unseen", onPlan).is(201)
	strict := func() *answer { return n.do("POST", "/v1/hits", hitOf("strict", "requests", `,"cost":2`)) }
	n.hit(3).is(200)
	strict().is(200)
	n.do("GET", "/readyz", "").is(200).has("status", "ready")

	server.Stop()
	var a *answer
	testkit.Eventually(t, "a hit is let in without the database", func() bool {
		a = n.hit(5)
		if a.status == 503 { // one may have been on its way
			a.has("type", "/problems/outcome-unknown")
		}
		return a.status == 200
	})
	a.has("allowed", true).has("degraded", true).has("limits", "[]").has("retry_after_ms", 0).headerIs("RateLimit", "")
	strict().is(503).has("type", "/problems/database-unavailable").headerIs("Retry-After", "1")
	n.do("POST", "/v1/hits", hitOf("unseen", "requests", "")).is(503).headerIs("Retry-After", "1")
	n.do("GET", "/v1/authorize?meter=requests", "", "X-Quotad-Customer: acme").is(200).headerIs("X-Quotad-Reason", "")
	n.do("GET", "/v1/authorize?meter=requests", "", "X-Quotad-Customer: strict").is(429).headerIs("X-Quotad-Reason", "outage").headerIs("Retry-After", "1")
	n.do("GET", "/v1/authorize?meter=requests&deny_status=403", "", "X-Quotad-Customer: unseen").is(403).headerIs("X-Quotad-Reason", "outage")
	batch := n.do("POST", "/v1/hits/batch", `{"hits":[`+hitOf("acme", "requests", "")+`,`+hitOf("strict", "requests", "")+`]}`).is(200)
	batch.has("results.0.degraded", true).has("results.1.status", 503)
	n.do("GET", "/v1/customers/acme/quota", "").is(503).headerIs("Retry-After", "1")
	n.do("PUT", "/v1/meters/new", `{"unit":"x"}`).is(503)
	testkit.Eventually(t, "/readyz speaks of the outage", func() bool {
		return n.do("GET", "/readyz", "").is(200).at("status") == "degraded"
	})
	n.do("GET", "/livez", "").is(200)
	n.do("GET", "/metrics", "").is(200)
	began := time.Now()
	for range 20 {
		n.hit(1).is(200).has("degraded", true)
	}
	took := time.Since(began)
	if took > unhurried {
		t.Errorf("20 hits took %s in the outage: they waited as long as they may", took)
	}
	testkit.AtMost(t, "20 hits in the outage", took, 5*time.Second)

	server.Start()
	testkit.Eventually(t, "hits are charged again", func() bool {
		a = n.hit(1)
		if a.status == 429 { // so many were let in that the limit is used up, as the node counts without the database
			a.has("degraded", true)
			return false
		}
		return a.is(200).at("degraded") == nil
	})
	testkit.Eventually(t, "/readyz is ready again", func() bool {
		return n.do("GET", "/readyz", "").is(200).at("status") == "ready"
	})
	strict().is(200).has("limits.0.used", 4)
	// Of what was let in without the database nothing was charged.
	if used := n.hit(0).num("limits.0.used"); used != 4 {
		t.Errorf("used is %d: 3 before the outage and 1 after it were charged", used)
	}
}

func TestDatabaseKilledUnderLoad(t *testing.T) { databaseKilledUnderLoad(t, 2) }

// TestMoreDatabaseKilledUnderLoad kills the database again and again.
func TestMoreDatabaseKilledUnderLoad(t *testing.T) { databaseKilledUnderLoad(t, 4) }

// databaseKilledUnderLoad kills the database in the middle of load, and once more while hits wait for a lock: what was
// acknowledged is charged, what is charged was acknowledged or unknown, and limits hold.
func databaseKilledUnderLoad(t *testing.T, blows int) {
	t.Helper()
	t.Parallel()
	server := pgtest.Server(t)
	n := start(t, server.URL())
	wide, tight := &tally{customer: "acme", limit: 100_000_000}, &tally{customer: "tight", limit: 700}
	n.setUp(fixed("l", int(wide.limit), `"on_outage":"deny"`))
	n.do("PUT", "/v1/plans/tight", planOf(fixed("l", int(tight.limit), `"on_outage":"deny"`))).is(201)
	n.do("PUT", "/v1/customers/tight", strings.Replace(onPlan, "basic", "tight", 1)).is(201)
	for blow := range blows + 1 {
		stop := make(chan struct{})
		wait := n.fire(16, stop, wide, tight)
		admitted := func() {
			enough := wide.acknowledged.Load() + 300
			testkit.Eventually(t, "hits are admitted", func() bool { return wide.acknowledged.Load() > enough })
		}
		admitted()
		last := blow == blows
		if last { // others may catch no hit on its way
			stopsHits(t, server)
		}
		if blow%2 == 0 {
			server.Kill()
		} else {
			server.Crash()
		}
		admitted()
		close(stop)
		wait()
		if unknown := n.settle(wide, tight); last && unknown == 0 {
			t.Error("hits were on their way when the database was killed, and no outcome is unknown")
		}
	}
	if code, out, _ := cli(t, map[string]string{"QUOTAD_DATABASE_URL": server.URL()}, "reconcile"); code != 0 {
		t.Error(out)
	}
}

// stopsHits returns when hits are on their way that a lock keeps from their end, until the server is killed.
func stopsHits(t *testing.T, server *pgtest.Instance) {
	t.Helper()
	conn, err := postgres.Connect(testkit.Context(t), server.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { postgres.CloseConn(conn) })
	if _, err := conn.Exec(testkit.Context(t), `BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE counters`); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "a hit waits for the lock", func() bool {
		return query[int64](t, server.URL(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
	})
}

// A database that is there and refuses the node lets nobody in, and is said aloud.
func TestDatabaseThatRefuses(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(fixed("l", 100)) // on_outage: allow
	n.hit(3).is(200)
	execute(t, n.databaseURL, "REVOKE UPDATE ON counters FROM CURRENT_USER")
	for range 5 {
		n.hit(1).is(503).has("type", "/problems/database-refuses").headerIs("Retry-After", "1")
	}
	n.do("GET", "/readyz", "").is(200).has("status", "degraded").has("reason", "the database does not serve this node (SQLSTATE 42501): see its log")
	if metrics := string(n.do("GET", "/metrics", "").is(200).raw); !strings.Contains(metrics, "quotad_degraded 1\n") ||
		!strings.Contains(metrics, `quotad_hits_total{outcome="database-refuses"} 5`) {
		t.Errorf("the metrics do not tell:\n%s", metrics)
	}
	if said := strings.Count(n.log.String(), "hits cannot be charged"); said != 1 {
		t.Errorf("the log says so %d times", said)
	}
	execute(t, n.databaseURL, "GRANT UPDATE ON counters TO CURRENT_USER")
	testkit.Eventually(t, "the node is ready again", func() bool { return n.do("GET", "/readyz", "").is(200).at("status") == "ready" })
	n.hit(1).is(200).has("limits.0.used", 4)
}

func execute(t testing.TB, databaseURL, sql string, args ...any) {
	t.Helper()
	conn, err := postgres.Connect(testkit.Context(t), databaseURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(testkit.Context(t)) }()
	if _, err := conn.Exec(testkit.Context(t), sql, args...); err != nil {
		t.Fatal(err)
	}
}
