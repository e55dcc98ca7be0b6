package main

import (
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// What the kernel says of processes is read from Linux' /proc only; elsewhere the columns
// stay empty.

// procTick is the unit of times in /proc, which is the same on all of Linux' usual machines.
const procTick = time.Second / 100

// ownTime is the processor time of a process without its children; ok is false when there
// is no such process.
func ownTime(pid int) (used time.Duration, ok bool) {
	p, ok := readStat(pid)
	return time.Duration(p.UTime+p.STime) * procTick, ok
}

// familyTime is the processor time of a process and of its children, those that have ended
// and those that run; ok is false when there is no such process.
func familyTime(pid int) (used time.Duration, ok bool) {
	p, ok := readStat(pid)
	all, err := procfs.AllProcs()
	if !ok || err != nil {
		return 0, false
	}
	used = withEnded(p)
	for _, process := range all {
		// One that ends meanwhile has no more to tell: its parent does.
		if child, err := process.Stat(); err == nil && child.PPID == pid {
			used += withEnded(child)
		}
	}
	return used, true
}

// withEnded is a process' own time, with that of the children that it has waited for.
func withEnded(p procfs.ProcStat) time.Duration {
	return time.Duration(int(p.UTime+p.STime)+p.CUTime+p.CSTime) * procTick
}

func readStat(pid int) (p procfs.ProcStat, ok bool) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return p, false
	}
	p, err = process.Stat()
	return p, err == nil
}

// resident is a process' memory now and at most so far, in bytes.
func resident(pid int) (now, most uint64, ok bool) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, false
	}
	status, err := process.NewStatus()
	return status.VmRSS, status.VmHWM, err == nil
}

// cpu is the processor time of a child that has ended.
func (c *child) cpu() time.Duration {
	return c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
}

// ownCPU is the processor time of the bench itself.
func ownCPU() time.Duration {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
