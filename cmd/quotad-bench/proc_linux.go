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

// ownTime is the processor time of a process without its children; ok is false when there
// is no such process.
func ownTime(pid int) (used time.Duration, ok bool) {
	p, ok := readStat(pid)
	return p.own, ok
}

// familyTime is the processor time of a process and of its children, those that have ended
// and those that run; ok is false when there is no such process.
func familyTime(pid int) (used time.Duration, ok bool) {
	p, ok := readStat(pid)
	if !ok {
		return 0, false
	}
	used = p.own + p.ended
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
		if p, ok := readStat(child); ok && p.parent == pid {
			used += p.own + p.ended
		}
	}
	return used, true
}

// processStat is what the kernel says of a process.
type processStat struct {
	own, ended time.Duration // processor time of its own, and of children it has waited for
	parent     int
}

func readStat(pid int) (p processStat, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	// The name may hold anything, but is followed by the last ")". From there on, counted
	// from 0: state, parent, … 11 to 14: user, system, and those of children.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return p, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i])) // the kernel's own numbers
		return n
	}
	ticks := func(i int) time.Duration { return time.Duration(number(i)+number(i+1)) * procTick }
	return processStat{own: ticks(11), ended: ticks(13), parent: number(1)}, true
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
