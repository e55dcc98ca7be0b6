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

// layout names the files of one embedded server; see the package comment.
type layout struct {
	dir       string // absolute, links resolved
	socketDir string
}

func (l layout) pgdata() string  { return filepath.Join(l.dir, "pgdata") }
func (l layout) pidFile() string { return filepath.Join(l.pgdata(), "postmaster.pid") }

// HasData reports whether dir has an embedded server's data. It is also true where this user
// may not look.
func HasData(dir string) bool {
	_, err := os.Stat(layout{dir: dir}.pgdata())
	return !errors.Is(err, os.ErrNotExist)
}

// partialPrefix begins the names of clusters that an initdb is making. Each gets a name of its
// own: children of an initdb that was cut off may still write to theirs.
const partialPrefix = "pgdata.init-"

func (l layout) partials() []string {
	entries, _ := os.ReadDir(l.dir) // without a directory there are none
	var dirs []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), partialPrefix) {
			dirs = append(dirs, filepath.Join(l.dir, entry.Name()))
		}
	}
	return dirs
}

// major is the version that made the data, 0 when there is none yet.
func (l layout) major() (int, error) {
	text, err := os.ReadFile(filepath.Join(l.pgdata(), "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		entries, err := os.ReadDir(l.pgdata())
		if err == nil && len(entries) > 0 {
			// Never delete what may be somebody's data.
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

// refuseForeignDir refuses a directory that is not quotad's. A directory that is itself
// PostgreSQL's data directory belongs to another server.
func refuseForeignDir(dir string, own []string) error {
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err == nil {
		return fmt.Errorf("%s is the data directory of another PostgreSQL server; quotad needs one of its own: use %s, or connect to that server with --database-url",
			dir, DefaultDataDir())
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "pgdata")); err == nil {
		return nil // the directory is quotad's, whatever else is in it
	}
	if foreign := firstForeign(dir, own); foreign != "" {
		return fmt.Errorf("%s is not empty and not quotad's (it holds %s): name a new directory with --data-dir (QUOTAD_DATA_DIR)", dir, foreign)
	}
	return nil
}

// firstForeign is the first entry in dir that is neither this package's nor its caller's
// (own). It is empty when there is none, or dir cannot be read.
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

// DefaultDataDir is the data directory unless another is given. For root it is one that the
// server's unprivileged user can reach. For another user it is in that user's home.
func DefaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/quotad"
	}
	home, err := os.UserHomeDir()
	if err != nil {
		// A service without a home: a directory of its own under the working one.
		home = "."
	}
	return userDataDir(runtime.GOOS, home, os.Getenv("XDG_DATA_HOME"))
}

// userDataDir is DefaultDataDir for a user that is not root; pure.
func userDataDir(goos, home, xdg string) string {
	switch {
	case goos == "darwin":
		return filepath.Join(home, "Library", "Application Support", appName)
	case filepath.IsAbs(xdg): // the specification says to ignore a relative one
		return filepath.Join(xdg, appName)
	default:
		return filepath.Join(home, ".local", "share", appName)
	}
}
