package pgtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"quotad/internal/testkit"
)

// clustersDir is the environment variable that has a test be killed in the midst of making a cluster, in that
// directory.
const clustersDir = "QUOTAD_TEST_CLUSTERS"

// fakeCluster returns a function that makes a cluster of two files. It calls between after the first file.
func fakeCluster(between func()) func(dataDir string) error {
	return func(dataDir string) error {
		pgdata := filepath.Join(dataDir, "pgdata")
		err := errors.Join(os.Mkdir(pgdata, 0o700), os.WriteFile(filepath.Join(pgdata, "PG_VERSION"), []byte("15\n"), 0o600))
		between()
		return errors.Join(err, os.WriteFile(filepath.Join(pgdata, "last"), nil, 0o600))
	}
}

// checkCopy copies a cluster, which must be whole.
func checkCopy(t *testing.T, c clusters, key string, build func(dataDir string) error) {
	t.Helper()
	dir := t.TempDir()
	if err := c.copy(testkit.Context(t), key, dir, build); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"PG_VERSION", "last"} {
		if _, err := os.Stat(filepath.Join(dir, "pgdata", name)); err != nil {
			t.Errorf("half a cluster was copied: %v", err)
		}
	}
}

func TestClusterIsMadeOnce(t *testing.T) {
	c := clusters{dir: Dir(t)}
	var made atomic.Int32
	var eight errgroup.Group
	for range 8 {
		eight.Go(func() error {
			checkCopy(t, c, "one", fakeCluster(func() { made.Add(1); time.Sleep(time.Millisecond) }))
			return nil
		})
	}
	_ = eight.Wait()
	if made.Load() != 1 {
		t.Errorf("the cluster was made %d times", made.Load())
	}
	checkCopy(t, c, "another", fakeCluster(func() { made.Add(1) }))
	if made.Load() != 2 {
		t.Errorf("two clusters of two keys were made %d times", made.Load())
	}
	old := time.Now().Add(-clustersFor - time.Minute)
	if err := os.Chtimes(filepath.Join(c.dir, "one"), old, old); err != nil {
		t.Fatal(err)
	}
	checkCopy(t, c, "another", fakeCluster(func() { made.Add(1) }))
	if _, err := os.Stat(filepath.Join(c.dir, "one")); !errors.Is(err, os.ErrNotExist) || made.Load() != 2 {
		t.Errorf("the old cluster: %v; clusters were made %d times", err, made.Load())
	}
}

// A process that is killed while it makes a cluster, and a failure, leave nothing that is copied.
func TestHalfBuiltClusterIsNotCopied(t *testing.T) {
	if dir := os.Getenv(clustersDir); dir != "" {
		_ = clusters{dir: dir}.copy(testkit.Context(t), "key", t.TempDir(), fakeCluster(func() { os.Exit(7) }))
		t.Fatal("the process lives on")
	}
	c := clusters{dir: Dir(t)}
	killed := exec.CommandContext(testkit.Context(t), os.Args[0], "-test.run=^"+t.Name()+"$")
	killed.Env = append(os.Environ(), clustersDir+"="+c.dir)
	if out, err := killed.CombinedOutput(); killed.ProcessState.ExitCode() != 7 {
		t.Fatalf("%v: %s", err, out)
	}
	checkCopy(t, c, "key", fakeCluster(func() {}))

	broken := errors.New("broken")
	err := c.copy(testkit.Context(t), "other", t.TempDir(), func(dir string) error {
		return errors.Join(fakeCluster(func() {})(dir), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("the failure: %v", err)
	}
	made := false
	checkCopy(t, c, "other", fakeCluster(func() { made = true }))
	if !made {
		t.Error("the cluster of a failure was copied")
	}
}

// Two servers on copies of the same cluster share no data.
func TestCopiesAreApart(t *testing.T) {
	one, two := Server(t), Server(t)
	const made = "SELECT system_identifier FROM pg_control_system()"
	if Query[int64](t, one.AdminURL(), made) != Query[int64](t, two.AdminURL(), made) {
		t.Error("the servers run on two clusters: nothing was copied")
	}
	Exec(t, one.URL(), "CREATE TABLE only_here (n int)", "UPDATE sellers SET name = 'Another'")
	one.Restart()
	if name := Query[string](t, one.URL(), "SELECT name FROM sellers"); name != "Another" {
		t.Errorf("the first server lost its seller's name: %q", name)
	}
	for _, databaseURL := range []string{two.URL(), Server(t).URL()} {
		if name := Query[string](t, databaseURL, "SELECT name FROM sellers"); name != SellerName {
			t.Errorf("the seller is called %q", name)
		}
		if Query[bool](t, databaseURL, "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'only_here')") {
			t.Error("a table of the first server is in the other")
		}
	}
}
