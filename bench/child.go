package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/procfs"
)

// stopWait is how long a child may take to end after SIGTERM: quotad stops its server.
const stopWait = time.Minute

const askEvery = 50 * time.Millisecond // of a child that has just started, whether it is ready

// A child is a process that the bench started. It ends with the bench: by stop, and on
// Linux also when the bench is killed.
type child struct {
	cmd   *exec.Cmd
	name  string
	log   string        // file of its output; empty: the caller has it
	ended chan struct{} // closed when it has; then cmd.ProcessState is set
	err   error         // of its end, read after ended is closed
}

// spawn starts cmd. The goroutine that forks keeps its thread until the child is gone: the
// kernel sends the parent-death signal when that very thread ends, and Go ends idle
// threads at will.
func spawn(name string, cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, name: name, ended: make(chan struct{})}
	cmd.SysProcAttr = dieWithUs()
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		err := cmd.Start()
		started <- err
		if err == nil {
			c.err = cmd.Wait()
			close(c.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return c, nil
}

// spawnLogged is spawn with all that cmd prints in a file.
func spawnLogged(name, log string, cmd *exec.Cmd) (*child, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the child has its own
	cmd.Stdout, cmd.Stderr = file, file
	c, err := spawn(name, cmd)
	if err != nil {
		return nil, err
	}
	c.log = log
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// alive is nil while the child runs, else why it ended, with its last words.
func (c *child) alive() error {
	select {
	case <-c.ended:
		return fmt.Errorf("%s ended by itself (%s)%s", c.name, c.cmd.ProcessState, c.lastWords())
	default:
		return nil
	}
}

// await asks a child until it answers, at most for so long.
func (c *child) await(ctx context.Context, most time.Duration, ask func() error) error {
	attempt := func() (answered bool, err error) {
		if err := c.alive(); err != nil {
			return false, backoff.Permanent(err)
		}
		return true, ask()
	}
	_, err := backoff.Retry(ctx, attempt, backoff.WithBackOff(backoff.NewConstantBackOff(askEvery)), backoff.WithMaxElapsedTime(most))
	if err != nil && c.alive() == nil {
		err = fmt.Errorf("%s does not answer: %w%s", c.name, err, c.lastWords())
	}
	return err
}

// lastWords is the end of its log.
func (c *child) lastWords() string {
	text, err := os.ReadFile(c.log)
	if err != nil || len(text) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return ":\n" + strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// stop asks the child to end, and ends it by force when it does not within a minute.
func (c *child) stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // fails only when it is gone
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	select {
	case <-c.ended:
		return nil
	case <-timer.C:
	}
	_ = c.cmd.Process.Kill()
	<-c.ended
	return fmt.Errorf("%s did not stop within %s%s", c.name, stopWait, c.lastWords())
}

// What the kernel says of processes is read from Linux' /proc only; elsewhere the columns
// stay empty.

// procTick is the unit of times in /proc, which is the same on all of Linux' usual machines.
const procTick = time.Second / 100

// ownTime is the processor time of a process without its children; ok is false when there
// is no such process.
func ownTime(pid int) (used time.Duration, ok bool) {
	p, ok := readStat(pid)
	return time.Duration(p.UTime+p.STime) * procTick, ok
}

// familyTime is the processor time of a process and of its children, those that have ended
// and those that run; ok is false when there is no such process.
func familyTime(pid int) (used time.Duration, ok bool) {
	p, ok := readStat(pid)
	all, err := procfs.AllProcs()
	if !ok || err != nil {
		return 0, false
	}
	used = withEnded(p)
	for _, process := range all {
		// One that ends meanwhile has no more to tell: its parent does.
		if child, err := process.Stat(); err == nil && child.PPID == pid {
			used += withEnded(child)
		}
	}
	return used, true
}

// withEnded is a process' own time, with that of the children that it has waited for.
func withEnded(p procfs.ProcStat) time.Duration {
	return time.Duration(int(p.UTime+p.STime)+p.CUTime+p.CSTime) * procTick
}

func readStat(pid int) (p procfs.ProcStat, ok bool) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return p, false
	}
	p, err = process.Stat()
	return p, err == nil
}

// resident is a process' memory now and at most so far, in bytes.
func resident(pid int) (now, most uint64, ok bool) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, false
	}
	status, err := process.NewStatus()
	return status.VmRSS, status.VmHWM, err == nil
}

// cpu is the processor time of a child that has ended.
func (c *child) cpu() time.Duration {
	return c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
}

// ownCPU is the processor time of the bench itself.
func ownCPU() time.Duration {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
