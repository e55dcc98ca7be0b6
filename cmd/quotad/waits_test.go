package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// startingNode is a quotad that has not started yet.
type startingNode struct {
	testNode
	started chan *node
	ended   chan error
}

// begin runs quotad and does not wait until it serves.
func begin(t *testing.T, databaseURL string) *startingNode {
	t.Helper()
	address := freePort(t)
	s := settingsOf(t, "--listen="+address, "--database-url="+databaseURL, "--admin-key="+testAdminKey, "--start-timeout=1h")
	n := &startingNode{
		testNode: testNode{t: t, url: "http://" + address, key: testAdminKey, log: new(pgtest.Log), client: newClient()},
		started:  make(chan *node, 1), ended: make(chan error, 1),
	}
	s.stdout, s.stderr = n.log, n.log
	s.started = func(served *node) { n.started <- served }
	ctx, cancel := context.WithCancel(testkit.Context(t))
	go func() { n.ended <- run(ctx, *s) }()
	t.Cleanup(func() {
		n.client.CloseIdleConnections()
		cancel()
		if err := <-n.ended; err != nil {
			t.Errorf("%v\n%s", err, n.log)
		}
	})
	return n
}

// waits makes sure that the node waits, is not ready, and says why.
func (n *startingNode) waits(why string) {
	n.t.Helper()
	testkit.Eventually(n.t, "the log says what is waited for, and why", func() bool {
		said := n.log.String() // by two that do not wait for one another
		return strings.Contains(said, "waiting for the database") && strings.Contains(said, why)
	})
	for _, path := range []string{"/readyz", "/v1/hits"} {
		response, err := n.client.Get(n.url + path)
		if err != nil {
			n.t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != 503 {
			n.t.Errorf("%s answers %d", path, response.StatusCode)
		}
	}
}

// serves waits until the node serves.
func (n *startingNode) serves() {
	n.t.Helper()
	select {
	case n.node = <-n.started:
	case err := <-n.ended:
		n.ended <- nil
		n.t.Fatal(err)
	case <-time.After(testkit.Patience):
		n.t.Fatalf("not started: %s", n.log)
	}
}

// A standby is waited for until it is promoted.
func TestStartWaitsForWrites(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	server.Stop()
	pgdata := filepath.Join(server.DataDir(), "pgdata")
	info, err := os.Stat(pgdata)
	if err != nil {
		t.Fatal(err)
	}
	signal := filepath.Join(pgdata, "standby.signal")
	write(t, signal, "")
	owner := info.Sys().(*syscall.Stat_t)
	if err := os.Chown(signal, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
	server.Start()
	n := begin(t, server.URL())
	n.waits("takes no writes")
	execute(t, server.AdminURL(), "SELECT pg_promote()")
	n.serves()
	n.setUp(fixed("l", 10))
	n.hit(1).is(200)
}

// A server without a free connection is waited for: one that has none at all, and one that has too few for
// the sessions of lanes.
func TestStartWaitsForConnections(t *testing.T) {
	t.Parallel()
	for _, free := range []int{0, 3} {
		server := pgtest.Server(t, pgtest.WithSettings(map[string]string{"max_connections": "30", "superuser_reserved_connections": "3"}))
		var held []*pgx.Conn
		for range 27 - free {
			conn, err := postgres.Connect(testkit.Context(t), server.URL(), nil)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, conn)
		}
		n := begin(t, server.URL())
		n.waits("53300")
		for _, conn := range held {
			postgres.CloseConn(conn)
		}
		n.serves()
		n.setUp(fixed("l", 10))
		n.hit(1).is(200)
	}
}

// A node is not ready before its lanes have sessions that answered, though all else works.
func TestStartWaitsForTheSessionsOfLanes(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.NewDatabase(t)
	conn, err := postgres.Connect(testkit.Context(t), databaseURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.CloseConn(conn)
	if _, err := conn.Exec(t.Context(), `BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE receipts_1`); err != nil {
		t.Fatal(err)
	}
	n := begin(t, databaseURL)
	n.waits("SQLSTATE 55P03") // a lane's worker prepares statements on that table
	if _, err := conn.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	n.serves()
	n.setUp(fixed("l", 10))
	n.hit(1).is(200)
}

// When the time is up, the error says what was waited for.
func TestStartGivesUp(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	execute(t, server.AdminURL(), "ALTER DATABASE quotad SET default_transaction_read_only = on")
	code, _, errs := cli(t, nil, "serve", "--listen=127.0.0.1:0", "--start-timeout=5s", "--database-url="+server.URL())
	if code != exitFailed || !strings.Contains(errs, "takes no writes") || !strings.Contains(errs, "--start-timeout waits longer") {
		t.Errorf("code %d: %s", code, errs)
	}
}
