package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/common/model"
)

// read parses metrics that can be read.
func read(t *testing.T, text string) metrics {
	t.Helper()
	m, err := parseMetrics([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func counts(t *testing.T, ok, refusedOnes, busy, allowed float64) metrics {
	t.Helper()
	return read(t, fmt.Sprintf(`
quotad_http_requests_total{method="POST",route="/v1/hits",status="200"} %f
quotad_http_requests_total{method="POST",route="/v1/hits",status="429"} %f
quotad_http_requests_total{method="POST",route="/v1/hits",status="503"} %f
quotad_http_requests_total{method="GET",route="/metrics",status="200"} 1e9
quotad_hits_total{outcome="allowed"} %f
quotad_hits_total{outcome="refused"} %f
`, ok, refusedOnes, busy, allowed, ok+refusedOnes-allowed))
}

// A row whose answers are not what it is about is not measured.
func TestWantCheck(t *testing.T) {
	t.Parallel()
	before := counts(t, 500, 500, 0, 500)
	for _, c := range []struct {
		name  string
		after metrics
		cut   int
		good  bool
	}{
		{"all admitted", counts(t, 100_500, 500, 0, 100_500), 0, true},
		{"a few refused", counts(t, 100_500, 550, 0, 100_500), 0, true},
		{"many refused", counts(t, 100_500, 1500, 0, 100_500), 0, false},
		{"busy", counts(t, 100_500, 500, 1000, 100_500), 0, false},
		{"cut off at the end", counts(t, 100_500, 500, 256, 100_500), 256, true},
		{"200, but another outcome", counts(t, 100_500, 500, 0, 90_500), 0, false},
		{"nothing at all", counts(t, 500, 500, 0, 500), 0, false},
	} {
		err := admitted.check(before, c.after, c.cut, 1)
		if (err == nil) != c.good || err != nil && !errors.Is(err, errAnswers) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := fromMemory.check(before, counts(t, 100_500, 500, 0, 100_500), 0, 1); err == nil {
		t.Error("admitted hits in a row of refusals")
	}
}

func TestCheckStatuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		statuses      int
		failing, good bool
	}{
		{0, false, true}, {1, false, false}, {100_000, true, true}, {99_950, true, true}, {99_000, true, false},
	} {
		err := (&match{failing: c.failing}).checkStatuses(closed{operations: 100_000, statuses: c.statuses})
		if (err == nil) != c.good {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestParseMetrics(t *testing.T) {
	t.Parallel()
	m := append(read(t, "# HELP x y\nplain 3\nx{a=\"b c\",d=\"e\"} 1.5e+06\nx{a=\"f\"} 1\n\n"), read(t, "plain 4\n")...)
	in := func(value model.LabelValue) func(model.Metric) bool {
		return func(labels model.Metric) bool { return labels["a"] == value }
	}
	if len(m) != 4 || m.sum("plain", all) != 7 || m.sum("x", in("b c")) != 1.5e6 || m.sum("x", all) != 1.5e6+1 || m.sum("x", in("z")) != 0 {
		t.Errorf("%v", m)
	}
	for _, bad := range []string{"bad\n", "worse x\n"} {
		if _, err := parseMetrics([]byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestCostOf(t *testing.T) {
	t.Parallel()
	before := snapshot{metrics: read(t, mallocsMetric+" 100\n"), cpuKnown: true, tables: tableStats{wal: 1000, checkpoints: 3, updated: 10, hot: 10}}
	after := snapshot{
		metrics: read(t, mallocsMetric+" 4100\n"+batchesMetric+" 2\n"), cpuKnown: true,
		quotad: 2e6, server: 1e6, tables: tableStats{wal: 21_000, checkpoints: 3, commits: 4, updated: 110, hot: 109},
	}
	r := &row{load: load{batch: 2}}
	got := costOf(before, after, closed{operations: 50, cpu: 500e3}, r)
	want := cost{Allocations: 40, QuotadCPU: 20, ServerCPU: 10, LoadCPU: 5, RoundTrips: 0.02, Transactions: 0.04, WAL: 200, HOT: 99}
	if *got != want {
		t.Errorf("%+v\nnot %+v", *got, want)
	}
	after.tables.checkpoints, after.cpuKnown = 4, false
	if got := costOf(before, after, closed{operations: 50}, r); !got.Checkpoint || got.QuotadCPU != 0 {
		t.Errorf("%+v", got)
	}
	for _, l := range []load{{ids: true}, {reserve: true}} {
		if got := costOf(before, after, closed{operations: 50}, &row{load: l}); got.RoundTrips != 0.08 || !got.AtLeast {
			t.Errorf("the worker's round trips of %+v: %+v", l, got)
		}
	}
}

func TestCheckpointsOf(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"15.18 (Debian 15.18-0+deb12u1)": checkpointsSQL16, "16.1": checkpointsSQL16, "17.2": checkpointsSQL, "18beta1": checkpointsSQL, "": checkpointsSQL,
	} {
		if got := checkpointsOf(version); got != want {
			t.Errorf("%q: %s", version, got)
		}
	}
}
