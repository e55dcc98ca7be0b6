package main

import (
	"context"
	"math"
)

// A row runs before its first round until it is steady: two runs in succession are this
// close, as a share of the faster one. On a restless machine they may never be, so there
// is an end to it.
const (
	maxWarmUps = 4
	steadyGap  = 0.05
)

// warmUp repeats a run until it is steady, and returns what each came to, operations a second.
func warmUp(run func() (rate float64, err error)) (rates []float64, err error) {
	for len(rates) < maxWarmUps && !steady(rates) {
		rate, err := run()
		if err != nil {
			return rates, err
		}
		rates = append(rates, rate)
	}
	return rates, nil
}

func steady(rates []float64) bool {
	if len(rates) < 2 {
		return false
	}
	last, one := rates[len(rates)-1], rates[len(rates)-2]
	return math.Abs(last-one) < steadyGap*max(last, one)
}

// warmRow runs the row until it is steady.
func (b *bench) warmRow(ctx context.Context, m *match) ([]float64, error) {
	return warmUp(func() (float64, error) {
		got, err := b.load(ctx, m, m.row, m.subject, b.each)
		if err != nil {
			return 0, err
		}
		return got.rate(), pause(ctx)
	})
}
