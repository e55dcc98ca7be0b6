package main

import (
	"errors"
	"slices"
	"testing"
)

// A row that still becomes faster is not measured, as long as there is hope.
func TestWarmUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ comes, want []float64 }{
		{[]float64{100, 96, 50}, []float64{100, 96}},
		{[]float64{100, 104, 50}, []float64{100, 104}},
		{[]float64{100, 95, 100.1, 100, 50}, []float64{100, 95, 100.1, 100}},
		{[]float64{22_367, 27_703, 34_894, 35_747, 1}, []float64{22_367, 27_703, 34_894, 35_747}},
		{[]float64{10, 20, 30, 40, 40}, []float64{10, 20, 30, 40}},
	} {
		next := 0
		got, err := warmUp(func() (float64, error) { next++; return c.comes[next-1], nil })
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %v %v", c.comes, got, err)
		}
	}
	if got, err := warmUp(func() (float64, error) { return 1, errAnswers }); !errors.Is(err, errAnswers) || len(got) > 0 {
		t.Errorf("%v %v", got, err)
	}
}
