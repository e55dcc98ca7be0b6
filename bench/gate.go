package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
)

// gateShare is how much of a recorded ratio must be reached: what costs a fifth is seen.
const gateShare = 0.8

// A record is what the gate compares with.
type record struct {
	At      time.Time       `json:"at"`
	Version string          `json:"version"` // of quotad
	Machine machine         `json:"machine"`
	Passes  int             `json:"passes"`
	Rounds  int             `json:"rounds"` // of each pass
	Seconds float64         `json:"seconds_a_run"`
	Warm    float64         `json:"seconds_a_warm_up"`
	Rows    map[string]kept `json:"rows"`
}

// kept is one row of a record: the median ratio of several passes, and how far their
// medians lay apart, in percent of it, which is the noise.
type kept struct {
	Ratio float64 `json:"ratio"`
	Noise float64 `json:"noise_percent"`
}

// readRecord reads a record that says something: a field of another name than those above
// would leave its own at 0, which every ratio reaches.
func readRecord(path string) (*record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(text, r, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(r.Rows) == 0 {
		return nil, fmt.Errorf("%s: no rows", path)
	}
	for name, k := range r.Rows {
		if k.Ratio <= 0 {
			return nil, fmt.Errorf("%s: the ratio of %q is %v", path, name, k.Ratio)
		}
	}
	return r, nil
}

// covered is an error when a row was recorded that is not among those to be measured: it
// may be as slow as it likes.
func (r *record) covered(rows []*row) error {
	var missed []string
	for _, name := range slices.Sorted(maps.Keys(r.Rows)) {
		if !slices.ContainsFunc(rows, func(row *row) bool { return row.name == name }) {
			missed = append(missed, name)
		}
	}
	if len(missed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: recorded and not measured: %q; record again with `make bench-record`", errMissed, missed)
}

// otherThan says in what a record was made otherwise than a run.
func (r *record) otherThan(run *report) (notes []string) {
	for _, d := range []struct {
		what     string
		was, now any
	}{
		{"CPU", r.Machine.CPU, run.Machine.CPU},
		{"cores", r.Machine.Cores, run.Machine.Cores},
		{"rounds", r.Rounds, run.Rounds},
		{"seconds a run", r.Seconds, run.Seconds},
	} {
		if d.was != d.now {
			notes = append(notes, fmt.Sprintf("%s: recorded %v, now %v", d.what, d.was, d.now))
		}
	}
	return notes
}

// keep sums up the ratios of a row's passes.
func keep(ratios []float64) kept {
	s := spreadOf(ratios)
	return kept{Ratio: s.Median, Noise: 100 * per(s.Max-s.Min, s.Median)}
}

var (
	errGate   = errors.New("slower than recorded")
	errMissed = errors.New("a row is missing")
)

// checkGate compares a row with the record, and measures it once more, twice as long,
// before it is called slower: one run on a busy machine says little.
func (b *bench) checkGate(ctx context.Context, recorded *record, r *row, got result) (result, error) {
	was, ok := recorded.Rows[r.name]
	if !ok {
		return got, fmt.Errorf("it is not in %s: record it with `make bench-record`", b.gate)
	}
	if verdict(was, got.Ratio.Median) == nil {
		return got, nil
	}
	b.printRow(got)
	fmt.Fprintf(b.out, "    %.3f is under %v of the recorded %.3f: once more, in twice as many rounds\n",
		got.Ratio.Median, gateShare, was.Ratio)
	again, err := b.measure(ctx, r, 2*b.rounds)
	if err == nil {
		err = verdict(was, again.Ratio.Median)
	}
	return again, err
}

// verdict is an error where a ratio is under its share of the recorded one.
func verdict(was kept, ratio float64) error {
	least := gateShare * was.Ratio
	if ratio >= least {
		return nil
	}
	return fmt.Errorf("%w: the ratio is %.3f, recorded is %.3f (noise %.0f %%), at least %.3f is asked for",
		errGate, ratio, was.Ratio, was.Noise, least)
}

// writeRecord writes the ratios of all passes.
func (b *bench) writeRecord(passes map[string][]float64) error {
	r := record{
		At: b.report.At, Version: b.report.Version, Machine: b.report.Machine,
		Passes: b.passes, Rounds: b.rounds, Seconds: b.each.Seconds(), Warm: b.each.Seconds(), Rows: map[string]kept{},
	}
	for name, ratios := range passes {
		r.Rows[name] = keep(ratios)
	}
	return writeJSON(b.record, r)
}
