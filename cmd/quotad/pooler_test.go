package main

import (
	"strings"
	"testing"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// A PgBouncer as it comes lends a session to each connection for as long as it lasts.
func TestPoolerInSessionMode(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	pooler := server.Pooler(map[string]string{"server_login_retry": "1"}) // how long it fails all after it failed one
	n := start(t, pooler.URL())
	n.do("GET", "/readyz", "").is(200).has("status", "ready")
	n.setUp(fixed("l", 1000))
	if counts := n.hammer(4, 150, hitOf("acme", "requests", "")); counts[200] != 600 {
		t.Errorf("answers by status: %v", counts)
	}
	n.do("POST", "/v1/hits", hitOf("acme", "requests", `,"id":"one"`)).is(200).has("limits.0.used", 601)
	n.do("GET", "/v1/customers/acme/quota", "").is(200)
	if said := n.log.String(); strings.Contains(said, "level=ERROR") || strings.Contains(said, "level=WARN") {
		t.Errorf("the log: %s", said)
	}
	if err := n.stop(); err != nil {
		t.Fatal(err)
	}
	// The server that it leads to is out of reach, and so is the database. The pooler says nothing then.
	n = startBrief(t, pooler.URL())
	n.hit(1).is(200) // a node lets in whom it knows
	server.Stop()
	testkit.Eventually(t, "a hit is let in without the server", func() bool {
		a := n.hit(1)
		return a.status == 200 && a.at("degraded") == true
	})
	server.Start()
	testkit.Eventually(t, "hits are charged again", func() bool { return n.hit(1).is(200).at("degraded") == nil })
}

// A pooler that lends a session for a transaction is told by name, whatever it does with few clients.
func TestTransactionPooler(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	for _, settings := range []map[string]string{
		{"pool_mode": "transaction"},
		{"pool_mode": "transaction", "server_round_robin": "1"},
		{"pool_mode": "transaction", "default_pool_size": "1"},
		{"pool_mode": "transaction", "default_pool_size": "2", "server_round_robin": "1"},
		{"pool_mode": "statement"},
	} {
		pooler := server.Pooler(settings)
		for _, command := range [][]string{{"serve", "--listen=127.0.0.1:0", "--start-timeout=5s"}, {"keys", "list"}} {
			code, _, errs := cli(t, nil, append(command, "--database-url="+pooler.URL())...)
			for _, text := range []string{"transaction pooler", "PgBouncer", "pool_mode = session", pooler.Address()} {
				if code != exitFailed || !strings.Contains(errs, text) {
					t.Errorf("%v %v: code %d, %q is not said: %s", settings, command, code, text, errs)
				}
			}
		}
	}
}
