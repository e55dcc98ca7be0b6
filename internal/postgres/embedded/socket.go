package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// socketPort is only a part of the socket's file name, because nothing listens on the network.
	socketPort = "5432"
	// maxSocketPath is the maximum length of a Unix socket's path without the terminating zero: 107 bytes on
	// Linux, 103 on macOS and the BSDs.
	maxSocketPath = 103
	// tempSocketPrefix is the prefix of socket directories under the temp directory.
	tempSocketPrefix = "quotad-socket-"
)

// makeSocketDir returns a directory for the socket that only the server's user and root can open. It is in the
// data directory or, if that path is too long for a socket, a new directory under the temp directory.
func (a *account) makeSocketDir(l layout) (string, error) {
	preferred := filepath.Join(l.dir, "run")
	if fitsSocket(preferred) {
		err := os.Mkdir(preferred, 0o700)
		if err != nil && !os.IsExist(err) {
			return "", fmt.Errorf("make the socket directory: %w", err)
		}
		// If the path were a symbolic link, the server's user would get access to somebody else's directory.
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
		dir, err := os.MkdirTemp(parent, tempSocketPrefix) // mode 0700, with an unpredictable name
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

// RunningURL returns the URL of quotad's database on a server that another process runs in a data directory.
// That process has locked the directory, so no server can be started here. running is false if there is no
// socket.
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

// socketNote returns the path of the file that contains the path of a socket directory under the temp directory.
// After a quotad was killed, the next quotad uses the file to find that directory.
func (l layout) socketNote() string { return filepath.Join(l.dir, "socket-dir") }

// removeTempSocketDir removes the directory that socketNote names. No server may still use the directory.
func (l layout) removeTempSocketDir() {
	text, err := os.ReadFile(l.socketNote())
	if err != nil {
		return
	}
	dir := strings.TrimSpace(string(text))
	if strings.HasPrefix(filepath.Base(dir), tempSocketPrefix) {
		removeSocketFiles(dir)
		_ = os.Remove(dir) // removes only an empty directory
	}
	_ = os.Remove(l.socketNote())
}

// closeDir makes dir accessible to the server's user only.
func (a *account) closeDir(dir string) error {
	if err := a.own(dir); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700) //nolint:gosec // a directory needs the search bit
}

// fitsSocket reports whether the path of a socket in dir is short enough.
func fitsSocket(dir string) bool {
	return len(socketFile(dir)) <= maxSocketPath
}

func socketFile(dir string) string { return filepath.Join(dir, ".s.PGSQL."+socketPort) }

// removeSocketFiles removes the socket and its lock file, which a killed server left in dir. If another process
// has reused the id in the lock file, the file would stop the next server.
func removeSocketFiles(dir string) {
	for _, suffix := range []string{"", ".lock"} {
		_ = os.Remove(socketFile(dir) + suffix)
	}
}
