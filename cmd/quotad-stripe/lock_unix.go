//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// errLocked is returned if another bridge has locked the state file.
var errLocked = errors.New("another quotad-stripe has this state file: one at a time may run on it")

// lockFile locks a file until it is closed, or until the process ends in any way.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the state file: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close() // the file was opened only to lock it
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, errLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return file, nil
}
