package main

import (
	"fmt"
	"runtime/debug"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/api/serve"
	"quotad/internal/quota"
)

// gauges is a prometheus.Collector. At each scrape, it reads the statistics of the packages behind the API.
type gauges struct {
	node  *node
	build *prometheus.Desc
	// degraded is 1 while /readyz reports that the node is degraded.
	degraded *prometheus.Desc
	evicted  *prometheus.Desc
	cleaned  *prometheus.Desc
	numbered *prometheus.Desc
	sent     *prometheus.Desc
	wentBack *prometheus.Desc
	stats    []stat
	clock    [4]*prometheus.Desc
	pool     [3]*prometheus.Desc
	// billed counts the billing work of this node; blocked and due describe the state of billing in the
	// database.
	billed       [3]*prometheus.Desc
	blocked, due *prometheus.Desc
}

// stat is one metric of the engine.
type stat struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(*quota.Stats) int64
}

func newGauges(n *node) *gauges {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("quotad_"+name, help, nil, nil)
	}
	pooled := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("quotad_pool_"+name, help, []string{"pool"}, nil)
	}
	total := func(name, help string, read func(*quota.Stats) int64) stat {
		return stat{desc("engine_"+name+"_total", help), prometheus.CounterValue, read}
	}
	return &gauges{
		node:     n,
		build:    prometheus.NewDesc("quotad_build_info", "The version; always 1.", nil, prometheus.Labels{"version": version}),
		degraded: desc("degraded", "1 while hits cannot be charged or changes not be read: /readyz says why."),
		evicted:  desc("customers_evicted_total", "Customers forgotten to make room for others: --cache-memory is small."),
		cleaned:  desc("counters_removed_total", "Counters of attributes' values removed: full again and idle, or of archived customers."),
		numbered: desc("events_numbered_total", "Events that this node gave ids to, so that GET /v1/events shows them."),
		sent: prometheus.NewDesc("quotad_webhook_attempts_total",
			"Attempts of this node to send an event to a webhook, by result: delivered, failed. dead are deliveries that were given up.", []string{"result"}, nil),
		wentBack: desc("database_went_back_total",
			"Times that changes which this node had seen were not in the database any more: a failover or a restore lost admin writes."),
		stats: []stat{
			total("refused_from_memory", "Refusals answered without a statement.", func(s *quota.Stats) int64 { return s.FromMemory }),
			total("batches", "Round trips of lanes: to read rows, or to charge hits.", func(s *quota.Stats) int64 { return s.Batches }),
			total("batched_hits", "Hits that those were to charge; again, where one was judged again.", func(s *quota.Stats) int64 { return s.Batched }),
			total("statements", "Statements of those.", func(s *quota.Stats) int64 { return s.Statements }),
			total("swaps", "Counters charged as they were known here, without a lock before.", func(s *quota.Stats) int64 { return s.Swapped }),
			total("swaps_lost", "Counters that another had written meanwhile, and that were judged again.", func(s *quota.Stats) int64 { return s.SwapsLost }),
			total("unknown", "Hits whose outcome was lost with a connection.", func(s *quota.Stats) int64 { return s.Unknown }),
			total("retried", "Hits of batches that the server rolled back.", func(s *quota.Stats) int64 { return s.Retried }),
			total("ahead", "Hits, admitted or refused, on counters more than a second in the future: an alarm.", func(s *quota.Stats) int64 { return s.Ahead }),
			total("new_values_refused", "Operations answered 503 too-busy, as their customer brought more new values of attributes than a node takes in a second.",
				func(s *quota.Stats) int64 { return s.ManyValues }),
			total("denials_lost", "Denied units missing in the statistic.", func(s *quota.Stats) int64 { return s.Denials }),
			total("refusals_lost", "Refused units missing in the statistic of refusals.", func(s *quota.Stats) int64 { return s.Refusals }),
			total("over_share", "Hits and operations answered 503, since their API key had its share of a queue waiting.", func(s *quota.Stats) int64 { return s.Over }),
			{
				desc("rows_went_back_total", "Counters that had the number of a change that the database does not have, and were repaired: it went back, or somebody wrote them by hand."),
				prometheus.CounterValue, func(s *quota.Stats) int64 { return s.RowsWentBack },
			},
			{desc("engine_queued", "Hits that wait now."), prometheus.GaugeValue, func(s *quota.Stats) int64 { return s.Queued }},
		},
		clock: [4]*prometheus.Desc{
			desc("clock_age_seconds", "Age of the measurement of the database's clock."),
			desc("clock_width_seconds", "Width of that measurement; the error is at most half of it."),
			desc("clock_offset_seconds", "How far the database's clock, as it is used, is ahead of this machine's; below 0 where it is behind."),
			desc("clock_steps_total", "Steps of the database's clock, of over a second against this node's, that a second measurement confirmed."),
		},
		pool: [3]*prometheus.Desc{
			pooled("connections", "Connections of a pool: reads is of how customers stand and their usage, store of all else."),
			pooled("connections_max", "How many it may have."),
			pooled("waits_total", "Times that a connection had to be waited for."),
		},
		billed: [3]*prometheus.Desc{
			desc("billing_periods_closed_total", "Billing periods that this node closed."),
			desc("billing_invoices_finalized_total", "Invoices that this node finalized by itself."),
			desc("billing_failed_total", "Times that this node could not close a customer's period or finalize its invoice."),
		},
		blocked: desc("billing_blocked", "Customers whose period cannot be closed, or whose invoice not be finalized: quotad reconcile and the log name them."),
		due:     desc("billing_oldest_due_seconds", "How long the oldest step of billing has been due; 0: none is."),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	to <- g.build
	to <- g.degraded
	to <- g.evicted
	to <- g.cleaned
	to <- g.numbered
	to <- g.sent
	to <- g.wentBack
	for _, s := range g.stats {
		to <- s.desc
	}
	for _, d := range g.clock {
		to <- d
	}
	for _, d := range g.pool {
		to <- d
	}
	for _, d := range append(g.billed[:], g.blocked, g.due) {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	// Collect runs in a goroutine of the Prometheus client, where a panic would end the process.
	defer func() {
		if p := recover(); p != nil {
			g.node.log.Error("panic while collecting metrics", "panic", p, "stack", string(debug.Stack()))
			to <- prometheus.NewInvalidMetric(g.build, fmt.Errorf("panic: %v", p))
		}
	}()
	gauge := func(d *prometheus.Desc, v float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	gauge(g.build, 1)
	degraded := 0.0
	if state, _ := g.node.state(); state == serve.StateDegraded {
		degraded = 1
	}
	gauge(g.degraded, degraded)
	to <- prometheus.MustNewConstMetric(g.evicted, prometheus.CounterValue, float64(g.node.catalog.Evicted()))
	removed := g.node.cleaner.Removed() + g.node.archiver.Removed()
	to <- prometheus.MustNewConstMetric(g.cleaned, prometheus.CounterValue, float64(removed))
	to <- prometheus.MustNewConstMetric(g.numbered, prometheus.CounterValue, float64(g.node.numberer.Numbered()))
	delivered, failed, dead := g.node.sender.Sent()
	for result, n := range map[string]int64{"delivered": delivered, "failed": failed, "dead": dead} {
		to <- prometheus.MustNewConstMetric(g.sent, prometheus.CounterValue, float64(n), result)
	}
	to <- prometheus.MustNewConstMetric(g.wentBack, prometheus.CounterValue, float64(g.node.catalog.WentBack()))
	stats := g.node.engine.Stats()
	for _, s := range g.stats {
		to <- prometheus.MustNewConstMetric(s.desc, s.kind, float64(s.read(&stats)))
	}
	if age, width, ok := g.node.clock.Quality(); ok {
		gauge(g.clock[0], age.Seconds())
		gauge(g.clock[1], width.Seconds())
	}
	if offset, ok := g.node.clock.Offset(); ok {
		gauge(g.clock[2], offset.Seconds())
	}
	to <- prometheus.MustNewConstMetric(g.clock[3], prometheus.CounterValue, float64(g.node.clock.Steps()))
	g.collectBilling(to)
	for name, pool := range map[string]*pgxpool.Pool{"reads": g.node.reads, "store": g.node.pool} {
		stat := pool.Stat()
		to <- prometheus.MustNewConstMetric(g.pool[0], prometheus.GaugeValue, float64(stat.TotalConns()), name)
		to <- prometheus.MustNewConstMetric(g.pool[1], prometheus.GaugeValue, float64(stat.MaxConns()), name)
		to <- prometheus.MustNewConstMetric(g.pool[2], prometheus.CounterValue, float64(stat.EmptyAcquireCount()), name)
	}
}

// collectBilling does not query the database; it reports the results of the worker's last check.
func (g *gauges) collectBilling(to chan<- prometheus.Metric) {
	closed, finalized, failed := g.node.closing.Worked()
	for i, n := range []int64{closed, finalized, failed} {
		to <- prometheus.MustNewConstMetric(g.billed[i], prometheus.CounterValue, float64(n))
	}
	blocked, due := g.node.closing.Standing()
	to <- prometheus.MustNewConstMetric(g.blocked, prometheus.GaugeValue, float64(blocked))
	if now, ok := g.node.clock.Estimate(); ok {
		late := int64(0)
		if due > 0 {
			late = max(0, now-due)
		}
		to <- prometheus.MustNewConstMetric(g.due, prometheus.GaugeValue, float64(late)/1e6)
	}
}
