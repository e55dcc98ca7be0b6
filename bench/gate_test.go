package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestUnderFloor(t *testing.T) {
	t.Parallel()
	floor := target{"a", ratioMeasure, 0.42, 0.58}
	for ratio, good := range map[float64]bool{0.6: true, 0.42: true, 0.419: false, 0: false} {
		err := underFloor(floor, ratio)
		if (err == nil) != good || err != nil && !errors.Is(err, errGate) {
			t.Errorf("%v of 0.42: %v", ratio, err)
		}
	}
	if text := underFloor(floor, 0.3).Error(); !strings.Contains(text, "0.300") || !strings.Contains(text, "0.42") {
		t.Errorf("it does not say what was measured and asked for: %s", text)
	}
}

// Each row of the gate has a floor to fail at and a record to stand beside, and no record is of
// a row that is measured no more.
func TestGateIsWhole(t *testing.T) {
	t.Parallel()
	r, err := readRecord(filepath.Join("..", docsDir, "gate.json"))
	if err != nil {
		t.Fatal(err)
	}
	rows := chosen(&options{short: true})
	for _, row := range rows {
		if target, ok := targetOf(row.name); !ok || target.floor <= 0 {
			t.Errorf("%s has no floor", row.name)
		}
		if _, ok := r.Rows[row.name]; !ok {
			t.Errorf("%s is not recorded", row.name)
		}
	}
	if len(rows) != len(r.Rows) {
		t.Errorf("%d rows are measured, %d are recorded", len(rows), len(r.Rows))
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	b := &bench{options: &options{record: filepath.Join(t.TempDir(), "gate.json"), rounds: 4, each: 2 * time.Second, passes: 3}, report: sample()}
	if err := b.writeRecord(map[string][]float64{"a": {0.5, 0.4, 0.6}}); err != nil {
		t.Fatal(err)
	}
	r, err := readRecord(b.record)
	if err != nil || r.Rows["a"].Ratio != 0.5 || int(r.Rows["a"].Noise+0.5) != 40 || r.Passes != 3 || r.Rounds != 4 || r.Seconds != 2 || r.Warm != 2 ||
		!r.At.Equal(b.report.At) {
		t.Errorf("%+v %v", r, err)
	}
	for _, text := range []string{
		"no", "{}", `{"rows":{}}`, `{"rows":{"a":{"ratio":0}}}`, `{"rows":{"a":{"ratio":-0.5}}}`, `{"rows":{"a":{}}}`,
		`{"rows":{"a":{"ratoi":0.5}}}`, `{"rows":{"a":{"ratio":0.5}},"round":4}`, `{"rows":{"a":{"ratio":0.5},"a":{"ratio":0.1}}}`,
	} {
		if err := os.WriteFile(b.record, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readRecord(b.record); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

// The gate says what the record was made on, and a fall by a fifth is a warning.
func TestOpenGate(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	path := filepath.Join(t.TempDir(), "gate.json")
	b := &bench{options: &options{record: path, gate: path, rounds: 5, each: 3 * time.Second}, out: &out, report: sample()}
	b.report.Machine.CPU = "the one"
	if err := b.writeRecord(map[string][]float64{mainRow: {0.5}}); err != nil {
		t.Fatal(err)
	}
	b.report.Machine.CPU, b.report.Machine.Cores, b.report.Rounds = "the other", 8, 4
	if err := b.openGate(); err != nil {
		t.Fatal(err)
	}
	b.printRow(result{Name: mainRow, Ratio: spread{Median: 0.43}})
	if strings.Contains(out.String(), "warning") {
		t.Errorf("0.43 of 0.5 is warned of: %s", out.String())
	}
	b.printRow(result{Name: mainRow, Ratio: spread{Median: 0.39}})
	for _, want := range []string{
		"Recorded on the one, measured on the other.", "cores: recorded 2, now 8", "rounds: recorded 5, now 4",
		"warning: the ratio is 0.390; recorded is 0.500", "on the one",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
	b.gate = filepath.Join(t.TempDir(), "none")
	if err := b.openGate(); err == nil {
		t.Error("a record that is not there is read")
	}
}

// Redis is asked for where a row needs it, before anything is measured.
func TestCheckPrograms(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"quotad", "wrk"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	o := &options{quotad: "quotad"}
	for kind, good := range map[string]bool{"": true, backendUpdate: true, backendIncr: false, backendBucketDurable: false} {
		if err := checkPrograms(t.Context(), o, []*row{{}, {shell: kind}}); (err == nil) != good {
			t.Errorf("%q: %v", kind, err)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	ratio := target{"a", ratioMeasure, 0.4, 0.6}
	most := target{"a", allocationsMeasure, 40, 0}
	for _, c := range []struct {
		target target
		value  float64
		want   string
	}{
		{ratio, 0.39, "missed"},
		{ratio, 0.4, "floor met"},
		{ratio, 0.6, "aim met"},
		{most, 41, "missed"},
		{most, 40, "met"},
	} {
		if got := c.target.verdict(c.value); got != c.want {
			t.Errorf("%v of %v: %s, not %s", c.value, c.target.floor, got, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	o, err := parseOptions(nil, io.Discard)
	if err != nil || o.rounds != fullRounds || o.each != fullRun || o.docs != docsDir || o.long || o.passes != 1 {
		t.Errorf("%+v %v", o, err)
	}
	o, err = parseOptions([]string{"-short", "-record", "x", "-long", "-serve", "--lanes=2 --max-queue=5"}, io.Discard)
	if err != nil || o.rounds != shortRounds || o.docs != "" || !o.long || o.passes != recordPasses || len(o.serve) != 2 {
		t.Errorf("%+v %v", o, err)
	}
	for _, args := range []string{
		"-rows (", "-rounds 0x", "-rounds -1", "-rounds 0", "-rounds 1000", "-time 0s", "-rows ^hot$ -rounds=0",
		"-time 1500ms", "-time 1h", "rest",
	} {
		if _, err := parseOptions(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
