// Command quotad is the quota and billing service.
//
// The package owns everything a process needs around the parts: the command line, the settings and the
// listeners. It also owns the order in which the parts start and stop (node.go), the first admin key, the demo,
// and the metrics of the parts.
//
// The package must never contain SQL, or rules about limits, plans or HTTP routes.
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

// version is the version of the build, set by the linker.
var version = "dev"

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		cancel(fmt.Errorf("%w: %s", errStopped, <-signals))
		// A second signal ends the process at once. On Linux the kernel then signals the embedded server to shut
		// down. On other systems the next start of quotad stops the server.
		os.Exit(128 + int((<-signals).(syscall.Signal)))
	}()
	p := program{stdout: os.Stdout, stderr: os.Stderr, lookupEnv: os.LookupEnv, environ: os.Environ}
	os.Exit(p.main(ctx, os.Args[1:]))
}

// errStopped is the cause of a context that ended because a signal stopped quotad.
var errStopped = errors.New("stopped by a signal")

// Exit codes. Code 2 means that the command line or a setting must be changed.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// program is the process as commands see it: its output and its environment.
type program struct {
	stdout, stderr io.Writer
	lookupEnv      func(string) (string, bool)
	environ        func() []string // returns "NAME=value" strings; nil means no environment
	unknown        []string        // warnings about environment variables that are not settings
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
		return exitFailed // the command has already printed the error
	case errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), errStopped):
		return exitOK // a signal arrived during the start
	}
	fmt.Fprintf(p.stderr, "quotad: %v\n", err)
	if _, ok := errors.AsType[*settingError](err); ok {
		return exitUsage
	}
	return exitFailed
}
