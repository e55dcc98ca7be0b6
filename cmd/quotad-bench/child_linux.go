package main

import "syscall"

// dieWithUs gives a child a process group of its own, so that a Ctrl-C at the terminal
// reaches the bench only, which then stops it in order; and when the bench is killed the
// kernel asks the child to end.
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
