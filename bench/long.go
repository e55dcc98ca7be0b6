package main

import (
	"context"
	"fmt"
	"time"
)

// long is what the main row's load comes to when it goes on.
type long struct {
	Minutes    int     `json:"minutes"`
	Hits       spread  `json:"hits"` // a second, by the minute
	HOT        float64 `json:"hot_percent"`
	WAL        float64 `json:"wal_bytes"`  // a hit
	Checkpoint bool    `json:"checkpoint"` // one began meanwhile: pages were logged whole
}

// longMinutes is how long: pages fill up and are cleaned many times.
const longMinutes = 10

// String is a sentence.
func (l *long) String() string {
	checkpoints := "; no checkpoint began meanwhile"
	if l.Checkpoint {
		checkpoints = ", the pages included that are logged whole behind a checkpoint"
	}
	return fmt.Sprintf("%d minutes of the first row's load: %s hits/s (%s–%s by the minute), %.2f %% of updates HOT, %.0f bytes of WAL a hit%s.\n",
		longMinutes, whole(l.Hits.Median), whole(l.Hits.Min), whole(l.Hits.Max), l.HOT, l.WAL, checkpoints)
}

// goOn keeps up the main row's load, minute by minute.
func (b *bench) goOn(ctx context.Context) error {
	r := mainRowOf()
	if err := b.service.scale(ctx, 1); err != nil {
		return err
	}
	if err := b.makeSet(ctx, r.set); err != nil {
		return err
	}
	m := &match{row: r, single: r}
	address := []string{b.service.nodes[0].address}
	before, err := b.snapshot(ctx)
	if err != nil {
		return err
	}
	var all closed
	var rates []float64
	for range longMinutes {
		run, err := b.load(ctx, m, r, address, time.Minute)
		if err != nil {
			return err
		}
		all, rates = all.beside(run), append(rates, run.rate())
	}
	after, err := b.snapshot(ctx)
	if err != nil {
		return err
	}
	if err := r.want.check(before.metrics, after.metrics, len(rates)*r.connections(), 1); err != nil {
		return err
	}
	c := costOf(before, after, all, r)
	b.report.Long = &long{Minutes: longMinutes, Hits: spreadOf(rates), HOT: c.HOT, WAL: c.WAL, Checkpoint: c.Checkpoint}
	_, err = fmt.Fprint(b.out, "    ", b.report.Long)
	return err
}
