//go:build !linux

package main

import "syscall"

// dieWithUs gives a child a process group of its own, so that a Ctrl-C at the terminal
// reaches the bench only, which then stops it in order.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
