package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quotad/internal/postgres/embedded"
	"quotad/internal/testkit"
)

// WithClock has a server go by a clock of its own, which StepClock sets. Its processes run with
// libfaketime, which moves the wall clock alone: what waits goes by the monotonic one.
func WithClock() Option { return func(o *instanceOptions) { o.clock = true } }

// clockLibraries are the places of the library, by the packages of Debian, of Fedora and of others.
var clockLibraries = []string{
	"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib64/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1",
	"/usr/local/lib/faketime/libfaketime.so.1",
}

// clockScript runs a program of PostgreSQL by the clock. Each reading of the time reads the file, and
// backends have no memory in common that a kill would leave.
const clockScript = `#!/bin/sh
export LD_PRELOAD='%s' FAKETIME_TIMESTAMP_FILE='%s' FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_DISABLE_SHM=1 NO_FAKE_STAT=1
exec '%s' "$@"
`

// clockPrograms makes programs that go by the clock of a server, beside its data, and returns their
// directory.
func clockPrograms(t testing.TB, dataDir string) string {
	t.Helper()
	library := ""
	for _, pattern := range clockLibraries {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			library = found[0]
			break
		}
	}
	if library == "" {
		t.Fatalf("libfaketime is in none of %s: install it (Debian: libfaketime)", strings.Join(clockLibraries, ", "))
	}
	found, err := embedded.FindPrograms(testkit.Context(t), "", 0, quiet)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(filepath.Dir(dataDir), "programs")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // the server's user reads it
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "initdb"} {
		script := fmt.Sprintf(clockScript, library, clockFile(dataDir), filepath.Join(found.Dir, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil { //nolint:gosec // the server's user runs it
			t.Fatal(err)
		}
	}
	return dir
}

func clockFile(dataDir string) string { return filepath.Join(filepath.Dir(dataDir), "clock") }

// StepClock has the server's clock show that much more than the machine's, in whole seconds, at once. The
// server was started by WithClock.
func (s *Instance) StepClock(ahead time.Duration) {
	s.t.Helper()
	setClock(s.t, s.DataDir(), ahead)
}

// setClock replaces the file whole: the server may read it at any instant.
func setClock(t testing.TB, dataDir string, ahead time.Duration) {
	t.Helper()
	file := clockFile(dataDir)
	text := fmt.Sprintf("%+d\n", int64(ahead/time.Second))
	err := os.WriteFile(file+".new", []byte(text), 0o644) //nolint:gosec // the server's user reads it
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		t.Fatal(err)
	}
}
