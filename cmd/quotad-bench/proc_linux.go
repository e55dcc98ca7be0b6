package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// procTick is the unit of times in /proc, which is the same on all of Linux' usual machines.
const procTick = time.Second / 100

// cpuTime is the processor time of a process and of its children, those that have ended
// and those that run; ok is false when there is no such process.
func cpuTime(pid int) (used time.Duration, ok bool) {
	own, _, ok := readStat(pid)
	if !ok {
		return 0, false
	}
	used = own
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, false
	}
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// One that ends meanwhile has no more to tell: its parent does.
		if time, parent, ok := readStat(child); ok && parent == pid {
			used += time
		}
	}
	return used, true
}

// readStat reads a process' time, with that of children it has waited for, and its parent.
func readStat(pid int) (used time.Duration, parent int, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// The name may hold anything, but is followed by the last ")". From there on, counted
	// from 0: state, parent, … 11 to 14: user, system, and those of children.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return 0, 0, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i])) // the kernel's own numbers
		return n
	}
	return time.Duration(number(11)+number(12)+number(13)+number(14)) * procTick, number(1), true
}

// resident is a process' memory now and at most so far, in bytes.
func resident(pid int) (now, most int64, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0, false
	}
	return kilobytes(string(text), "VmRSS:"), kilobytes(string(text), "VmHWM:"), true
}

// kilobytes reads a line such as "VmRSS:  1234 kB", in bytes.
func kilobytes(text, name string) int64 {
	_, rest, _ := strings.Cut(text, "\n"+name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[0], 10, 64) // the kernel's own numbers
	return n << 10
}

// inMemory reports whether a directory's files are in memory only.
func inMemory(dir string) bool {
	const tmpfs, ramfs = 0x01021994, 0x858458f6
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && (s.Type == tmpfs || s.Type == ramfs)
}

// flush puts a file's data on the disk.
func flush(file *os.File) error { return syscall.Fdatasync(int(file.Fd())) }
