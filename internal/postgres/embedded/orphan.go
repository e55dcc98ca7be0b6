package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The time that an orphan has to end after each signal.
const (
	orphanFast      = 20 * time.Second // SIGINT: roll back, flush, checkpoint
	orphanImmediate = 8 * time.Second  // SIGQUIT; the postmaster allows its children 5 s
	orphanKill      = 5 * time.Second  // SIGKILL
)

// pidFile contains the fields that quotad reads from PostgreSQL's postmaster.pid.
type pidFile struct {
	pid   int
	ready bool
}

// readPIDFile reads a pid file. ok is false if the file is missing or unreadable, as after a crash during its
// write.
func readPIDFile(path string) (f pidFile, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return f, false
	}
	lines := strings.Split(string(text), "\n")
	f.pid, err = strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || f.pid <= 0 {
		return pidFile{}, false
	}
	if len(lines) > 7 {
		f.ready = strings.TrimSpace(lines[7]) == "ready"
	}
	return f, true
}

// clearOrphans ends processes of an earlier quotad's server on the data directory, and then removes their pid
// file and socket. The caller has locked the directory, so no running quotad owns these processes.
//
// PostgreSQL does not start while any process of the same user has the pid in a stale pid file, so the file must
// be removed. Removal is safe only if no server process uses the data, which clearOrphans checks first.
// PostgreSQL's own check of its shared memory is a second safeguard.
func clearOrphans(ctx context.Context, l layout, log *slog.Logger) error {
	stale, _ := readPIDFile(l.pidFile())
	look := func() []int { return serverProcesses(stale.pid, append(l.partials(), l.pgdata())...) }
	if pids := look(); len(pids) > 0 {
		log.Warn("a PostgreSQL server is still running on the data directory; stopping it",
			"data_dir", l.dir, "pids", pids)
		if err := endProcesses(ctx, look, stale.pid); err != nil {
			return err
		}
	}
	if err := os.Remove(l.pidFile()); err == nil {
		log.Debug("removed a stale pid file", "pid", stale.pid)
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove a stale pid file: %w", err)
	}
	removeSocketFiles(filepath.Join(l.dir, "run"))
	if l.socketDir != "" {
		removeSocketFiles(l.socketDir)
	}
	return nil
}

// endProcesses ends the processes that look returns, with increasingly forceful signals. While the postmaster
// lives, only the postmaster receives SIGINT and SIGQUIT, and ends the other processes in order. All processes
// receive SIGKILL.
func endProcesses(ctx context.Context, look func() []int, postmaster int) error {
	steps := []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGINT, orphanFast}, {syscall.SIGQUIT, orphanImmediate}, {syscall.SIGKILL, orphanKill}}
	for _, step := range steps {
		pids := look()
		targets := pids
		if slices.Contains(pids, postmaster) && step.signal != syscall.SIGKILL {
			targets = []int{postmaster}
		} else if step.signal == syscall.SIGINT {
			continue // to a backend, SIGINT means only to cancel its statement
		}
		for _, pid := range targets {
			signalProcess(pid, step.signal, look)
		}
		if waitGone(ctx, look, step.wait) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("waiting for an earlier server to end (processes %v): %w", look(), err)
		}
	}
	return fmt.Errorf("an earlier server on the data directory does not end (processes %v): end them and start quotad again", look())
}

// signalProcess signals pid if look still returns it. It opens the process's handle before it calls look, so
// that it never signals another process that reuses the id.
func signalProcess(pid int, sig syscall.Signal, look func() []int) {
	handle, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	defer func() { _ = handle.Release() }()
	if slices.Contains(look(), pid) {
		_ = handle.Signal(sig)
	}
}

// waitGone waits at most limit until look returns no process. It reports whether all processes have ended.
func waitGone(ctx context.Context, look func() []int, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if len(look()) == 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}
