package embedded_test

import (
	"os"
	"path/filepath"
	"testing"

	"quotad/internal/postgres/embedded"
	"quotad/internal/testkit/pgtest"
)

// The server of another process is found by its directory, by way of a link too.
func TestRunningURL(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, pgtest.WithoutMigrations())
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(server.DataDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{server.DataDir(), link} {
		found, running := embedded.RunningURL(dir)
		if !running || pgtest.Query[int](t, found, "SELECT 7") != 7 || !embedded.HasData(dir) {
			t.Errorf("%s: %q %v, data %v", dir, found, running, embedded.HasData(dir))
		}
	}
	server.Stop()
	for _, dir := range []string{server.DataDir(), t.TempDir(), filepath.Join(link, "nowhere")} {
		if found, running := embedded.RunningURL(dir); running {
			t.Errorf("%s: nothing runs there, but %s", dir, found)
		}
	}
	if empty := t.TempDir(); embedded.HasData(empty) || embedded.HasData(filepath.Join(empty, "nowhere")) {
		t.Error("data where there are none")
	}
}
