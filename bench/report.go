package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A report is all that a run has found; latest.json is one.
type report struct {
	At      time.Time `json:"at"`
	Version string    `json:"version"` // of quotad
	Machine machine   `json:"machine"`
	Flags   []string  `json:"serve_flags,omitempty"` // of quotad, beside the bench's own
	Rounds  int       `json:"rounds"`
	Seconds float64   `json:"seconds_a_run"`
	Warm    float64   `json:"seconds_a_warm_up"` // of which a row has up to maxWarmUps
	Rows    []result  `json:"rows"`
	Memory  *memory   `json:"memory,omitempty"`
	Long    *long     `json:"long,omitempty"`
	Targets []reached `json:"targets"`
}

// reached is a target and what there was.
type reached struct {
	Row      string  `json:"row"`
	Measure  string  `json:"measure"`
	Floor    float64 `json:"floor"`
	Aim      float64 `json:"aim,omitempty"`
	Measured float64 `json:"measured"`
	Verdict  string  `json:"verdict"`
}

// judge fills in the targets that were measured.
func (r *report) judge() {
	r.Targets = nil
	for _, t := range targets {
		if value, known := t.measure.of(r, t.row); known {
			r.Targets = append(r.Targets, reached{
				Row: t.row, Measure: t.measure.name, Floor: t.floor, Aim: t.aim, Measured: value, Verdict: t.verdict(value),
			})
		}
	}
}

// writeReport writes latest.json and the tables in README.md.
func (b *bench) writeReport() error {
	b.report.judge()
	if err := os.MkdirAll(b.docs, 0o755); err != nil { //nolint:gosec // documentation
		return err
	}
	if err := writeJSON(filepath.Join(b.docs, "latest.json"), b.report); err != nil {
		return err
	}
	path := filepath.Join(b.docs, "README.md")
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return writeFile(path, []byte(between(string(old), b.report.markdown())))
}

func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(text, '\n'))
}

func writeFile(path string, text []byte) error {
	return os.WriteFile(path, text, 0o644) //nolint:gosec // documentation
}

// The table that is printed as the rows are done.

const tableFormat = "%-50s %5s  %9s %9s  %6s %15s  %8s  %5s %5s  %6s %6s %7s %6s\n"

func (b *bench) printHead() {
	fmt.Fprintf(b.out, tableFormat, "", "conns", "handler/s", "hits/s", "ratio", "(min–max)", "recorded", "floor", "aim",
		"CPU µs", "pg µs", "allocs", "WAL B")
}

func (b *bench) printRow(r result) {
	if r.Failed != "" {
		fmt.Fprintf(b.out, "FAILED %s\n", r.Failed)
	}
	if r.Ratio.Median == 0 {
		return
	}
	if r.Name == mainRow {
		fmt.Fprintf(b.out, tableFormat, "no-work handler", fmt.Sprint(r.Connections), whole(r.Handler.Median), "", "1.000", "", "", "", "", "", "", "", "")
	}
	cells := []any{
		r.Name, fmt.Sprint(r.Connections), whole(r.Handler.Median), whole(r.Hits.Median),
		fmt.Sprintf("%.3f", r.Ratio.Median), fmt.Sprintf("(%.3f–%.3f)", r.Ratio.Min, r.Ratio.Max), "", "", "", "", "", "", "",
	}
	fell := ""
	if b.recorded != nil {
		cells[6] = fmt.Sprintf("%.3f", b.recorded.Rows[r.Name].Ratio)
		fell = b.recorded.fell(r.Name, r.Ratio.Median)
	}
	if t, ok := targetOf(r.Name); ok {
		cells[7], cells[8] = t.measure.shown(t.floor), t.measure.shown(t.aim)
	}
	if c := r.Cost; c != nil {
		cells[9], cells[10] = fmt.Sprintf("%.1f", c.QuotadCPU), fmt.Sprintf("%.1f", c.ServerCPU)
		cells[11], cells[12] = fmt.Sprintf("%.1f", c.Allocations), whole(c.WAL)
	}
	fmt.Fprintf(b.out, tableFormat, cells...)
	if fell != "" {
		fmt.Fprintf(b.out, "    %s\n", fell)
	}
	if l := r.Latency; l != nil {
		fmt.Fprintf(b.out, "    open loop, %s/s: p50 %.2f  p90 %.2f  p99 %.2f  p99.9 %.2f  max %.1f ms; handler p99 %.2f; p99 over it %.2f (%.2f–%.2f) ms\n",
			whole(l.Rate), l.Row.P50, l.Row.P90, l.Row.P99, l.Row.P999, l.Row.Max, l.Handler.P99, l.Over.Median, l.Over.Min, l.Over.Max)
	}
}

// whole prints a number without decimals, in groups of three digits.
func whole(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// spread is what the rounds of a row came to.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spreadOf is the median of values with the least and the greatest; zeros of none.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return spread{Median: median(sorted), Min: sorted[0], Max: sorted[len(sorted)-1]}
}

// median of sorted values: of an even number, the mean of the two in the middle.
func median(sorted []float64) float64 {
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// per is a by b, and 0 where there is no b.
func per(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
