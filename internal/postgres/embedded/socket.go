package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// socketPort only names the socket's file: nothing listens on the network.
	socketPort = "5432"
	// maxSocketPath is what the address of a Unix socket can hold without its
	// closing zero: 107 bytes on Linux, 103 on macOS and the BSDs.
	maxSocketPath = 103
	// tempSocketPrefix marks socket directories under the temp directory.
	tempSocketPrefix = "quotad-socket-"
)

// makeSocketDir returns a directory for the socket that only the server's user and root can
// open. It is in the data directory. Where that path is too long for a socket, it is a new
// directory under the temp directory.
func (a *account) makeSocketDir(l layout) (string, error) {
	preferred := filepath.Join(l.dir, "run")
	if fitsSocket(preferred) {
		err := os.Mkdir(preferred, 0o700)
		if err != nil && !os.IsExist(err) {
			return "", fmt.Errorf("make the socket directory: %w", err)
		}
		// A link here would hand somebody else's directory to the server.
		if info, err := os.Lstat(preferred); err != nil || !info.IsDir() {
			return "", fmt.Errorf("the socket directory %s is not a directory", preferred)
		}
		return preferred, a.closeDir(preferred)
	}
	var last error
	for _, parent := range []string{os.TempDir(), "/tmp"} {
		if !fitsSocket(filepath.Join(parent, tempSocketPrefix+"1234567890")) {
			continue
		}
		if a != nil {
			if closed, err := a.closedAbove(parent); err != nil || closed != "" {
				continue
			}
		}
		dir, err := os.MkdirTemp(parent, tempSocketPrefix) // 0700, of a name nobody can foresee
		if err != nil {
			last = err
			continue
		}
		if err := writeFile(l.socketNote(), dir+"\n"); err != nil {
			return "", errors.Join(err, os.Remove(dir))
		}
		return dir, a.closeDir(dir)
	}
	return "", fmt.Errorf("no place for the server's socket: %s is too long for a socket's path, and no temp directory will do (%w)", preferred, last)
}

// RunningURL is the database of a server that another process runs on a data directory. That
// process holds the directory's lock, so no server can be started here. running is false while
// there is no socket.
func RunningURL(dataDir string) (databaseURL string, running bool) {
	dir, err := filepath.Abs(dataDir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", false
	}
	l := layout{dir: dir}
	places := []string{filepath.Join(dir, "run")}
	if note, err := os.ReadFile(l.socketNote()); err == nil {
		places = append(places, strings.TrimSpace(string(note)))
	}
	for _, l.socketDir = range places {
		if _, err := os.Stat(socketFile(l.socketDir)); err == nil {
			return l.url(appName, appName), true
		}
	}
	return "", false
}

// socketNote is the file that names a socket directory under the temp directory. After a
// quotad was killed the next one finds the directory by it.
func (l layout) socketNote() string { return filepath.Join(l.dir, "socket-dir") }

// removeTempSocketDir removes the directory that socketNote names. No server may use it any
// more.
func (l layout) removeTempSocketDir() {
	text, err := os.ReadFile(l.socketNote())
	if err != nil {
		return
	}
	dir := strings.TrimSpace(string(text))
	if strings.HasPrefix(filepath.Base(dir), tempSocketPrefix) {
		removeSocketFiles(dir)
		_ = os.Remove(dir) // only when empty
	}
	_ = os.Remove(l.socketNote())
}

// closeDir gives dir to the server's user alone.
func (a *account) closeDir(dir string) error {
	if err := a.own(dir); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700) //nolint:gosec // a directory: the search bit is needed
}

// fitsSocket reports whether the socket's path fits under dir.
func fitsSocket(dir string) bool {
	return len(socketFile(dir)) <= maxSocketPath
}

func socketFile(dir string) string { return filepath.Join(dir, ".s.PGSQL."+socketPort) }

// removeSocketFiles removes the socket and its lock file that a killed server left in dir. The
// lock file would stop the next server if its process id belonged to another process by now.
func removeSocketFiles(dir string) {
	for _, suffix := range []string{"", ".lock"} {
		_ = os.Remove(socketFile(dir) + suffix)
	}
}
