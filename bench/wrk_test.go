package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseWrk(t *testing.T) {
	t.Parallel()
	got, err := parseWrk("Running 3s test\n  9 requests in 2s\nquotad-bench 90000 3000000 12 0 0 0 0\n")
	want := closed{operations: 90_000, statuses: 12, took: 3 * time.Second}
	if err != nil || got != want || got.rate() != 30_000 {
		t.Errorf("%+v %v", got, err)
	}
	for _, out := range []string{"", "unable to connect", "quotad-bench", "quotad-bench 1 2 x"} {
		if _, err := parseWrk(out); !errors.Is(err, errNoResult) {
			t.Errorf("%q: %v", out, err)
		}
	}
	for _, line := range []string{"0 3000000 0 0 0 0 0", "5 3000000 0 1 0 0 0", "5 3000000 0 0 0 0 2"} {
		if _, err := parseWrk("quotad-bench " + line); err == nil {
			t.Errorf("%q is taken for a result", line)
		}
	}
}

func TestBeside(t *testing.T) {
	t.Parallel()
	got := closed{10, 1, time.Second, 2}.beside(closed{20, 2, 3 * time.Second, 3})
	if got != (closed{30, 3, 3 * time.Second, 5}) {
		t.Errorf("%+v", got)
	}
}

func TestWrkEnv(t *testing.T) {
	t.Parallel()
	b := &bench{dir: t.TempDir()}
	for _, c := range []struct {
		load load
		has  string
		not  string
	}{
		{load{pick: uniform}, "COUNT=10000", "SAMPLES="},
		{load{pick: uniform, ids: true}, "IDS=1000000000000", "LIST="},
		{load{pick: zipf}, "SAMPLES=", "LIST="},
		{load{batch: 3}, "LIST=", "HEAD="},
	} {
		env, err := b.wrkEnv("0", time.Second, templateOf(&row{set: "two", load: c.load}, "secret", "run"))
		if err != nil {
			t.Fatal(err)
		}
		has := func(prefix string) bool {
			return slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, prefix) })
		}
		if !has(c.has) || has(c.not) || !has("SEED=") {
			t.Errorf("%+v: %q", c.load, env)
		}
	}
}
