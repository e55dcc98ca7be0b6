package main

import (
	"context"
	"errors"
	"fmt"

	"quotad/internal/postgres/embedded"
)

// memory is what many customers take, in quotad and on disk.
type memory struct {
	Few     footprint `json:"few"`    // after so few customers were each hit once
	Many    footprint `json:"many"`   // after all of them were
	Loaded  footprint `json:"loaded"` // after the rows' rounds on all of them, too
	Ready   float64   `json:"kept_ready"`
	Each    weights   `json:"bytes_each"`
	Counter float64   `json:"bytes_per_counter"` // on disk, table and index, before a vacuum
}

// weights are what one customer more takes of quotad, bytes.
type weights struct {
	Ready  float64 `json:"ready"`  // with its counter, as a quarter of --cache-memory holds them
	Packed float64 `json:"packed"` // in the rest of --cache-memory
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
	if m.Few, err = b.hitAndLook(ctx, b.service.nodes[0], name, 0, fewCustomers); err != nil {
		return err
	}
	if m.Many, err = b.hitAndLook(ctx, b.service.nodes[0], name, fewCustomers, customers); err != nil {
		return err
	}
	text, err := b.service.get(ctx, b.service.nodes[0], "/metrics")
	if err != nil {
		return err
	}
	counts, err := parseMetrics(text)
	if err != nil {
		return err
	}
	m.Ready = float64(customers) - counts.sum(evictedMetric, all)
	after, err := b.counters(ctx)
	if err != nil {
		return err
	}
	m.Counter = per(after.bytes-before.bytes, after.rows-before.rows)
	if m.Each, err = b.weigh(ctx, name, int(m.Ready), customers); err != nil {
		return err
	}
	// What another node has hit meanwhile this one knows no longer: it is not what its rows are about.
	if err := b.hitEach(ctx, b.service.nodes[0], name, 0, min(int(m.Ready)+packedWeighed, customers)); err != nil {
		return err
	}
	b.report.Memory = m
	fmt.Fprintf(b.out, "    %s customers were each hit once: %.0f bytes on disk each; quotad's memory %.0f MB (at most %.0f), after %s of them %.0f MB (%.0f); %.0f bytes for each of %s kept ready, %.0f for one packed\n",
		whole(float64(customers)), m.Counter, m.Many.Now, m.Many.Peak, whole(fewCustomers), m.Few.Now, m.Few.Peak, m.Each.Ready, whole(m.Ready), m.Each.Packed)
	return nil
}

// What a customer takes is seen where little else is in memory: by how a node grows that
// collects its garbage at every tenth of what lives. It has been hit for a few customers
// before, so that its connections and buffers are there.
const (
	leanGOGC      = "GOGC=10"
	warmCustomers = 2000
	packedWeighed = 200_000
)

// weigh hits customers at such a node, until as many as it keeps ready are, and then others.
func (b *bench) weigh(ctx context.Context, name string, ready, customers int) (w weights, err error) {
	url, _ := embedded.RunningURL(b.service.dataDir())
	if err := b.service.startNode(ctx, "--database-url="+url, leanGOGC); err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, b.service.scale(ctx, 1)) }()
	n := b.service.nodes[1]
	var at [3]footprint
	from := 0
	for i, to := range [...]int{warmCustomers, ready, min(ready+packedWeighed, customers)} {
		if to <= from {
			return weights{}, nil // a cache as large as that is not weighed
		}
		if at[i], err = b.hitAndLook(ctx, n, name, from, to); err != nil {
			return w, err
		}
		from = to
	}
	grown := func(a, b footprint) float64 { return per((b.Now-a.Now)*mb, float64(b.Customers-a.Customers)) }
	return weights{Ready: grown(at[0], at[1]), Packed: grown(at[1], at[2])}, nil
}

func (b *bench) hitAndLook(ctx context.Context, n *node, name string, from, to int) (footprint, error) {
	if err := b.hitEach(ctx, n, name, from, to); err != nil {
		return footprint{}, err
	}
	now, most, _ := resident(n.pid())
	return footprint{Customers: to, Now: float64(now) / mb, Peak: float64(most) / mb}, nil
}

// lookAgain keeps what a row's rounds on many customers have made of the memory of the
// quotad that was filled with them.
func (b *bench) lookAgain(r *row) {
	m := b.report.Memory
	if m == nil || sets[r.set].customers != m.Many.Customers || r.shell != "" {
		return
	}
	now, most, ok := resident(b.service.nodes[0].pid())
	if !ok {
		return
	}
	m.Loaded = footprint{Customers: m.Many.Customers, Now: float64(now) / mb, Peak: max(m.Loaded.Peak, float64(most)/mb)}
	fmt.Fprintf(b.out, "    after the load of %q quotad's memory is %.0f MB (at most %.0f)\n", r.name, m.Loaded.Now, m.Loaded.Peak)
}

// counterSizes is how large the table of counters is.
type counterSizes struct{ rows, bytes float64 }

func (b *bench) counters(ctx context.Context) (c counterSizes, err error) {
	err = b.service.db.QueryRow(ctx, `SELECT count(*), pg_total_relation_size('counters') FROM counters`).Scan(&c.rows, &c.bytes)
	return c, err
}
