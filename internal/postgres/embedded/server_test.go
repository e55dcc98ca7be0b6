package embedded_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"quotad/internal/postgres"
	"quotad/internal/postgres/embedded"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

const systemID = "SELECT system_identifier FROM pg_control_system()"

func TestSecondStartReusesTheCluster(t *testing.T) {
	t.Parallel()
	dir := pgtest.Dir(t)
	e := start(t, options(dir))
	id, databaseURL := pgtest.Query[int64](t, e.AdminURL(), systemID), e.URL()
	pgtest.Exec(t, e.URL(), "CREATE TABLE kept AS SELECT 42 AS n")
	stop(t, e)
	stop(t, e) // again does no harm
	if e.Err() != nil || e.PID() != 0 {
		t.Errorf("after Stop: Err %v, PID %d", e.Err(), e.PID())
	}

	e = start(t, options(dir))
	if got := pgtest.Query[int64](t, e.AdminURL(), systemID); got != id {
		t.Errorf("the cluster was made again: %d, was %d", got, id)
	}
	if got := pgtest.Query[int](t, e.URL(), "SELECT n FROM kept"); got != 42 {
		t.Errorf("n = %d", got)
	}
	if e.URL() != databaseURL {
		t.Errorf("the URL changed from %s to %s", databaseURL, e.URL())
	}
}

// socketDir is where the socket of a URL lies.
func socketDir(t *testing.T, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("host")
}

func TestServerIsPrivateAndDurable(t *testing.T) {
	t.Parallel()
	opts := options(pgtest.Dir(t))
	opts.Settings["listen_addresses"] = "*" // not the caller's to say
	opts.Settings["work_mem"] = "7MB"
	if err := os.WriteFile(filepath.Join(opts.DataDir, "custom.conf"), []byte("log_lock_waits = on\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	e := start(t, opts)
	for name, want := range map[string]string{
		"listen_addresses": "", "unix_socket_permissions": "0700", "data_checksums": "on",
		"server_encoding": "UTF8", "lc_collate": "C", "TimeZone": "UTC", "jit": "off",
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
		"work_mem": "7MB", "log_lock_waits": "on", "max_connections": "100",
	} {
		var got string
		if name == "lc_collate" { // no setting any more in 16
			got = pgtest.Query[string](t, e.URL(), "SELECT datcollate FROM pg_database WHERE datname = current_database()")
		} else {
			got = pgtest.Query[string](t, e.URL(), "SELECT current_setting($1)", name)
		}
		if got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	info, err := os.Stat(socketDir(t, e.URL()))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's directory has mode %v", info.Mode())
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner == 0 {
		t.Error("the server runs as root")
	}
	if os.Geteuid() == 0 { // another user can be had
		cmd := exec.Command("ls", socketDir(t, e.URL()))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
		cmd.Dir = "/"
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("another user can look into the socket's directory: %s", out)
		}
	}
}

func TestSecondQuotadIsRefused(t *testing.T) {
	t.Parallel()
	dir := pgtest.Dir(t)
	q := startQuotad(t, dir, nil)
	pid, databaseURL := q.ready(t)

	_, err := embedded.Start(testkit.Context(t), options(dir))
	if !errors.Is(err, embedded.ErrDataDirInUse) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{dir, strconv.Itoa(q.cmd.Process.Pid)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
	if gone(pid) || pgtest.Query[int](t, databaseURL, "SELECT 1") != 1 {
		t.Error("the first one was disturbed")
	}
	q.stdin.Close()
	if got := q.line(t); got != "stopped" {
		t.Errorf("the helper said %q", got)
	}
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	base := pgtest.Dir(t)
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, strings.Repeat("long/", 30), "end")
	// A killed quotad leaves its socket's directory; the next one clears it.
	q := startQuotad(t, dir, nil) // which makes what is missing on the way, too
	_, killed := q.ready(t)
	q.kill()
	e := start(t, options(dir))
	if pgtest.Query[int](t, e.URL(), "SELECT 1") != 1 {
		t.Fatal("no answer")
	}
	if _, err := os.Stat(socketDir(t, killed)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the killed quotad's socket directory is still there: %v", err)
	}
	info, err := os.Stat(socketDir(t, e.URL()))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's directory: %v, %v", info, err)
	}
	stop(t, e)
	if _, err := os.Stat(socketDir(t, e.URL())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's directory outlives the server: %v", err)
	}
}

func TestUnreachableDataDir(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.MkdirAll(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "data")
	e, err := embedded.Start(testkit.Context(t), options(dir))
	if os.Geteuid() != 0 {
		// Only root's server runs as another user.
		if err != nil {
			t.Fatal(err)
		}
		stop(t, e)
		return
	}
	if !errors.Is(err, embedded.ErrUnreachableDataDir) {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), embedded.DefaultDataDir()) {
		t.Errorf("the error names no directory to use instead: %v", err)
	}
}

func TestDataDirWithForeignFilesIsNotOpened(t *testing.T) {
	dir := pgtest.Dir(t)
	for _, make := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, "secret"), nil, 0o644) },
		func() error { return os.Mkdir(filepath.Join(dir, "pgdata"), 0o700) }, // or it is refused
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
	}
	e, err := embedded.Start(testkit.Context(t), options(dir))
	if os.Geteuid() != 0 {
		if err != nil {
			t.Fatal(err)
		}
		stop(t, e)
		return
	}
	if !errors.Is(err, embedded.ErrUnreachableDataDir) {
		t.Errorf("got %v", err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory was opened: %v, %v", info.Mode(), err)
	}
}

