package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// sysProcAttr ties the server to quotad: it gets a session of its own, so that
// a Ctrl-C at the terminal reaches quotad only, which then stops it in order;
// and when quotad is killed the kernel sends it SIGINT, a fast shutdown.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGINT}
}

// freeSpace is how many bytes others than root may still write where dir is.
func freeSpace(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// serverProcesses returns the processes of PostgreSQL that work in one of
// dirs, whatever any pid file says: every server process has its data
// directory as working directory.
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
		// Of a process that may not be looked at, both fail: not our server's user.
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
