package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// layout returns the paths of one embedded server's files; see the package comment.
type layout struct {
	dir       string // absolute, with symbolic links resolved
	socketDir string
}

func (l layout) pgdata() string  { return filepath.Join(l.dir, "pgdata") }
func (l layout) pidFile() string { return filepath.Join(l.pgdata(), "postmaster.pid") }

// HasData reports whether dir contains an embedded server's data. It also returns true if this user has no
// permission to check.
func HasData(dir string) bool {
	_, err := os.Stat(layout{dir: dir}.pgdata())
	return !errors.Is(err, os.ErrNotExist)
}

// partialPrefix is the prefix of directories in which an initdb creates a cluster. Each initdb uses a separate
// directory, because children of an interrupted initdb may still write to its directory.
const partialPrefix = "pgdata.init-"

func (l layout) partials() []string {
	entries, _ := os.ReadDir(l.dir) // a missing directory contains no entries
	var dirs []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), partialPrefix) {
			dirs = append(dirs, filepath.Join(l.dir, entry.Name()))
		}
	}
	return dirs
}

// major returns the major version of PostgreSQL that created the data, or 0 if there is no data yet.
func (l layout) major() (int, error) {
	text, err := os.ReadFile(filepath.Join(l.pgdata(), "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		entries, err := os.ReadDir(l.pgdata())
		if err == nil && len(entries) > 0 {
			// The directory may contain somebody's data, so quotad never deletes it.
			return 0, fmt.Errorf("%s is not empty but holds no PostgreSQL data (no PG_VERSION): move it away or use another data directory", l.pgdata())
		}
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || major < OldestMajor {
		return 0, fmt.Errorf("%s was made by PostgreSQL %q; quotad needs %d or newer: dump it with those programs and restore it into a new data directory",
			l.pgdata(), strings.TrimSpace(string(text)), OldestMajor)
	}
	return major, nil
}

// refuseForeignDir returns an error for a directory that is not quotad's. If the directory itself is a
// PostgreSQL data directory, it belongs to another server.
func refuseForeignDir(dir string, own []string) error {
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err == nil {
		return fmt.Errorf("%s is the data directory of another PostgreSQL server; quotad needs one of its own: use %s, or connect to that server with --database-url",
			dir, DefaultDataDir())
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "pgdata")); err == nil {
		return nil // the directory belongs to quotad, even with other entries in it
	}
	if foreign := firstForeign(dir, own); foreign != "" {
		return fmt.Errorf("%s is not empty and not quotad's (it holds %s): name a new directory with --data-dir (QUOTAD_DATA_DIR)", dir, foreign)
	}
	return nil
}

// firstForeign returns the first entry in dir that belongs neither to this package nor to its caller (own). It
// returns an empty string if there is no such entry, or if dir cannot be read.
func firstForeign(dir string, own []string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if !isOurs(e.Name(), own) {
			return e.Name()
		}
	}
	return ""
}

// DefaultDataDir returns the data directory that is used if no directory is configured. For root, the server's
// unprivileged user can reach the directory. For other users, the directory is in the user's home.
func DefaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/quotad"
	}
	home, err := os.UserHomeDir()
	if err != nil {
		// A service without a home directory uses a directory under the working directory.
		home = "."
	}
	return userDataDir(runtime.GOOS, home, os.Getenv("XDG_DATA_HOME"))
}

// userDataDir returns DefaultDataDir's result for a user who is not root. It reads no environment.
func userDataDir(goos, home, xdg string) string {
	switch {
	case goos == "darwin":
		return filepath.Join(home, "Library", "Application Support", appName)
	case filepath.IsAbs(xdg): // the specification requires that relative paths are ignored
		return filepath.Join(xdg, appName)
	default:
		return filepath.Join(home, ".local", "share", appName)
	}
}
