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

// ErrUnreachableDataDir is returned if quotad runs as root and the server's user may not enter the data
// directory. Its text names the inaccessible directory, and another directory to use.
var ErrUnreachableDataDir = errors.New("data directory cannot be reached by the server's user")

// account is the unprivileged user who runs the server if quotad runs as root, because PostgreSQL refuses to run
// as root. A nil account means quotad's own user. Every method accepts nil.
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

// chooseAccount returns nil unless quotad runs as root. Existing data is served by its owner, even if a user
// postgres was added to the machine later. New data is served by the user postgres, whom PostgreSQL's packages
// create, or otherwise by nobody.
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

// mayEnter reports whether a may pass through the directory that info describes. It checks only the mode bits,
// and ignores access control lists that grant more.
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

// closedAbove returns the first directory on the path to dir, including dir, that a may not enter. It returns an
// empty string if a may enter all of them.
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

// grantPath ensures that the server's user can enter dir. own contains the names of the caller's files in dir.
// If only dir itself is inaccessible, grantPath allows the group of the server's user to pass through it. It
// never changes a directory above dir, because those directories do not belong to quotad.
func (a *account) grantPath(dir string, own []string) error {
	if a == nil {
		return nil
	}
	closed, err := a.closedAbove(dir)
	if err != nil || closed == "" {
		return err
	}
	if closed == dir && onlyOurs(dir, own) {
		// The group is changed before the mode. In the other order, dir would be open to its previous group for
		// a moment.
		if err := os.Chown(dir, -1, int(a.gid)); err != nil {
			return err
		}
		return os.Chmod(dir, 0o710) //nolint:gosec // a directory through which the server's group must pass
	}
	return fmt.Errorf("%w: quotad runs as root, so PostgreSQL runs as the user %s, who may not enter %s: use --data-dir=%s (the default), or another directory outside %[3]s",
		ErrUnreachableDataDir, a, closed, DefaultDataDir())
}

// onlyOurs reports whether dir contains only files of this package and of its caller (own). If so, access to dir
// exposes no other files.
func onlyOurs(dir string, own []string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !isOurs(e.Name(), own) })
}

// isOurs reports whether this package or its caller (own) creates entries of this name in a data directory.
func isOurs(name string, own []string) bool {
	ours := []string{
		"quotad.lock", "pgdata", "run", "socket-dir", "postgresql.conf", "pg_hba.conf", "custom.conf",
		"lost+found",
	} // lost+found is in the root of a disk and accessible only to root
	return slices.Contains(ours, name) || slices.Contains(own, name) || strings.HasPrefix(name, partialPrefix)
}

// checkPrograms returns an error unless the server's user can run the programs.
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

// own makes the server's user the owner of path.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

// credential returns the user of the server's processes, without supplementary groups. nil means quotad's own
// user.
func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}
