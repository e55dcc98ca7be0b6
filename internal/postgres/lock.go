package postgres

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrDataDirInUse is returned when another quotad holds the data directory.
// Its text names the directory and, where known, the holder's process.
var ErrDataDirInUse = errors.New("data directory is in use by another quotad")

// dirLock is the exclusive hold on a data directory. The kernel lets go of it
// when the process ends, however it ends, so there is never a stale one.
type dirLock struct{ file *os.File }

// lockDir takes the lock of dir without waiting.
func lockDir(dir string) (*dirLock, error) {
	path := filepath.Join(dir, "quotad.lock")
	// O_CLOEXEC (Go's default) keeps the descriptor out of the server, which
	// may outlive a killed quotad; O_NOFOLLOW keeps root from writing through
	// a link planted in a directory of another user.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		defer f.Close()
		holder := "of unknown process id"
		if text, err := io.ReadAll(io.LimitReader(f, 20)); err == nil && len(text) > 0 {
			holder = "process " + strings.TrimSpace(string(text))
		}
		return nil, fmt.Errorf("%w: %s is held by the quotad %s; stop that one or use another --data-dir", ErrDataDirInUse, dir, holder)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// The process id serves messages only; the lock itself is the kernel's.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	return &dirLock{file: f}, nil
}

// release lets another quotad in. The file stays: removing it would let two
// processes lock two files of one name.
func (l *dirLock) release() {
	_ = l.file.Truncate(0)
	_ = l.file.Close()
}
