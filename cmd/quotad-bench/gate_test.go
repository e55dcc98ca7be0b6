package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestVerdictOfTheGate(t *testing.T) {
	t.Parallel()
	was := kept{Ratio: 0.5, Noise: 4}
	for ratio, good := range map[float64]bool{0.6: true, 0.5: true, 0.4: true, 0.399: false, 0: false} {
		err := verdict(was, ratio)
		if (err == nil) != good || err != nil && !errors.Is(err, errGate) {
			t.Errorf("%v of 0.5: %v", ratio, err)
		}
	}
	if text := verdict(was, 0.3).Error(); !strings.Contains(text, "0.300") || !strings.Contains(text, "0.400") {
		t.Errorf("it does not say what was measured and asked for: %s", text)
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	b := &bench{options: &options{record: filepath.Join(t.TempDir(), "gate.json"), rounds: 4, each: 2 * time.Second, warm: time.Second, passes: 3}, report: sample()}
	if err := b.writeRecord(map[string][]float64{"a": {0.5, 0.4, 0.6}}); err != nil {
		t.Fatal(err)
	}
	r, err := readRecord(b.record)
	if err != nil || r.Rows["a"].Ratio != 0.5 || int(r.Rows["a"].Noise+0.5) != 40 || r.Passes != 3 || r.Rounds != 4 || r.Seconds != 2 || r.Warm != 1 || !r.At.Equal(b.report.At) {
		t.Errorf("%+v %v", r, err)
	}
	if err := os.WriteFile(b.record, []byte("no"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRecord(b.record); err == nil {
		t.Error("what is no record is read")
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
	if err != nil || o.rounds != fullRounds || o.each != fullRun || o.docs != docsDir || o.longTime != 0 || o.passes != 1 {
		t.Errorf("%+v %v", o, err)
	}
	o, err = parseOptions([]string{"-short", "-record", "x", "-long", "-serve", "--lanes=2 --max-queue=5"}, io.Discard)
	if err != nil || o.rounds != shortRounds || o.docs != "" || o.longTime != longLoad || o.passes != recordPasses || len(o.serve) != 2 {
		t.Errorf("%+v %v", o, err)
	}
	for _, args := range []string{"-rows (", "-rounds 0x", "-rounds -1", "-rounds 0", "-time 0s", "-warm 0", "-passes 0", "-rows ^hot$ -rounds=0", "-time 1500ms", "-passes 1000", "rest", "-long -long-time 48h"} {
		if _, err := parseOptions(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
