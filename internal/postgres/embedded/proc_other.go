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

// sysProcAttr gives the server a session of its own: a Ctrl-C at the terminal reaches only
// quotad. These systems have no signal on a parent's death. The next quotad stops a server
// that outlived its own.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// FreeSpace is not measured on these systems: there counts as enough.
func FreeSpace(string) (int64, error) { return math.MaxInt64, nil }

// serverProcesses returns hint, the process id in a pid file, if its command line is that of a
// postmaster on one of dirs.
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
