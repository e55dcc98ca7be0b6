package main

import (
	"context"
	"errors"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/api/serve"
	"quotad/internal/postgres"
	"quotad/internal/postgres/embedded"
	"quotad/internal/quota/session"
)

// insides is the prometheus.Collector for metrics that explain why a node or its database is slow. It reads
// numbers that are already in memory and sends no query during a scrape.
type insides struct {
	node *node

	degraded, errors, sessions, queue                     *prometheus.Desc
	changes                                               *prometheus.Desc
	walkGoing, walkDone, walkLast                         *prometheus.Desc
	tableBytes, tableRows, tableDead, tableUpd, tableHot  *prometheus.Desc
	databaseBytes, holds, idsAge, idsOverdue, tablesAsked *prometheus.Desc
	diskFree                                              *prometheus.Desc
}

func newInsides(n *node) *insides {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("quotad_"+name, help, labels, nil)
	}
	return &insides{
		node: n,
		degraded: desc("degraded_seconds_total",
			"Seconds in which /readyz said degraded, by reason: unreachable, read-only, refused, slow, changes-late, pooler.", "reason"),
		errors: desc("database_errors_total",
			"Errors that the database said on any connection, by the class of their SQLSTATE: its first two characters.", "class"),
		sessions: desc("engine_sessions_made_total", "Sessions of the database that were made to charge hits, by the way of charging: lane or locked.", "way"),
		queue:    desc("engine_queue", "Hits and operations that wait now, by the way of charging.", "way"),
		changes:  desc("changes_age_seconds", "Time since this node last confirmed that it has seen all changes of plans and customers."),

		walkGoing: desc("cleaner_walk_seconds", "For how long the cleaner's walk over all counters has gone on."),
		walkDone:  desc("cleaner_walk_done_ratio", "How much of that walk is done, 0 to 1."),
		walkLast:  desc("cleaner_last_walk_seconds", "How long the last whole walk took; 0: there was none yet."),

		tableBytes: desc("table_bytes", "Size of a hot table with its indexes, all partitions together. Read once a minute, as all that follows.", "table"),
		tableRows:  desc("table_rows", "Rows of a hot table, as the server estimates.", "table"),
		tableDead:  desc("table_dead_rows", "Dead rows of a hot table that vacuum has not removed, as the server estimates.", "table"),
		tableUpd:   desc("table_updates_total", "Updates of rows of a hot table, by all nodes.", "table"),
		tableHot:   desc("table_hot_updates_total", "Of those, updates in place (HOT), which write no index.", "table"),

		databaseBytes: desc("database_bytes", "Size of the database on the server's disk, without WAL."),
		holds:         desc("holds_open", "Holds of open reservations, as the server estimates."),
		idsAge:        desc("ids_turn_age_seconds", "How long the present table of ids has had its turn."),
		idsOverdue:    desc("ids_turn_overdue_seconds", "For how long its turn should have ended: old ids are not dropped."),
		tablesAsked:   desc("tables_age_seconds", "Time since the sizes of tables were read."),
		diskFree: desc("disk_free_bytes",
			"What the embedded server may still write on the disk of --data-dir. Linux only; a server of your own is watched by its machine's exporter."),
	}
}

