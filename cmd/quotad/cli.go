package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"quotad/internal/api"
	"quotad/internal/postgres/embedded"
)

// grammar is the command line as kong parses it.
type grammar struct {
	Serve   settings `cmd:"" help:"Serve the API."`
	Migrate struct {
		Up     migrateUp     `cmd:"" help:"Bring the database's schema up to date (serve does so at its start)."`
		Down   migrateDown   `cmd:"" help:"Take the newest migration back, with the data in what it made. Needs --yes, and that no quotad serves on the database."`
		Status migrateStatus `cmd:"" help:"List the migrations and when each was applied."`
	} `cmd:"" help:"Change or show the database's schema."`
	Keys struct {
		Create createKey `cmd:"" help:"Make a key and print its secret, which is kept nowhere."`
		List   listKeys  `cmd:"" help:"List the keys that are not revoked."`
		Revoke revokeKey `cmd:"" help:"Revoke a key on every node within a second."`
	} `cmd:"" help:"Make, list and revoke API keys."`
	Settings struct {
		List listSettings `cmd:"" help:"List the settings that all nodes share."`
		Set  setSetting   `cmd:"" help:"Change one of them for all nodes. Needs that no quotad serves on the database."`
	} `cmd:"" help:"List and change the settings that all nodes share."`
	Reconcile reconcileCmd `cmd:"" help:"Check that the books agree, from what was charged to what was billed. Where a check finds rows, the exit code is 1."`
	Health    healthCmd    `cmd:"" help:"Ask the quotad that serves on this machine, with the same settings, whether it is ready. If not, the exit code is 1."`
	Repair    struct {
		Clock repairClock `cmd:"" help:"Bring counters back to the database's clock that were charged in the future, since the clock was ahead. Nodes may serve meanwhile. Where some are left, the exit code is 1."`
	} `cmd:"" help:"Repair what an outage left behind."`
	Archive archiveCmd   `cmd:"" help:"Take old months of usage and adjustments out of their tables, once all of them is billed. Nodes may serve meanwhile."`
	Version versionCmd   `cmd:"" help:"Print the version."`
	OpenAPI printOpenAPI `cmd:"" name:"openapi" help:"Print the OpenAPI document of the API."`
}

// A command is a subcommand with its flags set.
type command interface {
	run(ctx context.Context, p *program) error
}

func (s *settings) run(ctx context.Context, p *program) error {
	s.stdout, s.stderr = p.stdout, p.stderr
	p.warnUnknown(s.logger())
	return run(ctx, *s)
}

// exited is the value with which kong panics after it has printed help, see kong.Exit in parse. parse recovers
// it.
type exited int

// parse returns the command that a command line selects. done reports that kong has printed help, so no command
// is left to run.
func (p *program) parse(args []string) (chosen command, done bool, err error) {
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(args[1:len(args):len(args)], "--help")
	case args[0] == "--version":
		args = []string{"version"}
	}
	var g grammar
	parser, err := kong.New(&g,
		kong.Name("quotad"),
		kong.Description("Decides at each request whether a customer may go on, counts what was used, and bills by the same numbers."),
		kong.Vars{"data_dir": embedded.DefaultDataDir()},
		kong.Resolvers(kong.ResolverFunc(p.fromEnv)),
		kong.ValueFormatter(describe),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(readDuration)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(code int) { panic(exited(code)) }),
	)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(exited); !ok {
				panic(r)
			}
			done = true
		}
	}()
	p.unknown = p.unknownSettings(parser.Model)
	parsed, err := parser.Parse(args)
	if err != nil {
		hint := ""
		if parseError, ok := errors.AsType[*kong.ParseError](err); ok && parseError.Context.Selected() != nil {
			hint = " " + strings.TrimPrefix(parseError.Context.Selected().FullPath(), "quotad ")
		}
		return nil, false, &settingError{err: fmt.Errorf("%w\nRun `quotad%s --help` for what there is", err, hint)}
	}
	chosen, ok := parsed.Selected().Target.Addr().Interface().(command)
	if !ok {
		return nil, false, errors.New("this command cannot be run")
	}
	if logs, ok := chosen.(interface{ checkLog() error }); ok {
		if err := logs.checkLog(); err != nil {
			return nil, false, err
		}
	}
	return chosen, false, nil
}

// readDuration parses a setting that is a duration. Its error explains the format of a duration.
func readDuration(c *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := c.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := parseTime(text)
	target.SetInt(int64(d))
	return err
}

func parseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if _, number := strconv.ParseUint(text, 10, 64); number == nil && err != nil {
		return 0, fmt.Errorf("%q has no unit: write %[1]ss for seconds", text)
	}
	if err != nil {
		return 0, fmt.Errorf("must be a time such as 500ms, 5s, 1m30s or 48h, not %q", text)
	}
	return d, nil
}

type versionCmd struct{}

func (versionCmd) run(_ context.Context, p *program) error {
	_, err := fmt.Fprintln(p.stdout, "quotad "+version)
	return err
}

type printOpenAPI struct{}

// run prints no build version, so that the file in the repository changes only when the API changes.
func (printOpenAPI) run(_ context.Context, p *program) error {
	_, err := p.stdout.Write(api.OpenAPI("dev"))
	return err
}

// shown returns a time as the commands print it: RFC 3339, in UTC.
func shown(t time.Time) string { return t.UTC().Format(time.RFC3339) }
