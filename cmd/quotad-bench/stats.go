package main

import "slices"

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
