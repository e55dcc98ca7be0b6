package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrUnreachableDataDir is returned when quotad runs as root and the server's user may not
// enter the data directory. Its text names the directory that is closed, and one to use
// instead.
var ErrUnreachableDataDir = errors.New("data directory cannot be reached by the server's user")

// account is the unprivileged user that runs the server when quotad is root: PostgreSQL
// refuses to run as root. A nil account is quotad's own user. Every method accepts nil.
type account struct {
	name     string
	uid, gid uint32
}

func (a *account) String() string {
	if a == nil {
		return "(quotad's own)"
	}
	return a.name
}

// chooseAccount returns nil unless quotad is root. The owner of existing data serves it, even
// if the machine has got a user postgres since. New data is served by postgres, whom
// PostgreSQL's packages make, or else by nobody.
func chooseAccount(l layout) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	if info, err := os.Stat(l.pgdata()); err == nil {
		stat := info.Sys().(*syscall.Stat_t)
		if stat.Uid != 0 {
			return &account{name: userName(stat.Uid), uid: stat.Uid, gid: stat.Gid}, nil
		}
		if entries, err := os.ReadDir(l.pgdata()); err != nil || len(entries) > 0 {
			return nil, fmt.Errorf("%s belongs to root, but PostgreSQL never runs as root: give it to its user with `chown -R postgres %[1]s`", l.pgdata())
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("quotad runs as root, and neither a user postgres nor nobody exists to run the server as: make one with `useradd --system postgres`, or start quotad as another user")
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "uid " + id
}

// mayEnter reports whether a may pass through the directory info describes.
// Only the mode bits count; an access list that grants more is not seen.
func (a *account) mayEnter(info os.FileInfo) bool {
	stat := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	switch {
	case stat.Uid == a.uid:
		return mode&0o100 != 0
	case stat.Gid == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

// closedAbove returns the first directory on the path to dir, dir included, that a may not
// enter. It is empty when a may enter all of them.
func (a *account) closedAbove(dir string) (string, error) {
	var way []string
	for d := dir; ; d = filepath.Dir(d) {
		way = append(way, d)
		if d == filepath.Dir(d) {
			break
		}
	}
	for _, d := range slices.Backward(way) {
		info, err := os.Stat(d)
		if err != nil {
			return "", err
		}
		if !a.mayEnter(info) {
			return d, nil
		}
	}
	return "", nil
}

// grantPath makes sure that the server's user can get into dir. own are the caller's files
// there. If dir itself is closed, grantPath lets that user's group pass through it. It never
// opens a directory above dir: those are not quotad's.
func (a *account) grantPath(dir string, own []string) error {
	if a == nil {
		return nil
	}
	closed, err := a.closedAbove(dir)
	if err != nil || closed == "" {
		return err
	}
	if closed == dir && onlyOurs(dir, own) {
		// The group comes first: with the mode first, dir would be open to its present group
		// for a moment.
		if err := os.Chown(dir, -1, int(a.gid)); err != nil {
			return err
		}
		return os.Chmod(dir, 0o710) //nolint:gosec // a directory that the server's group passes through
	}
	return fmt.Errorf("%w: quotad runs as root, so PostgreSQL runs as the user %s, who may not enter %s: use --data-dir=%s (the default), or another directory outside %[3]s",
		ErrUnreachableDataDir, a, closed, DefaultDataDir())
}

// onlyOurs reports whether dir holds only files of this package and of its caller (own). Then
// to open dir exposes nobody else's files.
func onlyOurs(dir string, own []string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !isOurs(e.Name(), own) })
}

// isOurs reports whether this package or its caller (own) puts something of this name
// into a data directory.
func isOurs(name string, own []string) bool {
	ours := []string{
		"quotad.lock", "pgdata", "run", "socket-dir", "postgresql.conf", "pg_hba.conf", "custom.conf",
		"lost+found",
	} // lost+found is in the root of a disk, closed to others
	return slices.Contains(ours, name) || slices.Contains(own, name) || strings.HasPrefix(name, partialPrefix)
}

// checkPrograms makes sure that the server's user can run the programs.
func (a *account) checkPrograms(p Programs) error {
	if a == nil {
		return nil
	}
	closed, err := a.closedAbove(p.Dir)
	if err == nil && closed != "" {
		err = fmt.Errorf("%w: the user %s, whom PostgreSQL runs as, may not enter %s on the way to the programs in %s",
			ErrNoPrograms, a, closed, p.Dir)
	}
	return err
}

// own gives path to the server's user.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

// credential is the user of the server's processes; nil is quotad's own. Supplementary groups
// are dropped.
func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}
