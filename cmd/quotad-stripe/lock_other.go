//go:build !unix

package main

import (
	"errors"
	"os"
)

// lockFile refuses: without a lock that ends with the process, two bridges could run on one file.
func lockFile(string) (*os.File, error) {
	return nil, errors.New("the bridge needs a Unix system: its state file cannot be locked here")
}
