// Command quotad is the quota and billing service.
//
// The package owns what a process needs around the parts: the command line, the settings and
// the listeners. It owns the order in which the parts start and stop (node.go), the first admin
// key, the demo, and the gauges of the parts.
//
// It must never hold rules about limits, plans or HTTP routes, nor SQL.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		cancel(fmt.Errorf("%w: %s", errStopped, <-signals))
		// A second signal ends the process at once. On Linux the kernel then tells the
		// embedded server to shut down. Elsewhere the next start stops it.
		os.Exit(128 + int((<-signals).(syscall.Signal)))
	}()
	p := program{stdout: os.Stdout, stderr: os.Stderr, lookupEnv: os.LookupEnv, environ: os.Environ}
	os.Exit(p.main(ctx, os.Args[1:]))
}

// errStopped is the cause of a context that ended because quotad was asked to stop.
var errStopped = errors.New("stopped by a signal")

// Exit codes. 2 means that the command line or a setting has to be changed.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// program is the process as a command sees it: output and environment.
type program struct {
	stdout, stderr io.Writer
	lookupEnv      func(string) (string, bool)
	environ        func() []string // of "NAME=value"; nil: none
	unknown        []string        // warnings about unknown settings in the environment
}

// main runs one command line and returns the exit code.
func (p *program) main(ctx context.Context, args []string) int {
	command, done, err := p.parse(args)
	if done {
		return exitOK
	}
	if err == nil {
		err = command.run(ctx, p)
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNotOK):
		return exitFailed // the command has printed what is wrong
	case errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), errStopped):
		return exitOK // a signal came during the start
	}
	fmt.Fprintf(p.stderr, "quotad: %v\n", err)
	if _, ok := errors.AsType[*settingError](err); ok {
		return exitUsage
	}
	return exitFailed
}
