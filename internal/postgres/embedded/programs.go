package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Major versions of PostgreSQL with which quotad is tested. Newer versions are accepted with a warning; older
// versions lack features that the schema needs.
const (
	OldestMajor = 15
	NewestMajor = 18
)

// versionTimeout is the maximum duration of one `postgres --version`.
const versionTimeout = 10 * time.Second

// ErrNoPrograms is returned if this machine has no suitable PostgreSQL programs. Its text lists the searched
// places and explains how to install the programs.
var ErrNoPrograms = errors.New("no fitting PostgreSQL programs")

// Programs is one installation of the PostgreSQL server.
type Programs struct {
	Dir     string // the directory of initdb and postgres
	Major   int    // 15, 16, …
	Version string // as the program prints it, such as "15.18"
}

// placesToLook are the directories in which packages install the programs: Debian and Ubuntu, Fedora and Red Hat
// (PGDG's packages, then the distribution's), Homebrew on ARM, on Intel and on Linux, and Alpine.
var placesToLook = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/lib64/pgsql/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/opt/homebrew/opt/postgresql/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql/bin",
	"/usr/libexec/postgresql*",
	"/usr/local/pgsql/bin",
}

// FindPrograms returns the programs to use. If binDir is set, or otherwise $PGBIN, it names the only directory
// to search. Otherwise PATH and the usual places are searched. major is the version of an existing data
// directory. The programs must match it exactly, because PostgreSQL cannot read another version's data. If major
// is 0, the newest version is used, preferably a version with which quotad is tested.
//
// The error wraps ErrNoPrograms and explains what the user can do.
func FindPrograms(ctx context.Context, binDir string, major int, log *slog.Logger) (Programs, error) {
	if binDir == "" {
		binDir = os.Getenv("PGBIN")
	}
	found, err := installed(ctx, binDir)
	if err != nil {
		return Programs{}, err
	}
	best, err := choose(found, binDir, major)
	if err != nil {
		return Programs{}, err
	}
	if best.Major > NewestMajor {
		log.Warn("PostgreSQL is newer than quotad was tested with",
			"version", best.Version, "newest_tested", NewestMajor, "dir", best.Dir)
	}
	return best, nil
}

// choose returns the best of the installations that were found. It is pure, so tests can call it.
func choose(found []Programs, binDir string, major int) (Programs, error) {
	var best Programs
	for _, p := range found {
		switch {
		case major != 0 && p.Major == major:
			return p, nil
		case major != 0 || p.Major < OldestMajor:
		case best.Major == 0, better(p.Major, best.Major):
			best = p
		}
	}
	if best.Major == 0 || major != 0 {
		return Programs{}, missing(found, binDir, major)
	}
	return best, nil
}

// better reports whether major version a is preferred to b. The newest tested version is preferred, then the
// oldest of the newer, untested versions.
func better(a, b int) bool {
	if (a > NewestMajor) != (b > NewestMajor) {
		return b > NewestMajor
	}
	if a > NewestMajor {
		return a < b
	}
	return a > b
}

// missing returns the error for missing programs.
func missing(found []Programs, binDir string, major int) error {
	var have []string
	for _, p := range found {
		have = append(have, fmt.Sprintf("%s in %s", p.Version, p.Dir))
	}
	seen := "none was found on PATH or in the usual places"
	if binDir != "" {
		seen = "none was found in " + binDir + " (given by PGBIN or the settings)"
	}
	if len(have) > 0 {
		seen = "found only " + strings.Join(have, ", ")
		if binDir != "" {
			seen += " (given by PGBIN or the settings, so nothing else was searched)"
		}
	}
	want := fmt.Sprintf("PostgreSQL %d to %d is needed", OldestMajor, NewestMajor)
	how := installHint("")
	if major != 0 {
		want = fmt.Sprintf("the data directory was made by PostgreSQL %d, whose programs are needed to open it", major)
		how = installHint(strconv.Itoa(major)) + "; or use another data directory"
	}
	return fmt.Errorf("%w: %s, but %s. %s; or set PGBIN to the directory of initdb and postgres; or use a server of your own with --database-url",
		ErrNoPrograms, want, seen, how)
}

// installHint explains how to install the server; major may be empty.
func installHint(major string) string {
	apt, brew, dnf := "postgresql", "postgresql@18", "postgresql-server"
	if major != "" {
		apt, brew, dnf = "postgresql-"+major, "postgresql@"+major, "postgresql"+major+"-server"
	}
	return fmt.Sprintf("Install it: apt-get install %s (Debian, Ubuntu), brew install %s (macOS), dnf install %s (Fedora, Red Hat)", apt, brew, dnf)
}

// installed returns the version of the programs in every candidate directory. It skips programs that cannot be
// run, unless their directory was named explicitly.
func installed(ctx context.Context, binDir string) ([]Programs, error) {
	if binDir != "" {
		p, err := inspect(ctx, binDir)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoPrograms, err)
		}
		return []Programs{p}, nil
	}
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, place := range placesToLook {
		matches, _ := filepath.Glob(place) // the patterns are constants, so no error is possible
		dirs = append(dirs, matches...)
	}
	var found []Programs
	seen := map[string]bool{}
	for _, dir := range dirs {
		dir = realBinDir(dir)
		if dir == "" || seen[dir] {
			continue
		}
		seen[dir] = true
		if p, err := inspect(ctx, dir); err == nil {
			found = append(found, p)
		}
	}
	return found, ctx.Err()
}

// realBinDir resolves a link such as /usr/local/bin/postgres to the directory that contains all the programs. It
// returns an empty string if dir has no programs.
func realBinDir(dir string) string {
	if !filepath.IsAbs(dir) {
		return "" // with a relative PATH entry, the working directory would select the programs
	}
	real, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	if err != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(real), "initdb")); err == nil {
		return filepath.Dir(real)
	}
	return dir
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d+)\S*)`)

// inspect runs dir's postgres to read its version, and checks that initdb exists.
func inspect(ctx context.Context, dir string) (Programs, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Programs{}, err
	}
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return Programs{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return Programs{}, fmt.Errorf("%s/postgres --version: %w", dir, err)
	}
	m := versionPattern.FindStringSubmatch(string(out))
	if m == nil {
		return Programs{}, fmt.Errorf("%s/postgres --version: unexpected answer %q", dir, out)
	}
	major, err := strconv.Atoi(m[2])
	return Programs{Dir: dir, Major: major, Version: m[1]}, err
}
