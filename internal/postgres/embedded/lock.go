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

// ErrDataDirInUse is returned when another quotad uses the data directory. Its text names the directory and, if
// known, the other process.
var ErrDataDirInUse = errors.New("data directory is in use by another quotad")

// dirLock is an exclusive lock (flock) on a data directory. The kernel releases it when the
// process ends in any way, so a lock is never stale.
type dirLock struct{ file *os.File }

// lockDir locks dir without waiting.
func lockDir(dir string) (*dirLock, error) {
	path := filepath.Join(dir, "quotad.lock")
	// O_CLOEXEC (Go's default) prevents the server, which may outlive a killed quotad, from inheriting the
	// descriptor. O_NOFOLLOW prevents root from writing through a symbolic link that another user has put into
	// the directory.
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
	// The process id is only for messages, and the lock does not depend on it.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	return &dirLock{file: f}, nil
}

// holder returns a description of the process that holds the lock of f. A process that has just taken the lock
// may not have written its id yet.
func holder(f *os.File) string {
	for range 20 {
		text := make([]byte, 20)
		n, _ := f.ReadAt(text, 0) // returns the available text with io.EOF
		if pid := strings.TrimSpace(string(text[:n])); pid != "" {
			return "the quotad process " + pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "a quotad that is starting or stopping"
}

// chooseAnother adds the advice to choose another data directory if quotad may not use this one.
func chooseAnother(what string, err error) error {
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%s: %w: choose another with --data-dir (QUOTAD_DATA_DIR)", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// release releases the lock. It does not remove the file, because otherwise two processes could lock two files
// with the same name.
func (l *dirLock) release() {
	_ = l.file.Truncate(0)
	// A child process has a copy of the descriptor between fork and exec, so closing the file alone might not
	// release the lock.
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	_ = l.file.Close()
}
