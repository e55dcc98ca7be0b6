package main

import (
	"regexp"
	"strings"
	"testing"
)

// The tables of data fit together.
func TestRowsAndTargets(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, r := range allRows {
		s, ok := sets[r.set]
		if names[r.name] || !ok || plans[s.plan] == "" {
			t.Errorf("%q: there twice, or without customers or limits", r.name)
		}
		names[r.name] = true
		if n := r.connections(); n%r.nodeCount() != 0 {
			t.Errorf("%q: %d connections for %d nodes", r.name, n, r.nodeCount())
		}
		if r.short && s.customers > manyCustomers {
			t.Errorf("%q has too many customers for the gate", r.name)
		}
		if r.nodes > 1 && (r.want != admitted || s.customers > manyCustomers) {
			t.Errorf("%q: its customers cannot be hit on each node", r.name)
		}
		if r.shell == "" && r.want.status == "" {
			t.Errorf("%q does not say what must come of it", r.name)
		}
	}
	for _, target := range targets {
		if !names[target.row] {
			t.Errorf("a target of %q, which is no row", target.row)
		}
	}
	if mainRowOf().name != mainRow || !names[millionRow] {
		t.Error("a row that is named is not there")
	}
}

func TestChosen(t *testing.T) {
	t.Parallel()
	if n := len(chosen(&options{})); n != len(allRows) {
		t.Errorf("%d of %d rows", n, len(allRows))
	}
	got := chosen(&options{short: true, rows: regexp.MustCompile("^batch")})
	if len(got) != 2 || !strings.HasPrefix(got[0].name, "batch") {
		t.Errorf("%v", got)
	}
}
