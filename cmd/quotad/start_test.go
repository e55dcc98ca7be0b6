package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/postgres/embedded"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// freePort is an address on which nobody listens.
func freePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestStartWithoutDatabase(t *testing.T) {
	t.Parallel()
	code, _, errs := cli(t, nil, "serve", "--listen=127.0.0.1:0", "--start-timeout=300ms",
		"--database-url=postgres://quotad:hunter2@"+freePort(t)+"/quotad")
	if code != 1 || !strings.Contains(errs, "--database-url") || !strings.Contains(errs, "--start-timeout") || strings.Contains(errs, "hunter2") {
		t.Errorf("code %d: %s", code, errs)
	}
	// A command gives up at once, says where to look, and says once why.
	code, _, errs = cli(t, nil, "keys", "list", "--database-url=postgres://quotad@"+freePort(t)+"/quotad")
	if code != 1 || !strings.Contains(errs, "Check --database-url") || strings.Count(errs, "refused") != 1 {
		t.Errorf("code %d: %s", code, errs)
	}
	// What a server says no to is not waited for.
	server := pgtest.Server(t)
	nowhere := strings.Replace(server.URL(), "/quotad?", "/nowhere?", 1)
	if code, _, errs = cli(t, nil, "serve", "--listen=127.0.0.1:0", "--database-url="+nowhere); code != 1 || !strings.Contains(errs, "createdb") {
		t.Errorf("code %d: %s", code, errs)
	}
	// A used port is said before anything else is tried.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	if code, _, errs = cli(t, nil, "serve", "--listen="+address, "--data-dir=/proc/nothing"); code != 1 || !strings.Contains(errs, address+" is in use") {
		t.Errorf("code %d: %s", code, errs)
	}
}

// A data directory that cannot be one is said to be chosen again, and once.
func TestDataDirThatIsNone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "data"), "/proc/nothing"} {
		code, _, errs := cli(t, nil, "serve", "--listen=127.0.0.1:0", "--data-dir="+dir)
		if code != exitFailed || strings.Count(errs, "choose another with --data-dir (QUOTAD_DATA_DIR)") != 1 {
			t.Errorf("%s: code %d: %s", dir, code, errs)
		}
	}
}

func TestStartWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	server.Stop()
	address := freePort(t)
	s := settingsOf(t, "--listen="+address, "--database-url="+server.URL(), "--admin-key="+testAdminKey, "--start-timeout=1h")
	var log pgtest.Log
	s.stdout, s.stderr = &log, &log
	started, ended := make(chan *node, 1), make(chan error, 1)
	s.started = func(n *node) { started <- n }
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	go func() { ended <- run(ctx, *s) }()

	n := &testNode{t: t, url: "http://" + address, client: newClient()}
	defer n.client.CloseIdleConnections()
	get := func(path string) int {
		response, err := n.client.Get(n.url + path)
		if err != nil {
			return 0
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	testkit.Eventually(t, "/livez answers while quotad waits", func() bool { return get("/livez") == 200 })
	if ready, hits := get("/readyz"), get("/v1/hits"); ready != 503 || hits != 503 {
		t.Errorf("/readyz %d, /v1/hits %d", ready, hits)
	}
	testkit.Eventually(t, "the log says what is waited for", func() bool { return strings.Contains(log.String(), "waiting for the database") })
	server.Start()
	select {
	case <-started:
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(testkit.Patience):
		t.Fatal("not started")
	}
	n.do("GET", "/readyz", "").is(200).has("status", "ready")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), testAdminKey) {
		t.Error("the admin key is in the log")
	}
}

