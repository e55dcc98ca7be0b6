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

// sysProcAttr starts the server in a separate session, so that Ctrl-C in the terminal reaches only quotad. These
// systems have no signal for the death of a parent, so the next quotad stops a server that outlived its quotad.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// FreeSpace returns the maximum, because the free space is not measured on these systems and counts as
// sufficient.
func FreeSpace(string) (int64, error) { return math.MaxInt64, nil }

// serverProcesses returns hint, the process id in a pid file, if its command line is that of a postmaster on one
// of dirs.
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
