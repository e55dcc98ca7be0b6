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

// sysProcAttr returns the attributes with which the server runs in a session of its own, so a Ctrl-C at the
// terminal reaches only quotad. These systems send no signal when a parent ends. If a server outlives its
// quotad, the next quotad stops the server.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// FreeSpace returns the maximum, because free space is not measured on these systems.
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
