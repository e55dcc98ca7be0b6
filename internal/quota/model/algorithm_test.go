package model

import "testing"

// TestEachAlgorithmIsDescribed: what no other test would miss of an algorithm.
func TestEachAlgorithmIsDescribed(t *testing.T) {
	for _, d := range algorithms {
		if d.number.is() != d || d.number.String() != d.name || AlgorithmNamed(d.name) != d.number || d.number == 0 {
			t.Errorf("%s is not found by its number %d, or by its name", d.name, d.number)
		}
		if d.compile == nil {
			t.Errorf("%s has no rules", d.name)
		}
		if d.hours != nothingByHour && d.window == noWindow {
			t.Errorf("%s has no window, and is played by hours", d.name)
		}
		if d.compared && d.window == noWindow {
			t.Errorf("%s has no window, and is in the playground", d.name)
		}
	}
	for _, n := range []Algorithm{-1, 0, 99} {
		if n.String() != "" || n.Refills() || n.OnlyHolds() {
			t.Errorf("%d is an algorithm", n)
		}
	}
}

// TestMulDivUp: a quotient is rounded up, and stops where 64 bits do.
func TestMulDivUp(t *testing.T) {
	for _, c := range [][4]int64{{7, 3, 2, 11}, {1 << 62, 4, 1, 1<<63 - 1}, {1 << 62, 1 << 62, 1 << 62, 1 << 62}, {0, 5, 3, 0}} {
		if got := mulDivUp(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%d·%d/%d is %d", c[0], c[1], c[2], got)
		}
	}
}
