package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// ProgramVersion is the version that Program reports.
const ProgramVersion = "v0-test"

// Program builds quotad and returns its path. The program stays in the repository's bin, where later test binaries find it
// up to date. The caller's package is two directories below the repository's root.
func Program(t testing.TB) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var program = sync.OnceValues(func() (string, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", "test", "quotad")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X main.version="+ProgramVersion, "-o", path, "./cmd/quotad")
	// As tests are compiled: the program's packages are in the build cache. The race detector's tests use the same program.
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build quotad: %w\n%s", err, out)
	}
	return path, nil
})
