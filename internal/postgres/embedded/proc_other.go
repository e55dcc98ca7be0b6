//go:build !linux

package embedded

import (
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// sysProcAttr gives the server a session of its own, so that a Ctrl-C at the
// terminal reaches quotad only. There is no signal on a parent's death here: a
// server that outlived its quotad is stopped by the next one.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// freeSpace is not asked for here: there is enough.
func freeSpace(string) (int64, error) { return math.MaxInt64, nil }

// serverProcesses returns hint, the process id of a pid file, when that is a
// postmaster that was started on one of dirs, as its command line says.
func serverProcesses(hint int, dirs ...string) []int {
	if hint <= 0 {
		return nil
	}
	out, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(hint)).Output()
	if err != nil {
		return nil
	}
	args := strings.TrimSpace(string(out))
	program, _, _ := strings.Cut(args, " -D ")
	for _, dir := range dirs {
		if filepath.Base(program) == "postgres" && strings.Contains(args+" ", " -D "+dir+" ") {
			return []int{hint}
		}
	}
	return nil
}
