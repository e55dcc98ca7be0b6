// Command quotad-stripe is the bridge between quotad and Stripe. It creates an invoice at Stripe for each
// finalized invoice of quotad, and records Stripe's payments in quotad.
//
// The package owns only the bridge: its settings, its state file, its calls to quotad and Stripe, and its
// recovery after a crash. The bridge is a client of quotad's API and a separate Go module, so quotad's go.mod
// does not contain the bridge's dependencies.
//
// The package must never access quotad's database, and must never compute the amount of an invoice, because
// quotad's amounts are authoritative.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// version is the version of the build, set by the linker.
var version = "dev"

// Exit codes. Code 2 means that the command line or a setting must be changed.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// envPrefix is the prefix of every setting's environment variable.
const envPrefix = "STRIPE_BRIDGE"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	p := program{stdout: os.Stdout, stderr: os.Stderr, lookupEnv: os.LookupEnv}
	code := p.main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// program is the process as commands see it.
type program struct {
	stdout, stderr io.Writer
	lookupEnv      func(string) (string, bool)
}

// grammar is the command line as kong parses it.
type grammar struct {
	Run     settings   `cmd:"" help:"Follow quotad and Stripe until it is told to stop."`
	Status  statusCmd  `cmd:"" help:"Print what the state file says: how far the bridge is, what fails, and what waits for a person."`
	Dismiss dismissCmd `cmd:"" help:"Take a notice off the list, once a person has seen to it. The bridge must not run."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// A command is a subcommand with its flags set.
type command interface {
	run(ctx context.Context, p *program) error
}

// settingError is an invalid setting.
type settingError struct{ error }

func (e settingError) Unwrap() error { return e.error }

func badSetting(flag, format string, args ...any) error {
	return settingError{fmt.Errorf("--%s: %w", flag, fmt.Errorf(format, args...))}
}

// exited is the value with which kong panics after it has printed help. parse recovers it.
type exited int

// main runs one command line and returns the exit code.
func (p *program) main(ctx context.Context, args []string) int {
	chosen, done, err := p.parse(args)
	if done {
		return exitOK
	}
	if err == nil {
		err = chosen.run(ctx, p)
	}
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(p.stderr, "quotad-stripe:", err)
	if _, ok := errors.AsType[settingError](err); ok {
		return exitUsage
	}
	return exitFailed
}

func (p *program) parse(args []string) (chosen command, done bool, err error) {
	if len(args) == 0 {
		args = []string{"--help"}
	}
	var g grammar
	parser, err := kong.New(&g,
		kong.Name("quotad-stripe"),
		kong.Description("Makes quotad's finalized invoices invoices at Stripe, and notes in quotad what Stripe was paid. The flag --some-flag is also the variable STRIPE_BRIDGE_SOME_FLAG, or STRIPE_BRIDGE_SOME_FLAG_FILE, which names a file that has the value."),
		kong.Resolvers(kong.ResolverFunc(p.fromEnv)),
		kong.ValueFormatter(describe),
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
	parsed, err := parser.Parse(args)
	if err != nil {
		return nil, false, settingError{fmt.Errorf("%w\nRun `quotad-stripe --help` for what there is", err)}
	}
	chosen, ok := parsed.Selected().Target.Addr().Interface().(command)
	if !ok {
		return nil, false, fmt.Errorf("%s cannot be run", reflect.TypeOf(parsed.Selected().Target))
	}
	return chosen, false, nil
}

// describe returns the help of a flag, with its default.
func describe(v *kong.Value) string {
	if v.Default == "" {
		return v.Help
	}
	return v.Help + " Default: " + v.Default + "."
}

// maxSecretFile is the maximum number of bytes that are read from a setting's file.
const maxSecretFile = 64 << 10

// fromEnv returns the value of a flag that is not on the command line. The value comes from the flag's
// environment variable NAME, or from the file whose path is in NAME_FILE. An empty variable counts as unset.
func (p *program) fromEnv(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if flag.Name == "help" {
		return nil, nil //nolint:nilnil // nil leaves the flag's value to kong
	}
	name := envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
	value, _ := p.lookupEnv(name)
	path, _ := p.lookupEnv(name + "_FILE")
	switch {
	case path == "" && value == "":
		return nil, nil //nolint:nilnil // nil leaves the flag's value to kong
	case path == "":
		return value, nil
	case value != "":
		return nil, fmt.Errorf("%s and %s_FILE are both set: unset one", name, name)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s_FILE: %w", name, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSecretFile))
	if err != nil {
		return nil, fmt.Errorf("%s_FILE: %w", name, err)
	}
	return strings.TrimSpace(string(text)), nil
}

type versionCmd struct{}

func (*versionCmd) run(_ context.Context, p *program) error {
	_, err := fmt.Fprintln(p.stdout, "quotad-stripe", version)
	return err
}
