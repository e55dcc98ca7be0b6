// Command quotad-bench measures quotad as its users run it, each load beside a handler
// that does nothing, and prints one table.
//
// It starts what it needs (bin/quotad with its embedded PostgreSQL in a temporary
// directory, the no-work handler, redis-server for contrast, wrk) and ends it with itself.
// It owns how things are measured and what there is to reach; it never touches a database
// that it did not make, and changes nothing of quotad but by its flags and its API.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes. 2 is for what can be repaired by another command line.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == shellCommand {
		if err := runShell(os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "quotad-bench %s: %v\n", shellCommand, err)
			os.Exit(exitFailed)
		}
		return
	}
	o, err := parseOptions(os.Args[1:], os.Stderr)
	if err != nil {
		os.Exit(exitUsage) // it has been said what is wrong
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	err = run(ctx, o, os.Stdout)
	stop()
	switch {
	case err == nil:
		return
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "quotad-bench: stopped by a signal")
	default:
		fmt.Fprintf(os.Stderr, "quotad-bench: %v\n", err)
	}
	os.Exit(exitFailed)
}