// A database that is slow at the start is waited for, as one out of reach is.
func TestStartWaitsForASlowDatabase(t *testing.T) {
	t.Parallel()
	one := start(t, "") // writes the admin key
	if err := one.stop(); err != nil {
		t.Fatal(err)
	}
	conn, err := postgres.Connect(testkit.Context(t), one.databaseURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE changes`); err != nil {
		t.Fatal(err)
	}
	two := begin(t, one.databaseURL)
	two.waits("cannot ask the database for changes") // an attempt is over
	if err := conn.Close(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	two.serves()
	two.do("GET", "/readyz", "").is(200)
}

// Stopped before it was done starting is no failure.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	var log pgtest.Log
	p := program{stdout: &log, stderr: &log, lookupEnv: noEnv}
	code := make(chan int)
	go func() {
		code <- p.main(ctx, []string{"serve", "--listen=127.0.0.1:0", "--database-url=postgres://quotad@" + freePort(t) + "/quotad"})
	}()
	testkit.Eventually(t, "it waits", func() bool { return strings.Contains(log.String(), "waiting for the database") })
	cancel(errStopped)
	if c := <-code; c != 0 {
		t.Errorf("code %d: %s", c, log.String())
	}
}

func TestFirstAdminKey(t *testing.T) {
	t.Parallel()
	database := pgtest.NewDatabase(t)
	first := start(t, database, "--admin-key=")
	_, rest, ok := strings.Cut(first.out.String(), "shown only this once")
	if !ok {
		t.Fatalf("no key is printed:\n%s", first.out)
	}
	secret := strings.Fields(rest[strings.Index(rest, "\n"):])[0]
	first.as(secret).do("GET", "/v1/keys", "").is(200)
	if strings.Contains(first.log.String(), secret) {
		t.Error("the key is in the log")
	}
	// A second start prints none, and a key that is given is made beside it.
	if second := start(t, database, "--admin-key="); strings.Contains(second.out.String(), "Admin key") {
		t.Errorf("the second start prints: %s", second.out)
	}
	third := start(t, database)
	third.do("GET", "/v1/keys", "").is(200)
	third.as(secret).do("GET", "/v1/keys", "").is(200)
	// One that was revoked does not come back by the setting, nor does one that is too short.
	id := query[string](t, database, `SELECT id FROM keys WHERE hash = sha256($1::bytea)`, []byte(testAdminKey))
	third.as(secret).do("DELETE", "/v1/keys/"+id, "").is(204)
	for _, key := range []string{testAdminKey, "too-short"} {
		code, _, errs := cli(t, nil, "serve", "--listen=127.0.0.1:0", "--database-url="+database, "--admin-key="+key)
		if code != exitUsage || !strings.Contains(errs, "--admin-key") || strings.Contains(errs, key) {
			t.Errorf("%s: code %d: %s", key, code, errs)
		}
	}
}

// Nor is it while the embedded server's data are being made; the next start makes them.
func TestStopWhileMakingTheData(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var log pgtest.Log
	p := program{stdout: &log, stderr: &log, lookupEnv: noEnv}
	code := make(chan int, 1)
	go func() { code <- p.main(ctx, []string{"serve", "--listen=127.0.0.1:0", "--data-dir=" + dir}) }()
	testkit.Eventually(t, "initdb is under way", func() bool {
		partial, _ := filepath.Glob(filepath.Join(dir, "pgdata.init*"))
		return len(partial) > 0
	})
	cancel(errStopped)
	if c := <-code; c != 0 || log.String() != "" {
		t.Errorf("code %d: %s", c, log.String())
	}
	if code, out, errs := cli(t, nil, "migrate", "up", "--data-dir="+dir); code != 0 {
		t.Errorf("afterwards: code %d: %s%s", code, out, errs)
	}
}

// A server that keeps dying ends quotad with an error, and nothing waits for it.
func TestEmbeddedServerGone(t *testing.T) {
	t.Parallel()
	dir := pgtest.DataDir(t)
	s := settingsOf(t, "--listen=127.0.0.1:0", "--data-dir="+dir, "--admin-key="+testAdminKey)
	var log pgtest.Log
	s.stdout, s.stderr = &log, &log
	s.embedded = func(o *embedded.Options) { o.NoSync, o.GiveUpAfter = true, 300*time.Millisecond }
	started, ended := make(chan *node, 1), make(chan error, 1)
	s.started = func(n *node) { started <- n }
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	go func() { ended <- run(ctx, *s) }()
	select {
	case <-started:
	case err := <-ended:
		t.Fatal(err)
	}
	p := process{testNode: &testNode{t: t}, dir: dir}
	server := p.postmaster()
	// Without this file no server starts.
	if err := os.Remove(filepath.Join(dir, "pgdata", "global", "pg_control")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(server, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "embedded PostgreSQL is gone for good") {
			t.Errorf("it ended with: %v", err)
		}
	case <-time.After(testkit.Patience):
		t.Errorf("it has not ended:\n%s", log.String())
		cancel()
		t.Error(<-ended)
	}
}
