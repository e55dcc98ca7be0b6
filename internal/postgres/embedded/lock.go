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

// ErrDataDirInUse is returned if another quotad has locked the data directory. Its text names the directory and,
// if known, the process that has the lock.
var ErrDataDirInUse = errors.New("data directory is in use by another quotad")

// dirLock is an exclusive lock (flock) on a data directory. The kernel releases the lock when the process ends
// in any way, so a lock is never stale.
type dirLock struct{ file *os.File }

// lockDir locks dir without waiting.
func lockDir(dir string) (*dirLock, error) {
	path := filepath.Join(dir, "quotad.lock")
	// O_CLOEXEC (Go's default) keeps the server from inheriting the descriptor, because the server may outlive a
	// killed quotad. O_NOFOLLOW keeps root from writing through a symbolic link that another user has created in
	// a directory of their own.
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
	// The process id is only for messages. The lock does not depend on it.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	return &dirLock{file: f}, nil
}

// holder returns the name of the process that has the lock of f. A process that has just locked the file may not
// have written its id yet.
func holder(f *os.File) string {
	for range 20 {
		text := make([]byte, 20)
		n, _ := f.ReadAt(text, 0) // the error is io.EOF if the file is shorter
		if pid := strings.TrimSpace(string(text[:n])); pid != "" {
			return "the quotad process " + pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "a quotad that is starting or stopping"
}

// chooseAnother adds the advice to choose another data directory to err, if quotad may not use this directory.
func chooseAnother(what string, err error) error {
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%s: %w: choose another with --data-dir (QUOTAD_DATA_DIR)", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// release releases the lock. The file stays, because otherwise two processes could lock two files of the same
// name.
func (l *dirLock) release() {
	_ = l.file.Truncate(0)
	// Between fork and exec, a child process has a copy of the descriptor. Therefore closing the file alone
	// might not release the lock.
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	_ = l.file.Close()
}
