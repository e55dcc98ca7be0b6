package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
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
		return nil, chooseAnother("open the lock file", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		defer f.Close()
		return nil, fmt.Errorf("%w: %s is held by %s; stop that one or use another --data-dir", ErrDataDirInUse, dir, holder(f))
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

// holder names who holds the lock of f. One that has only just taken it is about to
// write its process id.
func holder(f *os.File) string {
	for range 20 {
		text := make([]byte, 20)
		n, _ := f.ReadAt(text, 0) // io.EOF with what there is
		if pid := strings.TrimSpace(string(text[:n])); pid != "" {
			return "the quotad process " + pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "a quotad that is starting or stopping"
}

// chooseAnother says what to do when quotad may not use the data directory.
func chooseAnother(what string, err error) error {
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%s: %w: choose another with --data-dir (QUOTAD_DATA_DIR)", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// release lets another quotad in. The file stays: removing it would let two
// processes lock two files of one name.
func (l *dirLock) release() {
	_ = l.file.Truncate(0)
	// A process that is being forked right now has a copy of the descriptor until it execs.
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	_ = l.file.Close()
}
