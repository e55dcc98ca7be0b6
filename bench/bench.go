package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A bench is one run of the program.
type bench struct {
	*options
	out      io.Writer
	dir      string // temporary
	service  *service
	made     map[string]bool // sets and plans that are there
	seed     uint64          // of the last load
	runs     int             // loads with ids so far
	report   report
	recorded *record // beside which the gate prints what it measures; nil without a gate
}

// run measures what the options ask for.
func run(ctx context.Context, o *options, out io.Writer) (err error) {
	rows := chosen(o)
	if o.list {
		return listRows(out, rows)
	}
	if len(rows) == 0 {
		return errors.New("no row of that name; -list prints them")
	}
	if err := checkPrograms(ctx, o, rows); err != nil {
		return err
	}
	b := &bench{options: o, out: out, made: map[string]bool{}}
	if b.dir, err = tempDir(os.Getenv("TMPDIR")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := os.WriteFile(filepath.Join(b.dir, "load.lua"), loadScript, 0o600); err != nil {
		return err
	}
	b.service = newService(o.quotad, b.dir, o.serve)
	defer func() { err = errors.Join(err, b.service.stop()) }()
	if err := b.service.start(ctx); err != nil {
		return err
	}
	return b.all(ctx, rows)
}

// all measures the rows, and says what came of them.
func (b *bench) all(ctx context.Context, rows []*row) (err error) {
	if b.report, err = b.newReport(ctx); err != nil {
		return err
	}
	if err := b.openGate(); err != nil {
		return err
	}
	b.printHead()
	passes, failed := map[string][]float64{}, error(nil)
	for range b.passes {
		b.report.Rows = nil
		for _, r := range rows {
			got, err := b.one(ctx, r)
			failed = errors.Join(failed, err)
			b.report.Rows = append(b.report.Rows, got)
			passes[r.name] = append(passes[r.name], got.Ratio.Median)
			if err := errors.Join(ctx.Err(), b.service.alive()); err != nil {
				return err
			}
		}
	}
	if b.long {
		if err := b.goOn(ctx); err != nil {
			failed = errors.Join(failed, fmt.Errorf("long load: %w", err))
		}
	}
	if b.closing > 0 {
		if err := b.closeMany(ctx); err != nil {
			failed = errors.Join(failed, fmt.Errorf("closing: %w", err))
		}
	}
	if b.watched > 0 {
		if err := b.watchPages(ctx); err != nil {
			failed = errors.Join(failed, fmt.Errorf("pages: %w", err))
		}
	}
	if b.record != "" && failed == nil {
		failed = b.writeRecord(passes)
	}
	switch {
	case b.docs != "":
		failed = errors.Join(failed, b.writeReport())
	case b.gate == "" && b.record == "":
		fmt.Fprintln(b.out, "A part is only printed; -out DIR writes it.")
	}
	return failed
}

// openGate reads the record, and says in what it differs.
func (b *bench) openGate() (err error) {
	if b.gate == "" {
		return nil
	}
	if b.recorded, err = readRecord(b.gate); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "Recorded on %s, measured on %s.\n", b.recorded.Machine.CPU, b.report.Machine.CPU)
	for _, note := range b.recorded.otherThan(&b.report) {
		fmt.Fprintf(b.out, "The record was made otherwise, and its ratios may be, too. %s.\n", note)
	}
	return nil
}

// one measures a row, and again where the gate asks for it. A row that fails is part of the
// report, and the others go on.
func (b *bench) one(ctx context.Context, r *row) (got result, err error) {
	got, err = b.measure(ctx, r, b.rounds)
	if err == nil && b.recorded != nil {
		got, err = b.checkGate(ctx, r, got)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", r.name, err)
		got.Name, got.Failed = r.name, err.Error()
	}
	b.printRow(got)
	return got, err
}

func (b *bench) newReport(ctx context.Context) (r report, err error) {
	r = report{
		At: time.Now().UTC().Truncate(time.Second), Flags: b.serve,
		Rounds: b.rounds, Seconds: b.each.Seconds(), Warm: b.each.Seconds(),
	}
	out, err := exec.CommandContext(ctx, b.quotad, "version").Output()
	if err != nil {
		return r, fmt.Errorf("%s version: %w", b.quotad, err)
	}
	r.Version = strings.TrimPrefix(strings.TrimSpace(string(out)), "quotad ")
	r.Machine, err = b.describe(ctx)
	return r, err
}

func listRows(out io.Writer, rows []*row) error {
	for _, r := range rows {
		if _, err := fmt.Fprintln(out, r.name); err != nil {
			return err
		}
	}
	return nil
}

// checkPrograms says early what is missing.
func checkPrograms(ctx context.Context, o *options, rows []*row) error {
	if _, err := exec.LookPath(o.quotad); err != nil {
		return fmt.Errorf("%w: build it with `make build`", err)
	}
	if _, err := exec.LookPath("wrk"); err != nil {
		return fmt.Errorf("%w: install it with `scripts/deps.sh wrk`", err)
	}
	if !slices.ContainsFunc(rows, (*row).redis) {
		return nil
	}
	_, err := redisCommand(ctx)
	return err
}

// tempDir makes a directory on a disk that the embedded server's user can reach, too.
func tempDir(parent string) (string, error) {
	if parent == "" {
		// What must be flushed is measured, and /tmp is in memory on many machines.
		if info, err := os.Stat("/var/tmp"); err == nil && info.IsDir() {
			parent = "/var/tmp"
		}
	}
	dir, err := os.MkdirTemp(parent, "quotad-bench-")
	if err != nil {
		return "", err
	}
	err = os.Chmod(dir, 0o755) //nolint:gosec // the embedded server's user passes through it
	if err == nil && inMemory(dir) {
		err = fmt.Errorf("%s is in memory, where flushing to disk costs nothing: set TMPDIR to a directory on a disk", filepath.Dir(dir))
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// errJoinStop is err, with what went wrong in ending c after it.
func errJoinStop(err error, c *child) error { return errors.Join(err, c.stop()) }

// pause lets what the last load left under way end, so that it is not the next one's.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(200 * time.Millisecond):
		return nil
	}
}