// A directory of somebody else's is refused before anything is written to it; one with
// files of quotad's, its caller's and its operator's is not.
func TestForeignDataDirIsRefused(t *testing.T) {
	dir := pgtest.Dir(t)
	opts := options(dir)
	opts.OwnFiles = []string{"mine"}
	for _, name := range []string{"mine", "custom.conf", "lost+found", "postgresql.conf", "theirs"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("# theirs"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := embedded.Start(testkit.Context(t), opts)
	if err == nil || !strings.Contains(err.Error(), "not empty and not quotad's") || !strings.Contains(err.Error(), "theirs") ||
		!strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(dir)
	text, err2 := os.ReadFile(filepath.Join(dir, "postgresql.conf"))
	if err := errors.Join(err, err2); err != nil || len(entries) != 5 || string(text) != "# theirs" {
		t.Errorf("the directory was written to: %v, %q, %v", entries, text, err)
	}
	if err := os.Remove(filepath.Join(dir, "theirs")); err != nil {
		t.Fatal(err)
	}
	opts.DataDir += "/file/below"
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err = embedded.Start(testkit.Context(t), opts); err == nil || !strings.Contains(err.Error(), "QUOTAD_DATA_DIR") {
		t.Errorf("below a file: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "file")); err != nil {
		t.Fatal(err)
	}
	opts.DataDir = dir
	stop(t, start(t, opts))
}

func TestWrongDataDirs(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		sentinel   error
		want       string
	}{
		"programs of that version are missing": {"pgdata/PG_VERSION", "17\n", embedded.ErrNoPrograms, "postgresql-17"},
		"too old":                              {"pgdata/PG_VERSION", "12\n", nil, "restore it into a new data directory"},
		"no version":                           {"pgdata/PG_VERSION", "", nil, "restore it into a new data directory"},
		"no cluster":                           {"pgdata/precious", "x", nil, "move it away"},
		"another server's":                     {"PG_VERSION", "15\n", nil, "--database-url"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := pgtest.Dir(t)
			if err := os.MkdirAll(filepath.Join(dir, "pgdata"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			if os.Geteuid() == 0 && strings.HasPrefix(c.file, "pgdata/") {
				if err := os.Chown(filepath.Join(dir, "pgdata"), 65534, 65534); err != nil {
					t.Fatal(err)
				}
			}
			_, err := embedded.Start(testkit.Context(t), options(dir))
			if err == nil || (c.sentinel != nil && !errors.Is(err, c.sentinel)) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if _, err := os.Stat(filepath.Join(dir, c.file)); err != nil {
				t.Errorf("what was there is gone: %v", err)
			}
		})
	}
}

func TestUnprivilegedQuotad(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		e := start(t, options(pgtest.Dir(t))) // this very process is unprivileged
		stop(t, e)
		return
	}
	// The test binary lies where only root can run it: copy it.
	base := pgtest.Dir(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, dir := filepath.Join(base, "quotad.test"), filepath.Join(base, "data")
	if err := errors.Join(os.Chmod(base, 0o755), os.Mkdir(dir, 0o700), os.Chown(dir, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	// Another process writes the copy. A child that a parallel test forks would inherit our
	// descriptor for writing, and the kernel runs no file that is open for writing (ETXTBSY).
	if out, err := exec.CommandContext(t.Context(), "install", "-m", "755", exe, bin).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	q := startQuotad(t, dir, func(cmd *exec.Cmd) {
		cmd.Path, cmd.Dir = bin, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	})
	q.ready(t)
	q.stdin.Close()
	if got := q.line(t); got != "stopped" {
		t.Errorf("the helper said %q", got)
	}
}

func TestStopPastItsDeadline(t *testing.T) {
	t.Parallel()
	dir := pgtest.Dir(t)
	e := start(t, options(dir))
	pgtest.Exec(t, e.URL(), "CREATE TABLE kept AS SELECT 1 AS n")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	e = start(t, options(dir))
	if pgtest.Query[int](t, e.URL(), "SELECT n FROM kept") != 1 {
		t.Error("an immediate stop lost a commit")
	}
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := pgtest.Dir(t)
	if _, err := embedded.Start(ctx, options(dir)); err == nil {
		t.Fatal("started under a context that was over")
	}
	start(t, options(dir)) // and left nothing in the way
}

// An ERROR about what the machine lacks is in quotad's log, and one about a statement is not.
func TestServersErrorsInTheLog(t *testing.T) {
	t.Parallel()
	log, opts := new(pgtest.Log), options(pgtest.Dir(t))
	opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	e := start(t, opts)
	ctx := testkit.Context(t)
	conn, err := postgres.Connect(ctx, e.AdminURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.CloseConn(conn)
	if _, err := conn.Exec(ctx, "SELECT 1 / 0"); err == nil {
		t.Error("a wrong statement was done")
	}
	if _, err := conn.Exec(ctx, "SET temp_file_limit = 0; SET work_mem = '64kB'; SELECT count(*) FROM (SELECT i FROM generate_series(1, 100000) i ORDER BY i DESC) s"); err == nil {
		t.Error("a sort that needs the disk was done")
	}
	testkit.Eventually(t, "the log has it", func() bool {
		return log.Count("level=WARN") == 1 && log.Count("sqlstate=53400") == 1
	})
	if log.Count("22012") > 0 {
		t.Errorf("the log has a statement's fault:\n%s", log)
	}
}
