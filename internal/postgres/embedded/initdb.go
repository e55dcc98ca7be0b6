package embedded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// initialize creates the cluster beside its final place, and renames it when it is complete. Therefore the
// result of an interrupted initdb is never used as a cluster.
func (s *Server) initialize(ctx context.Context) error {
	l := s.layout
	began := time.Now()
	partial, err := os.MkdirTemp(l.dir, partialPrefix) // mode 0700, as PostgreSQL requires
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial) // has no effect after the rename
	if err := s.account.own(partial); err != nil {
		return err
	}
	args := append([]string{"--pgdata=" + partial}, initdbArgs...)
	if s.opts.NoSync {
		args = append(args, "--no-sync")
	}
	out, err := s.run(ctx, "initdb", args...)
	if err != nil {
		return withRemedy(fmt.Errorf("initdb: %w\n%s", err, lastLines(out, 20)))
	}
	// Rename also replaces an empty directory with that name.
	if err := os.Rename(partial, l.pgdata()); err != nil {
		return err
	}
	if err := syncDir(l.dir); err != nil {
		return err
	}
	s.log.Info("made a new PostgreSQL cluster", "data_dir", l.dir, "version", s.programs.Version,
		"took", time.Since(began).Round(time.Millisecond))
	return nil
}

// initdbArgs are the arguments of initdb that affect a cluster.
var initdbArgs = []string{
	"--username=" + superuser,
	"--encoding=UTF8", "--locale=C", "--data-checksums", "--no-instructions",
	"--auth-local=trust", "--auth-host=reject",
	"--wal-segsize=" + walSegment,
}

// Recipe returns everything that affects a new cluster, except the programs. Tests copy an existing cluster
// instead of creating one if the cluster has the same recipe.
func Recipe() string { return fmt.Sprint(initdbArgs, createRole, createQuotad) }

// walSegment is the size of a WAL file, MiB. Until old files can be reused, PostgreSQL fills each new file with
// zeros and flushes it. All commits wait for that, some 12 ms with the usual 16 MiB.
const walSegment = "4"

// clearPartials removes the directories of interrupted runs of initdb. They only use disk space, so after a
// failure the next start tries again.
func (s *Server) clearPartials() {
	for _, left := range s.layout.partials() {
		if err := os.RemoveAll(left); err != nil {
			s.log.Warn("cannot clear away an interrupted initdb", "dir", left, "error", err)
		}
	}
}

// run runs one of the programs to its end and returns its output.
func (s *Server) run(ctx context.Context, program string, args ...string) (string, error) {
	// The parent-death signal is sent when the thread that forked ends, so this thread is locked.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, filepath.Join(s.programs.Dir, program), args...)
	cmd.WaitDelay = 5 * time.Second // grandchildren may keep the pipes open
	s.dress(cmd)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// dress sets the user, the environment and the working directory of cmd to those of the server's processes.
func (s *Server) dress(cmd *exec.Cmd) {
	cmd.Dir = "/" // the server's user may not enter quotad's working directory
	// The processes do not inherit quotad's environment. PGOPTIONS and similar variables would change the
	// server, and /proc would show secrets to the server's user.
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=" + os.Getenv("PATH")}
	for _, name := range []string{"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.SysProcAttr = sysProcAttr()
	cmd.SysProcAttr.Credential = s.account.credential()
}

// syncDir flushes a directory, which makes a rename in it durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// lastLines returns at most n lines from the end of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
