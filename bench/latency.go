package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// quantiles of latencies, in ms.
type quantiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

// latency is what an open loop says of a row, beside the handler at the same rate: over
// all rounds, and for the 99th percentile the rounds' differences.
type latency struct {
	Rate    float64   `json:"rate"` // requests a second: half of the row's peak
	Handler quantiles `json:"handler"`
	Row     quantiles `json:"row"`
	Over    spread    `json:"p99_over_handler"` // ms
}

// latencyTimes is how many rounds of open load there are for each of closed load: tails
// differ much more from round to round than rates do.
const latencyTimes = 3

// compareLatency plays rounds of open load at a rate.
func (b *bench) compareLatency(ctx context.Context, m *match, rate float64, rounds int) (*latency, error) {
	var sums [2]*hdrhistogram.Histogram
	var over []float64
	for i := range rounds {
		var p99 [2]float64
		for j := range sums {
			which := (i + j) % 2 // 0: the handler, 1: the row
			got, err := b.open(ctx, m, which, rate)
			if err != nil {
				return nil, fmt.Errorf("open loop at %.0f a second, %s: %w", rate, [...]string{"handler", "row"}[which], err)
			}
			p99[which] = float64(got.ValueAtQuantile(99)) / 1e3
			if sums[which] == nil {
				sums[which] = got
			} else {
				sums[which].Merge(got)
			}
		}
		over = append(over, p99[1]-p99[0])
	}
	return &latency{Rate: rate, Handler: quantilesOf(sums[0]), Row: quantilesOf(sums[1]), Over: spreadOf(over)}, nil
}

// open is one run of open load, on the handler or on the row.
func (b *bench) open(ctx context.Context, m *match, which int, rate float64) (*hdrhistogram.Histogram, error) {
	b.seed++
	o := &openRun{
		template: templateOf(m.row, b.service.backend, b.runID()),
		rate:     rate, conns: m.row.connections(), took: b.each, seed: b.seed, failing: m.failing,
	}
	got, err := o.run(ctx, [...][]string{m.handler, m.subject}[which][0])
	return got, errors.Join(err, pause(ctx))
}

func quantilesOf(h *hdrhistogram.Histogram) quantiles {
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1e3 }
	return quantiles{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / 1e3}
}
