package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// troubleLasts is the time after which a node forgets a trouble that no session meets again. It equals the constant of
// internal/quota/session.
const troubleLasts = 5 * time.Second

// A database that is read only is its own reason, and lets nobody in.
func TestReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	n := start(t, server.URL())
	n.setUp(fixed("l", 100)) // on_outage: allow
	n.hit(3).is(200)
	set := func(value string) {
		pgtest.Exec(t, server.AdminURL(), "ALTER SYSTEM SET default_transaction_read_only = "+value, "SELECT pg_reload_conf()")
	}
	set("on")
	used := 4 // with the hit of the end; sessions learn of the setting a moment after it is made
	testkit.Eventually(t, "hits are refused", func() bool {
		if n.hit(1).status != 200 {
			return true
		}
		used++
		return false
	})
	for id := range 12 {
		n.hit(1).is(503).has("type", "/problems/database-read-only").headerIs("Retry-After", "1")
		n.do("POST", "/v1/hits", hitOf("acme", "requests", fmt.Sprintf(`,"id":"id-%d"`, id))).is(503).has("type", "/problems/database-read-only")
		n.do("PUT", "/v1/meters/new", `{"unit":"x"}`).is(503).has("type", "/problems/database-read-only")
		n.do("GET", "/readyz", "").is(200).has("status", "degraded").has("reason", "the database is read only (SQLSTATE 25006)")
		n.skip(troubleLasts / 10)
	}
	// The node finds the trouble again without a hit, too.
	n.skip(troubleLasts + time.Second)
	testkit.Eventually(t, "the node reports the reason", func() bool {
		return n.do("GET", "/readyz", "").is(200).at("reason") == "the database is read only (SQLSTATE 25006)"
	})
	if log := n.log.String(); strings.Contains(log, "cannot be reached") || n.log.Count(`msg="hits cannot be charged" sqlstate=25006`) != 1 {
		t.Error("the log does not say it, or says it more than once a minute")
	}
	if lines := n.log.Count("\n"); lines > 25 { // five of the start
		t.Errorf("%d lines", lines)
	}
	set("off")
	testkit.Eventually(t, "the node is ready again", func() bool { return n.do("GET", "/readyz", "").is(200).at("status") == "ready" })
	n.hit(1).is(200).has("limits.0.used", used)
}

// A cause that fails hits and nothing else is told: in the log with its SQLSTATE, once a minute, and
// as the reason of /readyz, while all polls work. A 500 is a warning with the request's id.
func TestCausesThatFailHits(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(fixed("l", 100))
	n.hit(1).is(200)
	execute(t, n.databaseURL, `CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'row % is broken', NEW.version; END$$`)
	execute(t, n.databaseURL, `CREATE TRIGGER broken BEFORE UPDATE ON counters FOR EACH ROW EXECUTE FUNCTION broken()`)
	for i := range 40 {
		n.do("POST", "/v1/hits", hitOf("acme", "requests", ""), fmt.Sprintf("X-Request-Id: broken-%d", i)).is(500).headerIs("X-Request-Id",
			fmt.Sprintf("broken-%d", i))
	}
	n.do("GET", "/readyz", "").is(200).has("status", "degraded").has("reason", "the database refuses a statement (SQLSTATE P0001): see this node's log")
	testkit.Eventually(t, "metrics count the time by its reason", func() bool {
		all := n.scrape()
		return all[`quotad_degraded_seconds_total{reason="refused"}`] != "0" && all[`quotad_degraded_seconds_total{reason="slow"}`] == "0"
	})
	if n.log.Count(`level=ERROR msg="hits cannot be charged" sqlstate=P0001`) != 1 {
		t.Error("the log does not say it, or says it more than once a minute")
	}
	if n.log.Count(`level=WARN msg="request failed" request_id=broken-0 method=POST path=/v1/hits sqlstate=P0001`) != 1 ||
		n.log.Count("request failed") > mostAgain {
		t.Error("a 500 is no warning with its request's id, or too many are")
	}
	if lines := n.log.Count("\n"); lines > 25 { // five of the start
		t.Errorf("%d lines", lines)
	}
	execute(t, n.databaseURL, `DROP TRIGGER broken ON counters`)
	n.hit(1).is(200).has("limits.0.used", 2)
	testkit.Eventually(t, "the node is ready again", func() bool { return n.do("GET", "/readyz", "").is(200).at("status") == "ready" })
}

