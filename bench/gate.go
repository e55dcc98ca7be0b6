package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-json-experiment/json"
)

// warnShare is the share of a recorded ratio under which a warning is printed: what costs a fifth
// is seen. It never fails the gate, because another processor alone moves a ratio by a quarter.
const warnShare = 0.8

// gateTries is how often a row is measured that stays under its floor. One run on a busy machine
// says little.
const gateTries = 3

// A record is what the gate prints beside what it measures.
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

// otherThan says in what a record was made otherwise than a run, but for the processor.
func (r *record) otherThan(run *report) (notes []string) {
	for _, d := range []struct {
		what     string
		was, now any
	}{
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

// fell is the warning about a ratio that is a fifth under the recorded one, or empty.
func (r *record) fell(name string, ratio float64) string {
	was := r.Rows[name]
	if ratio >= warnShare*was.Ratio {
		return ""
	}
	return fmt.Sprintf("warning: the ratio is %.3f; recorded is %.3f (noise %.0f %%), on %s", ratio, was.Ratio, was.Noise, r.Machine.CPU)
}

// keep sums up the ratios of a row's passes.
func keep(ratios []float64) kept {
	s := spreadOf(ratios)
	return kept{Ratio: s.Median, Noise: 100 * per(s.Max-s.Min, s.Median)}
}

var errGate = errors.New("under the floor")

// checkGate measures a row again while its ratio is under its floor, at most gateTries times in
// all. The best of them counts.
func (b *bench) checkGate(ctx context.Context, r *row, best result) (result, error) {
	t, ok := targetOf(r.name)
	if !ok {
		return best, errors.New("the row has no floor: give it one in targets.go")
	}
	for range gateTries - 1 {
		if t.verdict(best.Ratio.Median) != missed {
			break
		}
		b.printRow(best)
		fmt.Fprintf(b.out, "    %.3f is under the floor of %v: once more\n", best.Ratio.Median, t.floor)
		again, err := b.measure(ctx, r, b.rounds)
		if err != nil {
			return again, err
		}
		if again.Ratio.Median > best.Ratio.Median {
			best = again
		}
	}
	return best, underFloor(t, best.Ratio.Median)
}

// underFloor is an error where a ratio is under its floor.
func underFloor(t target, ratio float64) error {
	if t.verdict(ratio) != missed {
		return nil
	}
	return fmt.Errorf("%w: the best ratio of %d is %.3f, at least %v is asked for", errGate, gateTries, ratio, t.floor)
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
