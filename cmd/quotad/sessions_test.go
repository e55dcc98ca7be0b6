package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// A node that the server has too few sessions for does not start, and says what to set.
func TestTooManyLanes(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, pgtest.WithSettings(map[string]string{"max_connections": "40", "superuser_reserved_connections": "4"}))
	serve := func(flags ...string) error {
		t.Helper()
		s := settingsOf(t, append([]string{"--listen=127.0.0.1:0", "--database-url=" + server.URL(), "--admin-key=" + testAdminKey}, flags...)...)
		s.stdout, s.stderr = io.Discard, io.Discard
		return run(testkit.Context(t), *s)
	}
	is := func(err error, says ...string) {
		t.Helper()
		for _, text := range says {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%v does not say %q", err, text)
			}
		}
	}
	// 36 sessions: 16 of the pools, 4 beside, and so 8 lanes.
	n := start(t, server.URL(), "--lanes=8")
	if err := n.stop(); err != nil {
		t.Fatal(err)
	}
	is(serve("--lanes=9"), "--lanes: this node needs 38 sessions", "max_connections is 40, of which 4 are reserved", "set --lanes to at most 8",
		"raise that bound to 38")
	execute(t, server.AdminURL(), "ALTER ROLE quotad CONNECTION LIMIT 25")
	is(serve("--lanes=4"), "this node needs 28 sessions", "the role quotad has CONNECTION LIMIT 25", "at most 2")
	execute(t, server.AdminURL(), "ALTER DATABASE quotad CONNECTION LIMIT 16")
	is(serve(), "this node needs 22 sessions", "the database quotad has CONNECTION LIMIT 16", "add pool_max_conns=5 to --database-url")
	small := fmt.Sprintf("--database-url=%s&pool_max_conns=5", server.URL())
	is(serve(small, "--lanes=2"), "this node needs 18 sessions", "at most 1")
}
