//go:build !unix

package main

import (
	"errors"
	"os"
)

// lockFile returns an error. Without a lock that ends with the process, two bridges could use the same file.
func lockFile(string) (*os.File, error) {
	return nil, errors.New("the bridge needs a Unix system: its state file cannot be locked here")
}
