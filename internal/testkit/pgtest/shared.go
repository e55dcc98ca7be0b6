package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"quotad/internal/postgres/embedded"
	"quotad/internal/testkit"
)

const (
	dirPrefix = "quotad-test-"
	lockName  = "held-by-a-test" // locked while the test binary runs
	keptMark  = "KEPT"           // this file says that a failed test left its data
	// keptFor and keptMost bound what later runs keep of failed tests: each takes 50 MB.
	keptFor  = 24 * time.Hour
	keptMost = 10
)

var quiet = slog.New(slog.DiscardHandler)

// shared is the binary's one server, started by the first test that needs it.
var shared struct {
	once     sync.Once
	server   server
	embedded *embedded.Server // nil with $QUOTAD_TEST_DATABASE_URL
	dir      string
	err      error
}

// Main runs the tests of a package and then stops the shared server, checks
// that no goroutine was left behind, and exits. To be called by TestMain. A
// package without it works too: the server then dies with the test binary, and
// a later run sweeps its directory away.
func Main(m *testing.M) {
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest: stop the shared server:", err)
		code = max(code, 1)
	}
	if code == 0 { // a failed test may well leave some
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest: goroutines outlive the tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// sharedServer starts the shared server once.
func sharedServer(t testing.TB) *server {
	t.Helper()
	shared.once.Do(startShared)
	if shared.err != nil {
		t.Fatalf("the shared PostgreSQL of the tests: %v", shared.err)
	}
	return &shared.server
}

func startShared() {
	s := &shared.server
	if given := os.Getenv("QUOTAD_TEST_DATABASE_URL"); given != "" {
		s.admin, s.owner = given, given
		shared.err = s.prepareTemplate()
		return
	}
	if shared.dir, shared.err = makeDir(); shared.err != nil {
		return
	}
	if shared.err = copyCluster(shared.dir, true); shared.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	shared.embedded, shared.err = embedded.Start(ctx, embedded.Options{
		DataDir: shared.dir,
		Logger:  quiet,
		NoSync:  true,
		// Nothing here outlives the tests, so nothing is flushed: the proofs
		// of durability have servers of their own.
		Settings: map[string]string{
			"fsync":            "off",
			"full_page_writes": "off",
			"max_connections":  "300",
			"shared_buffers":   "128MB",
			"min_wal_size":     "32MB",
			"max_wal_size":     "512MB",
		},
	})
	if shared.err == nil {
		s.admin, s.owner, s.template = shared.embedded.AdminURL(), shared.embedded.URL(), "quotad"
	}
}

// stopShared stops the shared server and removes it, unless a failed test left
// a database on it.
func stopShared() error {
	e := shared.embedded
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	err := e.Stop(ctx)
	if shared.server.kept.Load() {
		keep(shared.dir, e)
		return err
	}
	return errors.Join(err, removeDir(shared.dir))
}

// keep marks a directory as kept and prints how to open its databases again.
func keep(dir string, e *embedded.Server) {
	_ = os.WriteFile(filepath.Join(filepath.Dir(dir), keptMark), nil, 0o600)
	fmt.Fprintf(os.Stderr, "pgtest: databases of failed tests are kept in %s; start their server again with:\n  %s\nand open one with the psql line of its test\n",
		dir, e.Command())
}

// A database is hundreds of files. In memory it is made in a tenth of the time.
const (
	memory     = "/dev/shm"
	memoryRoom = 4 << 30 // bytes that must be free: containers may have 64 MB there
)

// parentDir is where data directories are made: in memory, where there is room. What tests kill are
// processes, and those lose nothing that they wrote there, either.
func parentDir() string {
	if _, err := os.Stat(memory); err != nil {
		return os.TempDir()
	}
	if free, err := embedded.FreeSpace(memory); err != nil || free < memoryRoom {
		return os.TempDir()
	}
	return memory
}

// makeDir makes a data directory that the server's user can reach, and sweeps
// away what killed runs left.
func makeDir() (string, error) {
	in := parentDir()
	if _, done := swept.LoadOrStore(in, true); !done {
		sweep(filepath.Join(in, dirPrefix+"*"))
	}
	base, err := os.MkdirTemp(in, dirPrefix)
	if err != nil {
		return "", err
	}
	if base, err = filepath.EvalSymlinks(base); err != nil {
		return "", err
	}
	held, err := os.Create(filepath.Join(base, lockName))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "data")
	locks.Store(dir, held) // and keep it open
	return dir, errors.Join(
		syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB),
		os.Chmod(base, 0o755), //nolint:gosec // the server's user passes through it
		os.Mkdir(dir, 0o700))
}

var (
	swept sync.Map // by directory
	locks sync.Map // data directory → its locked file
)

// removeDir removes a directory of makeDir.
func removeDir(dir string) error {
	if held, ok := locks.LoadAndDelete(dir); ok {
		_ = held.(*os.File).Close()
	}
	return os.RemoveAll(filepath.Dir(dir))
}

// sweep removes the directories that no test binary holds any more, but for
// the newest of those that failed tests left.
func sweep(pattern string) {
	bases, _ := filepath.Glob(pattern)
	age := map[string]time.Duration{}
	for _, base := range bases {
		if info, err := os.Stat(base); err == nil {
			age[base] = time.Since(info.ModTime())
		}
	}
	slices.SortFunc(bases, func(a, b string) int { return cmp.Compare(age[a], age[b]) })
	kept := 0
	for _, base := range bases {
		spared := time.Minute // between a directory's making and its locking
		if _, err := os.Stat(filepath.Join(base, keptMark)); err == nil {
			if kept++; kept <= keptMost {
				spared = keptFor
			}
		}
		if age[base] < spared {
			continue
		}
		if f, err := os.Open(filepath.Join(base, lockName)); err == nil {
			if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				_ = os.RemoveAll(base)
			}
			_ = f.Close()
		}
	}
}

// Dir returns an empty directory for an embedded server of the test's own. The
// server's user can reach it, which for root is not so of t.TempDir. It goes
// with the test.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := makeDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeDir(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
