package main

import (
	"encoding/json"
	"os"
	"path/filepath"
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
