package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"quotad/internal/postgres/embedded"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// helperEnv makes the test binary act as a small quotad on that directory, to
// be killed by a test.
const helperEnv = "QUOTAD_TEST_HELPER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		os.Exit(helper(dir))
	}
	pgtest.Main(m)
}

// helper starts a server, says so, and stops it when its input ends.
func helper(dir string) int {
	e, err := embedded.Start(context.Background(), options(dir))
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println("ready", e.PID(), e.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := e.Stop(context.Background()); err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println("stopped")
	return 0
}

// options are those of a small, quiet server.
func options(dir string) embedded.Options {
	return embedded.Options{
		DataDir: dir, NoSync: true, Logger: slog.New(slog.DiscardHandler),
		Settings: map[string]string{"shared_buffers": "32MB", "min_wal_size": "32MB"},
	}
}

// quotad is a helper process.
type quotad struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// startQuotad runs the helper on dir; as changes the command first.
func startQuotad(t *testing.T, dir string, as func(*exec.Cmd)) *quotad {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	q := &quotad{cmd: exec.Command(exe)}
	q.cmd.Env = append(os.Environ(), helperEnv+"="+dir)
	q.cmd.Stderr = os.Stderr
	if as != nil {
		as(q.cmd)
	}
	if q.stdin, err = q.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := q.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	q.lines = bufio.NewScanner(stdout)
	if err := q.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.kill)
	return q
}

// ready waits for the helper's server and returns its postmaster and URL.
func (q *quotad) ready(t *testing.T) (pid int, databaseURL string) {
	t.Helper()
	words := strings.Fields(q.line(t))
	if len(words) != 3 || words[0] != "ready" {
		t.Fatalf("the helper said %q", q.lines.Text())
	}
	pid, err := strconv.Atoi(words[1])
	if err != nil {
		t.Fatal(err)
	}
	return pid, words[2]
}

func (q *quotad) line(t *testing.T) string {
	t.Helper()
	if !q.lines.Scan() {
		t.Fatal("the helper ended without a word")
	}
	return q.lines.Text()
}

// kill is kill -9 of the helper.
func (q *quotad) kill() {
	if q.cmd.ProcessState == nil {
		_ = q.cmd.Process.Kill()
		_ = q.cmd.Wait()
	}
}

// start starts a server that is stopped with the test.
func start(t *testing.T, opts embedded.Options) *embedded.Server {
	t.Helper()
	e, err := embedded.Start(testkit.Context(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, e) })
	return e
}

func stop(t *testing.T, e *embedded.Server) {
	t.Helper()
	if err := e.Stop(context.Background()); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// gone reports whether there is no such process, not even a dead one that
// nobody waited for.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// serverUser is the credential of the user that dir's server runs as.
func serverUser(t *testing.T, dir string) *syscall.Credential {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "pgdata"))
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	if os.Geteuid() != 0 {
		return nil // a process of another user cannot be had
	}
	return &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}
}
