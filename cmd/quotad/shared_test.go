package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

func TestWrittenTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"840h0m0s": "840h", "90m": "1h30m", "60s": "1m", "1h0m30s": "1h0m30s", "10s": "10s", "100m": "1h40m",
		"10h": "10h", "0s": "0s", "500ms": "500ms",
	} {
		d, err := time.ParseDuration(text)
		if got := writtenTime(d); err != nil || got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if back, err := time.ParseDuration(want); err != nil || back != d {
			t.Errorf("%s is not %s", want, d)
		}
	}
}

// What the first node has is what all have: one that is told something else stops, and one
// that is told nothing takes it.
func TestSettingsThatAllNodesShare(t *testing.T) {
	t.Parallel()
	database := pgtest.NewDatabase(t)
	env := map[string]string{"QUOTAD_DATABASE_URL": database}
	run := func(want int, says string, args ...string) {
		t.Helper()
		code, out, errs := cli(t, env, args...)
		if code != want || !strings.Contains(strings.Join(strings.Fields(out+errs), " "), says) {
			t.Errorf("quotad %s: code %d, not %d, or it does not say %q:\n%s%s", strings.Join(args, " "), code, want, says, out, errs)
		}
	}
	run(0, "SETTING VALUE anonymous-ttl 720h audit-retention 17520h close-delay 10s correction-time 1h default-plan none event-retention 840h id-retention 840h",
		"settings", "list")
	one := start(t, database, "--id-retention=960h", "--default-plan=free")
	run(0, "SETTING VALUE anonymous-ttl 720h audit-retention 17520h close-delay 10s correction-time 1h default-plan free event-retention 840h id-retention 960h",
		"settings", "list")
	for _, c := range []struct{ flag, inForce string }{
		{"--id-retention=48h", "960h"},
		{"--default-plan=other", "free"},
		{"--anonymous-ttl=1h", "720h"},
		{"--audit-retention=24h", "17520h"},
		{"--close-delay=0s", "10s"},
		{"--correction-time=720h", "1h"},
		{"--event-retention=48h", "840h"},
	} {
		name, value, _ := strings.Cut(strings.TrimPrefix(c.flag, "--"), "=")
		says := fmt.Sprintf("--%s: this node is told %s, and all nodes on the database %s have %s.", name, value, postgres.Redact(database), c.inForce)
		run(exitUsage, says, "serve", "--listen=127.0.0.1:0", c.flag)
		run(exitUsage, "quotad settings set "+name+" "+value, "serve", "--listen=127.0.0.1:0", c.flag)
	}
	two := start(t, database, "--id-retention=57600m") // 960h
	for _, n := range []*testNode{one, two} {
		n.do("POST", "/v1/hits", hitOf("x", "requests", "")).is(404)
		if !strings.Contains(string(n.do("POST", "/v1/hits", hitOf("x", "requests", "")).raw), "default plan free") {
			t.Error("a node has no default plan")
		}
	}
	run(exitFailed, "a quotad serves on this database", "settings", "set", "id-retention", "48h")
	if err := one.stop(); err != nil {
		t.Fatal(err)
	}
	run(exitFailed, "a quotad serves on this database", "settings", "set", "id-retention", "48h")
	if err := two.stop(); err != nil {
		t.Fatal(err)
	}
	sessionsEnd(t, database)
	run(0, "id-retention is 48h from now on", "settings", "set", "id-retention", "2880m")
	run(0, "default-plan is none from now on", "settings", "set", "default-plan", "")
	run(0, "SETTING VALUE anonymous-ttl 720h audit-retention 17520h close-delay 10s correction-time 1h default-plan none event-retention 840h id-retention 48h",
		"settings", "list")
	start(t, database, "--id-retention=48h").do("POST", "/v1/hits", hitOf("x", "requests", "")).is(404)
}

// holders are the sessions that say that a quotad serves, and what they do.
const holders = `
	SELECT coalesce(string_agg(concat_ws(' ', a.pid, a.state, a.wait_event, a.query), E'\n'), '')
	FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND a.datname = current_database()`

// sessionsEnd waits until PostgreSQL has ended the sessions of nodes that have stopped. A busy machine
// may take longer for that than settings set has patience.
func sessionsEnd(t *testing.T, database string) {
	t.Helper()
	testkit.Eventually(t, "the sessions of nodes that have stopped end", func() bool {
		left := pgtest.Query[string](t, database, holders)
		if left != "" {
			t.Log(left)
		}
		return left == ""
	})
}

// Of two nodes that start at once on a new database, told different values, one serves.
func TestFirstNodesAtOnce(t *testing.T) {
	t.Parallel()
	ctx, database := testkit.Context(t), pgtest.NewDatabase(t)
	pool, err := postgres.Open(ctx, database, postgres.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	failed := make(chan error, 2)
	for _, value := range []string{"48h", "49h"} {
		s := settingsOf(t, "--database-url="+database, "--id-retention="+value, "--anonymous-ttl=1h")
		go func() { failed <- s.agree(ctx, store.New(pool, store.Options{})) }()
	}
	one, two := <-failed, <-failed
	if (one == nil) == (two == nil) {
		t.Errorf("%v, %v", one, two)
	}
}

// An id is kept for as long as all nodes have agreed to, whatever a node would do by itself:
// a late retry is answered again, and charged once.
func TestALateRetryIsChargedOnce(t *testing.T) {
	t.Parallel()
	one := start(t, "", "--id-retention=9600h")
	one.setUp(fixed("l", 5))
	hit := `{"customer":"acme","meter":"requests","id":"order-1"}`
	one.do("POST", "/v1/hits", hit).is(200).has("replayed", false)
	// The turn is over by the usual 35 days, and not by 400. Three more would drop the id.
	const later = `UPDATE receipt_turn SET since = since - 60 * 86400 * 1000000::bigint RETURNING 1`
	for range 3 {
		query[int](t, one.databaseURL, later)
		lookAtTheTurn(t, one.databaseURL)
	}
	one.do("POST", "/v1/hits", hit).is(200).has("replayed", true)
	one.do("GET", "/v1/customers/acme/quota", "").is(200).has("limits.0.used", 1)
}

// lookAtTheTurn starts a node that is told nothing, and ends it when its Rotator has looked.
func lookAtTheTurn(t *testing.T, database string) {
	t.Helper()
	ctx := testkit.Context(t)
	conn, err := postgres.Connect(ctx, database, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, `LOCK TABLE receipt_turn`)
	}
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan *testNode, 1)
	go func() { started <- start(t, database) }() // it is ready when its worker could prepare what it asks the turn
	const looks = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'
		AND query ~ 'receipt_turn WHERE one AND since|UPDATE receipt_turn|TRUNCATE receipts' AND pid <> pg_backend_pid()`
	testkit.Eventually(t, "the node looks whose turn it is", func() bool { return query[int](t, database, looks) == 1 })
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it has looked", func() bool { return query[int](t, database, looks) == 0 })
	if err := (<-started).stop(); err != nil {
		t.Fatal(err)
	}
}
