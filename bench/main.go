// Command quotad-bench measures quotad as its users run it. Each load stands beside the same
// load on a handler that does nothing. The result is one table, docs/benchmarks.
//
// The package owns how things are measured (rows.go, world.go) and what there is to reach
// (targets.go). It starts what it needs, and ends it with itself: bin/quotad with its embedded
// PostgreSQL in a temporary directory, the handler, redis-server for contrast, wrk.
//
// It must never touch a database that it did not make, and changes quotad by its flags and
// its API only.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
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

// options are what the command line says.
type options struct {
	rows    *regexp.Regexp // the rows to measure, by name; nil: all
	rounds  int
	each    time.Duration // of each run, whole seconds (wrk knows no others)
	short   bool
	long    bool     // also the load behind the HOT ratio
	closing int      // also so many customers' billing periods; 0: none
	watched int      // also so many open pages; 0: none
	quotad  string   // the binary to measure
	serve   []string // further flags of `quotad serve`
	docs    string   // where JSON and Markdown go; empty: nowhere
	gate    string   // file of recorded ratios to print beside those measured
	record  string   // file to write them to
	passes  int      // over all rows; their spread is the noise that is recorded
	list    bool
}

// The sizes of the two forms.
const (
	fullRounds, fullRun   = 5, 3 * time.Second
	shortRounds, shortRun = 4, 2 * time.Second
	recordPasses          = 3
	docsDir               = "docs/benchmarks"
)

// parseOptions reads a command line; what is wrong with it has been printed to errs.
func parseOptions(args []string, errs io.Writer) (*options, error) {
	o := &options{quotad: "bin/quotad"}
	set := flag.NewFlagSet("quotad-bench", flag.ContinueOnError)
	set.SetOutput(errs)
	rows := set.String("rows", "", "measure only the rows whose name matches this `regexp`, a regular expression, and only print them; see -out")
	set.IntVar(&o.rounds, "rounds", 0, "rounds of each row, a run of the handler and one of the row: at least 1 (default 5, with -short 4)")
	set.DurationVar(&o.each, "time", 0, "how long each run is, whole seconds (default 3s, with -short 2s)")
	set.BoolVar(&o.short, "short", false, "the few rows of the gate, in less time")
	set.BoolVar(&o.long, "long", false, "also the load that shows the HOT ratio, ten minutes")
	set.IntVar(&o.closing, "closing", 0, "also close the billing periods of that many `customers`, beside the first row's load")
	set.IntVar(&o.watched, "pages", 0, "also keep that many `pages` open, beside the first row's load, and time each kind of page")
	serve := set.String("serve", "", "further `flags` of quotad serve, for trying settings")
	set.StringVar(&o.docs, "out", "", "`directory` that latest.json and README.md are written to (default: "+docsDir+", but nowhere with -rows or -short)")
	set.StringVar(&o.gate, "gate", "", "fail when a ratio stays under its floor; print the ratios recorded in this `file` beside those measured")
	set.StringVar(&o.record, "record", "", "measure all rows three times, and write the ratios to this `file`, for -gate")
	set.BoolVar(&o.list, "list", false, "print the names of the rows, and no more")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	err := errors.Join(refuseZeros(set), o.finish(set.Args(), *rows, *serve))
	if err != nil {
		fmt.Fprintf(errs, "quotad-bench: %v\n", err)
	}
	return o, err
}

// refuseZeros refuses the number 0 where one was given: left out it means the default.
func refuseZeros(set *flag.FlagSet) (err error) {
	set.Visit(func(f *flag.Flag) {
		if getter, ok := f.Value.(flag.Getter); ok {
			switch getter.Get() {
			case 0, time.Duration(0):
				err = errors.Join(err, fmt.Errorf("-%s must be above 0", f.Name))
			}
		}
	})
	return err
}

// finish fills in the rest, and refuses what cannot be measured.
func (o *options) finish(rest []string, rows, serve string) (err error) {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q", rest[0])
	}
	if rows != "" {
		if o.rows, err = regexp.Compile(rows); err != nil {
			return fmt.Errorf("-rows: %w", err)
		}
	}
	o.serve = strings.Fields(serve)
	o.setDefaults()
	return o.check()
}

// setDefaults fills in what was not said.
func (o *options) setDefaults() {
	rounds, each := fullRounds, fullRun
	if o.short {
		rounds, each = shortRounds, shortRun
	}
	o.passes = 1
	if o.record != "" {
		o.passes = recordPasses
	}
	o.rounds = cmp.Or(o.rounds, rounds)
	o.each = cmp.Or(o.each, each)
	if o.docs == "" && o.rows == nil && !o.short {
		o.docs = docsDir
	}
}

// check refuses numbers out of range.
func (o *options) check() error {
	const most = 100
	switch {
	case o.rounds < 1 || o.rounds > most:
		return fmt.Errorf("-rounds must be between 1 and %d", most)
	case o.closing < 0 || o.closing > 1_000_000:
		return errors.New("-closing must be between 1 and 1,000,000")
	case o.watched < 0 || o.watched > maxWatched:
		return fmt.Errorf("-pages must be between 1 and %d", maxWatched)
	case o.each < time.Second || o.each > 10*time.Minute || o.each%time.Second != 0:
		return errors.New("-time must be whole seconds, 1s to 10m")
	}
	return nil
}
