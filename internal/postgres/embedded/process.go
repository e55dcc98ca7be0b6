package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// errStillInUse means that backends of a dead postmaster still use its shared memory. They end by themselves, so
// the start is retried.
var errStillInUse = errors.New("an earlier server's memory is still in use")

// The time that a server has to end after SIGQUIT and after SIGKILL. The postmaster itself kills children that
// take more than five seconds.
const (
	quitWait = 10 * time.Second
	killWait = 5 * time.Second
)

// process is one run of the postmaster.
type process struct {
	cmd    *exec.Cmd
	log    *serverLog
	exited chan struct{}
	status error // the exit status; read it after exited is closed
}

// spawn starts the postmaster. The goroutine that forks stays on its thread until the child has ended, because
// the kernel sends the parent-death signal when that thread ends, and Go may end idle threads at any time.
func (s *Server) spawn() (*process, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	//nolint:noctx // the server outlives any context; Stop ends it in order
	cmd := exec.Command(filepath.Join(s.programs.Dir, "postgres"), s.serverArgs()...)
	s.dress(cmd)
	cmd.Stdout, cmd.Stderr = write, write
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with this goroutine
		err := cmd.Start()
		started <- err
		if err == nil {
			p.status = cmd.Wait()
			close(p.exited)
		}
	}()
	err = <-started
	write.Close() // the child has its own copy
	if err != nil {
		read.Close()
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	p.log = readServerLog(read, s.log, s.hush)
	return p, nil
}

// hush reports whether a message is logged only at the debug level. Before the server is ready, its messages are
// part of the error of a failed start. While the server is being stopped, the end of its sessions is expected.
func (s *Server) hush(severity, sqlstate string) bool {
	const adminShutdown = "57P01"
	if s.stopBy.Load() != nil {
		return severity == "FATAL" && sqlstate == adminShutdown
	}
	return s.pid.Load() == 0 && severity != "WARNING"
}

// startOnce starts the postmaster and waits until it accepts connections. If ctx ends first, it shuts the server
// down again.
func (s *Server) startOnce(ctx context.Context) (*process, error) {
	p, err := s.spawn()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	report := time.NewTicker(10 * time.Second)
	defer report.Stop()
	for {
		select {
		case <-p.exited:
			return nil, p.failure()
		case <-ctx.Done():
			err := fmt.Errorf("the server was not ready in time: %w", context.Cause(ctx))
			return nil, errors.Join(err, s.shutdown(p))
		case <-report.C:
			s.log.Info("waiting for PostgreSQL, which may be recovering from a crash",
				"for", time.Since(began).Round(time.Second))
		case <-tick.C:
			// Readiness is read from the pid file, because refused connections to the socket would fill the
			// server's log.
			if f, ok := readPIDFile(s.layout.pidFile()); ok && f.ready && f.pid == p.cmd.Process.Pid {
				s.pid.Store(int64(f.pid))
				return p, nil
			}
		}
	}
}

// failure returns an error that describes the unexpected end of a server, with its last messages.
func (p *process) failure() error {
	words := p.log.close()
	err := fmt.Errorf("postgres ended by itself (%v):\n%s", p.cmd.ProcessState, words)
	if strings.Contains(words, "shared memory block") {
		err = fmt.Errorf("%w: %w", errStillInUse, err)
	}
	return err
}

// withRemedy adds the remedy to the error of a failed start.
func withRemedy(err error) error {
	if strings.Contains(err.Error(), "shared memory segment") {
		return fmt.Errorf("%w\nCheck that /dev/shm is a writable tmpfs (mode 1777) with room for it", err)
	}
	return err
}

// shutdown ends p with increasingly forceful signals. It begins with a fast shutdown. At the deadline of Stop,
// which may have passed, it requests an immediate shutdown. If that does not help, it kills p.
func (s *Server) shutdown(p *process) error {
	deadline := context.Background()
	if by := s.stopBy.Load(); by != nil {
		deadline = *by
	}
	ctx, cancel := context.WithTimeout(deadline, defaultStopTimeout)
	defer cancel()
	defer s.pid.Store(0)
	defer p.log.close()

	_ = p.cmd.Process.Signal(syscall.SIGINT) // fails only if the process has ended
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
	}
	s.log.Warn("PostgreSQL did not stop in time; stopping it at once, its next start recovers")
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGQUIT, quitWait}, {syscall.SIGKILL, killWait}} {
		_ = p.cmd.Process.Signal(step.signal)
		timer := time.NewTimer(step.wait)
		select {
		case <-p.exited:
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
	return fmt.Errorf("postgres (process %d) does not end, even when killed", p.cmd.Process.Pid)
}

// Command returns the shell command that runs the server by hand, to inspect the data of a failed test or of a
// stopped quotad.
func (s *Server) Command() string {
	words := []string{filepath.Join(s.programs.Dir, "postgres"), "-D", s.layout.pgdata()}
	for _, setting := range s.fixedSettings()[:6] { // without the settings of the log
		words = append(words, "-c", setting)
	}
	for i, word := range words {
		words[i] = shellQuote(word)
	}
	command := strings.Join(words, " ")
	if s.account != nil {
		command = "cd / && setpriv --reuid=" + fmt.Sprint(s.account.uid) + " --regid=" + fmt.Sprint(s.account.gid) + " --clear-groups " + command
	}
	return command
}

// shellQuote quotes word if a shell would split or expand it.
func shellQuote(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n'\"\\$`*?[]{}()<>|&;#~!") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
