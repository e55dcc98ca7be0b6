//go:build !linux

package main

import (
	"os"
	"syscall"
	"time"
)

// dieWithUs gives a child a process group of its own, so that a Ctrl-C at the terminal
// reaches the bench only, which then stops it in order.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// What only Linux tells is not known here.

func inMemory(string) bool { return false }

func cpuModel() string { return "" }

func flush(file *os.File) error { return file.Sync() }

// A watch takes every socket under way for one that has something to read.
type watch struct{ list []int }

func newWatch([]*openConn) (*watch, error) { return &watch{}, nil }

func (w *watch) close() error { return nil }

func (w *watch) ready(all []*openConn) ([]int, error) {
	w.list = w.list[:0]
	for i, c := range all {
		if c.busy {
			w.list = append(w.list, i)
		}
	}
	return w.list, nil
}

func sleep(d time.Duration) { time.Sleep(d) }
