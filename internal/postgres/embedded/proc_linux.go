package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// sysProcAttr returns the attributes that tie the server to quotad. The server runs in a session of its own, so
// a Ctrl-C at the terminal reaches only quotad, which stops the server in order. If quotad is killed, the kernel
// sends SIGINT to the server, which means a fast shutdown.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGINT}
}

// FreeSpace returns the number of bytes that users other than root may still write to dir's disk.
func FreeSpace(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// serverProcesses returns the PostgreSQL processes that work in one of dirs. It needs no pid file, because the
// working directory of every server process is its data directory.
func serverProcesses(_ int, dirs ...string) []int {
	var wanted []os.FileInfo
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil {
			wanted = append(wanted, info)
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil || len(wanted) == 0 {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// Readlink and Stat fail for processes that this user may not inspect. Such processes do not belong to
		// our server.
		exe, err := os.Readlink(filepath.Join("/proc", entry.Name(), "exe"))
		if err != nil || filepath.Base(strings.TrimSuffix(exe, " (deleted)")) != "postgres" {
			continue
		}
		cwd, err := os.Stat(filepath.Join("/proc", entry.Name(), "cwd"))
		if err != nil {
			continue
		}
		for _, info := range wanted {
			if os.SameFile(cwd, info) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
