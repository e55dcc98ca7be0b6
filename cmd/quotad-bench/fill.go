package main

import (
	"context"
	"fmt"
)

// memory is what many customers take, in quotad and on disk.
type memory struct {
	Few       footprint `json:"few"`  // after so few customers were each hit once
	Many      footprint `json:"many"` // after all of them were
	Cached    float64   `json:"cached"`
	PerCached float64   `json:"bytes_per_cached_customer"` // by what quotad grew from few to many
	Counter   float64   `json:"bytes_per_counter"`         // on disk, table and index
}

type footprint struct {
	Customers int     `json:"customers"`
	Now       float64 `json:"mb"`      // VmRSS, MB; 0: not known on this system
	Peak      float64 `json:"peak_mb"` // VmHWM
}

// fewCustomers are hit first where what more of them take is measured.
const fewCustomers = 10_000

const mb = 1e6

// fill has a quotad without memories hit each customer of a large set once, so that its
// rows find all counters there, and keeps what that takes.
func (b *bench) fill(ctx context.Context, name string, customers int) error {
	if err := b.service.restart(ctx); err != nil {
		return err
	}
	before, err := b.counters(ctx)
	if err != nil {
		return err
	}
	m := &memory{}
	if m.Few, err = b.hitAndLook(ctx, name, 0, fewCustomers); err != nil {
		return err
	}
	if m.Many, err = b.hitAndLook(ctx, name, fewCustomers, customers); err != nil {
		return err
	}
	text, err := b.service.get(ctx, b.service.nodes[0], "/metrics")
	if err != nil {
		return err
	}
	m.Cached = float64(customers) - parseMetrics(text)[evictedMetric]
	m.PerCached = per((m.Many.Now-m.Few.Now)*mb, m.Cached-fewCustomers)
	after, err := b.counters(ctx)
	if err != nil {
		return err
	}
	m.Counter = per(after.bytes-before.bytes, after.rows-before.rows)
	b.report.Memory = m
	fmt.Fprintf(b.out, "    %s customers were each hit once: %.0f bytes on disk each; quotad's memory %.0f MB (at most %.0f), after %s of them %.0f MB (%.0f); %.0f bytes for each of %s in memory\n",
		whole(float64(customers)), m.Counter, m.Many.Now, m.Many.Peak, whole(fewCustomers), m.Few.Now, m.Few.Peak, m.PerCached, whole(m.Cached))
	return nil
}

func (b *bench) hitAndLook(ctx context.Context, name string, from, to int) (footprint, error) {
	if err := b.hitEach(ctx, name, from, to); err != nil {
		return footprint{}, err
	}
	now, most, _ := resident(b.service.nodes[0].pid())
	return footprint{Customers: to, Now: float64(now) / mb, Peak: float64(most) / mb}, nil
}

// counterSizes is how large the table of counters is.
type counterSizes struct{ rows, bytes float64 }

func (b *bench) counters(ctx context.Context) (c counterSizes, err error) {
	err = b.service.db.QueryRow(ctx, `SELECT count(*), pg_total_relation_size('counters') FROM counters`).Scan(&c.rows, &c.bytes)
	return c, err
}