// All answers name their request, those of the fast path, too.
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--log-level=debug")
	n.setUp(fixed("l", 2))
	seen := map[string]bool{}
	for _, path := range []string{"/livez", "/readyz", "/nowhere", "/v1/customers/acme", "/v1/customers/nobody", "/admin", "/portal/nothing", "/docs"} {
		once := &rawClient{address: strings.TrimPrefix(n.url, "http://"), request: "GET " + path + " HTTP/1.1\r\nHost: quotad\r\nX-Request-Id: mine-1\r\n\r\n"}
		if status, err := once.hit(); err != nil || once.header.Get("X-Request-Id") != "mine-1" {
			t.Errorf("%s: %d, %v, answered %q", path, status, err, once.header.Get("X-Request-Id"))
		}
		once.request = "GET " + path + " HTTP/1.1\r\nHost: quotad\r\n\r\n"
		if status, err := once.hit(); err != nil {
			t.Errorf("%s: %d, %v", path, status, err)
		}
		once.close()
		id := once.header.Get("X-Request-Id")
		if !strings.HasPrefix(id, "req_") || seen[id] {
			t.Errorf("%s has the id %q", path, id)
		}
		seen[id] = true
	}
	repeating := &rawClient{address: strings.TrimPrefix(n.url, "http://")}
	defer repeating.close()
	for i, want := range []int{200, 200, 429, 429} { // the first is net/http's, others the fast path's
		id := fmt.Sprintf("hit-%d", i)
		repeating.request = strings.Replace(rawHit(), "Host: quotad\r\n", "Host: quotad\r\nX-Request-Id: "+id+"\r\n", 1)
		if status, err := repeating.hit(); err != nil || status != want || repeating.header.Get("X-Request-Id") != id {
			t.Errorf("%s: %d, %v, answered %q", id, status, err, repeating.header.Get("X-Request-Id"))
		}
		if n.log.Count("msg=request request_id="+id+" method=POST") != 1 {
			t.Errorf("%s is not in the log", id)
		}
	}
	plain := &rawClient{address: repeating.address, request: rawHit()}
	defer plain.close()
	for range 4 {
		if _, err := plain.hit(); err != nil {
			t.Fatal(err)
		}
		id := plain.header.Get("X-Request-Id")
		if !strings.HasPrefix(id, "req_") || seen[id] {
			t.Errorf("a hit has the id %q", id)
		}
		seen[id] = true
	}
}

// A process without file descriptors says so, in few lines, and takes connections again.
func testNoDescriptors(t *testing.T) {
	const most = 64
	limited := filepath.Join(t.TempDir(), "limited")
	script := fmt.Sprintf("#!/bin/sh\nulimit -n %d\nexec %s \"$@\"\n", most, testkit.Program(t))
	if err := os.WriteFile(limited, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	p := launchProgram(t, limited, nil, dataDir(t), "--database-url="+pgtest.NewDatabase(t), "--admin-key="+testAdminKey)
	p.key = testAdminKey
	before := p.stderr.Count("\n")
	var open []net.Conn
	for range 2 * most {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	testkit.Eventually(t, "the log says it", func() bool {
		return p.stderr.Count(`level=WARN msg="connections cannot be accepted; it is tried again"`) > 0 && p.stderr.Count("too many open files") > 0
	})
	time.Sleep(4 * time.Second)
	if lines := p.stderr.Count("\n") - before; lines > 20 {
		t.Errorf("%d lines:\n%s", lines, p.stderr.String())
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	testkit.Eventually(t, "it answers again", func() bool {
		a, err := p.try("GET", "/livez", "")
		return err == nil && a.status == 200
	})
}
