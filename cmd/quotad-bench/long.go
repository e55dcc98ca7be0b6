package main

import (
	"context"
	"fmt"
	"time"
)

// long is what the main row's load comes to when it goes on.
type long struct {
	Minutes    float64 `json:"minutes"`
	Hits       spread  `json:"hits"` // a second, by the minute
	HOT        float64 `json:"hot_percent"`
	WAL        float64 `json:"wal_bytes"`  // a hit
	Checkpoint bool    `json:"checkpoint"` // one began meanwhile: pages were logged whole
}

// longEnough is from how many minutes on the share of HOT updates is judged: pages have
// filled up and been cleaned many times.
const longEnough = 10

// hits is how many there were, and how they moved when it went on for more than a minute.
func (l *long) hits() string {
	text := whole(l.Hits.Median) + " hits/s"
	if l.Minutes > 1 {
		text += " (" + whole(l.Hits.Min) + "–" + whole(l.Hits.Max) + " by the minute)"
	}
	return text
}

func (l *long) checkpoints() string {
	if l.Checkpoint {
		return ", the pages included that are logged whole behind a checkpoint"
	}
	return "; no checkpoint began meanwhile"
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
	for left := b.longTime; left > 0; left -= time.Minute {
		run, err := b.load(ctx, m, r, address, min(left, time.Minute))
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
	l := &long{Minutes: b.longTime.Minutes(), Hits: spreadOf(rates), HOT: c.HOT, WAL: c.WAL, Checkpoint: c.Checkpoint}
	b.report.Long = l
	fmt.Fprintf(b.out, "    %s of %q: %s, %.2f %% of updates HOT, %.0f bytes of WAL a hit%s\n",
		minutes(l.Minutes), r.name, l.hits(), l.HOT, l.WAL, l.checkpoints())
	return nil
}
