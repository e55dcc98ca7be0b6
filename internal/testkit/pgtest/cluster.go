package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/postgres/embedded"
	"quotad/internal/testkit"
	"quotad/migrations"
)

// clustersFor is how long a cluster is copied before it is made anew. Its key names the migrations and the
// programs, but not all of the code that makes it.
const clustersFor = 24 * time.Hour

// DataDir returns a directory as Dir does, in which an embedded server finds a cluster: its database quotad
// has the schema. So a server starts there without initdb, and quotad without migrations.
func DataDir(t testing.TB) string {
	t.Helper()
	dir := Dir(t)
	if err := copyCluster(dir, true); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copyCluster puts a copy of this user's cluster in a data directory of makeDir. If migrated is true, its
// database quotad has the schema, otherwise the database is empty.
func copyCluster(dataDir string, migrated bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	key, err := clusterKey()
	if err != nil {
		return err
	}
	if !migrated {
		key += "-bare"
	}
	// The directory is beside those of makeDir, so that a cluster can be renamed into it. Another user could
	// not read the clusters of this one.
	all := clusters{dir: filepath.Join(parentDir(), fmt.Sprint("quotad-clusters-", os.Geteuid()))}
	return all.copy(ctx, key, dataDir, func(dir string) error { return makeCluster(ctx, dir, migrated) })
}

// clusterKey returns the name of the cluster that this test binary needs.
var clusterKey = sync.OnceValues(func() (string, error) {
	schema, err := hashOf(migrations.FS)
	if err != nil {
		return "", err
	}
	programs, err := embedded.FindPrograms(context.Background(), "", 0, quiet)
	recipe := fmt.Sprint(schema, SellerName, embedded.Recipe(), programs.Dir, programs.Version)
	sum := sha256.Sum256([]byte(recipe))
	return hex.EncodeToString(sum[:])[:12], err
})

// makeCluster makes a cluster in a data directory, and stops its server in order.
func makeCluster(ctx context.Context, dataDir string, migrated bool) error {
	e, err := embedded.Start(ctx, embedded.Options{DataDir: dataDir, Logger: quiet, NoSync: true, Settings: map[string]string{
		"fsync": "off", "wal_recycle": "off", "min_wal_size": "8MB", // so that little WAL has to be copied
	}})
	if err != nil {
		return err
	}
	if migrated {
		err = furnish(ctx, e.URL())
	}
	return errors.Join(err, e.Stop(ctx), ctx.Err()) // at the end of ctx a server is not stopped in order
}

// furnish applies the migrations to an empty database, and names its seller.
func furnish(ctx context.Context, databaseURL string) error {
	if _, err := postgres.Migrate(ctx, Patiently(databaseURL), migrations.FS, postgres.MigrateOptions{Logger: quiet}); err != nil {
		return err
	}
	return nameSeller(ctx, databaseURL)
}

// clusters are the clusters of stopped servers, by key, in one directory.
type clusters struct{ dir string }

// copy copies the cluster of a key to pgdata in a data directory. If the cluster is missing or old, copy has
// build make it first, in a data directory of its own. One copy runs at a time, in all test binaries.
func (c clusters) copy(ctx context.Context, key, dataDir string, build func(dataDir string) error) error {
	if err := os.Mkdir(c.dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // the server's user passes through it
		return err
	}
	lock, err := os.OpenFile(filepath.Join(c.dir, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if err := c.removeOld(); err != nil {
		return err
	}
	made := filepath.Join(c.dir, key)
	if _, err := os.Stat(made); errors.Is(err, os.ErrNotExist) {
		if err := c.build(made, build); err != nil {
			return err
		}
	}
	// cp keeps the owner, who is the server's user, and shares blocks if the file system can.
	out, err := exec.CommandContext(ctx, "cp", "-a", made, filepath.Join(dataDir, "pgdata")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copy a cluster: %w: %s", err, out)
	}
	return nil
}

// build makes a cluster under another name and renames it, so that a half-built cluster is never copied.
func (c clusters) build(made string, build func(dataDir string) error) error {
	dir, err := makeDir()
	if err != nil {
		return err
	}
	if err = build(dir); err == nil {
		err = os.Rename(filepath.Join(dir, "pgdata"), made)
	}
	return errors.Join(err, removeDir(dir))
}

// removeOld removes the clusters that were made long ago. It runs under the lock, so no cluster goes while it
// is copied.
func (c clusters) removeOld() error {
	entries, err := os.ReadDir(c.dir)
	for _, entry := range entries {
		if info, infoErr := entry.Info(); infoErr == nil && info.IsDir() && time.Since(info.ModTime()) > clustersFor {
			err = errors.Join(err, os.RemoveAll(filepath.Join(c.dir, entry.Name())))
		}
	}
	return err
}