// Describe implements prometheus.Collector.
func (i *insides) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		i.degraded, i.errors, i.sessions, i.queue, i.changes, i.walkGoing, i.walkDone, i.walkLast,
		i.tableBytes, i.tableRows, i.tableDead, i.tableUpd, i.tableHot,
		i.databaseBytes, i.holds, i.idsAge, i.idsOverdue, i.tablesAsked, i.diskFree,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (i *insides) Collect(to chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for reason, spent := range i.node.degraded.spent() {
		counter(i.degraded, spent.Seconds(), reason)
	}
	for class, n := range postgres.ErrorCounts() {
		counter(i.errors, float64(n), class)
	}
	stats := i.node.engine.Stats()
	counter(i.sessions, float64(stats.Sessions), "lane")
	counter(i.sessions, float64(stats.SessionsLocked), "locked")
	gauge(i.queue, float64(stats.Queued-stats.QueuedLocked), "lane")
	gauge(i.queue, float64(stats.QueuedLocked), "locked")
	if age, contacted := i.node.catalog.Age(); contacted {
		gauge(i.changes, age.Seconds())
	}
	going, done, last := i.node.cleaner.Walk()
	gauge(i.walkGoing, going.Seconds())
	gauge(i.walkDone, done)
	gauge(i.walkLast, last.Seconds())
	if dir := i.node.dataDir; dir != "" {
		if free, err := embedded.FreeSpace(dir); err == nil && free < math.MaxInt64 { // MaxInt64: not measured on this system
			gauge(i.diskFree, float64(free))
		}
	}
	counts := i.node.census.Last()
	if counts == nil {
		return
	}
	seconds := func(us int64) float64 { return float64(us) / 1e6 }
	for _, t := range counts.Tables {
		gauge(i.tableBytes, float64(t.Bytes), t.Name)
		gauge(i.tableRows, float64(t.Rows), t.Name)
		gauge(i.tableDead, float64(t.Dead), t.Name)
		counter(i.tableUpd, float64(t.Updates), t.Name)
		counter(i.tableHot, float64(t.HotUpdates), t.Name)
	}
	gauge(i.databaseBytes, float64(counts.Database))
	gauge(i.holds, float64(counts.Holds))
	gauge(i.idsAge, seconds(counts.IDs))
	gauge(i.idsOverdue, seconds(counts.Overdue))
	if now, ok := i.node.clock.Estimate(); ok {
		gauge(i.tablesAsked, max(0, seconds(now-counts.At)))
	}
}

// Reasons why a node is degraded, as the metrics name them.
const (
	becauseUnreachable = "unreachable"
	becauseReadOnly    = "read-only"
	becauseRefused     = "refused"
	becauseSlow        = "slow"
	becauseChangesLate = "changes-late"
	becausePooler      = "pooler"
)

// because returns the reason why a node is degraded.
func because(err error) string {
	said, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		return becauseChangesLate
	case errors.Is(err, postgres.ErrTransactionPooler):
		return becausePooler
	case answered && said.Code == "25006", errors.Is(err, postgres.ErrReadOnly):
		return becauseReadOnly
	case errors.Is(err, session.ErrSlow):
		return becauseSlow
	case errors.Is(err, session.ErrUnavailable):
		return becauseUnreachable
	case errors.Is(err, session.ErrBusy), errors.Is(err, session.ErrOutcomeUnknown):
		return becauseSlow
	}
	return becauseRefused
}

// degradedLook is the interval at which a node checks whether it is degraded, to measure for how long.
const degradedLook = 250 * time.Millisecond

// degradation measures the time for which a node is degraded, by reason.
type degradation struct {
	mu  sync.Mutex
	all map[string]time.Duration
}

func newDegradation() *degradation {
	return &degradation{all: map[string]time.Duration{
		becauseUnreachable: 0, becauseReadOnly: 0, becauseRefused: 0, becauseSlow: 0, becauseChangesLate: 0, becausePooler: 0,
	}}
}

// watch measures until ctx ends. The time between two checks counts for the state at the second check.
func (d *degradation) watch(ctx context.Context, n *node) {
	for last := time.Now(); postgres.Sleep(ctx, degradedLook); {
		now := time.Now()
		if state, _ := n.state(); state == serve.StateDegraded {
			d.mu.Lock()
			d.all[because(n.hindrance())] += now.Sub(last)
			d.mu.Unlock()
		}
		last = now
	}
}

// spent returns the time for which the node was degraded, by reason. The map contains every reason.
func (d *degradation) spent() map[string]time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.all)
}
