package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// A snapshot is what quotad and its server have done so far.
type snapshot struct {
	metrics        metrics // of all nodes
	quotad, server time.Duration
	cpuKnown       bool
	tables         tableStats
}

// tableStats are the server's own counts.
type tableStats struct {
	wal          int64 // bytes
	checkpoints  int64 // begun
	commits      int64
	updated, hot int64 // rows of counters
}

const tableStatsSQL = `
SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint,
       (SELECT %s),
       (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()),
       coalesce(n_tup_upd, 0), coalesce(n_tup_hot_upd, 0)
FROM pg_stat_user_tables WHERE relname = 'counters'`

// How many checkpoints have begun, by the server's version. Their record in the control
// file only tells of those that have ended, which takes minutes.
const (
	checkpointsSQL   = `num_timed + num_requested FROM pg_stat_checkpointer`
	checkpointsSQL16 = `checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter` // up to 16
)

func (b *bench) snapshot(ctx context.Context) (s snapshot, err error) {
	s.cpuKnown = true
	cpu := func(used time.Duration, ok bool) time.Duration {
		s.cpuKnown = s.cpuKnown && ok
		return used
	}
	for _, n := range b.service.nodes {
		text, err := b.service.get(ctx, n, "/metrics")
		if err != nil {
			return s, err
		}
		counts, err := parseMetrics(text)
		if err != nil {
			return s, fmt.Errorf("metrics of %s: %w", n.name, err)
		}
		s.metrics = append(s.metrics, counts...)
		s.quotad += cpu(ownTime(n.pid())) // its server is a child of it
	}
	s.server = cpu(familyTime(b.service.postmaster()))
	t := &s.tables
	ctx, cancel := context.WithTimeout(ctx, requestWait)
	defer cancel()
	err = b.service.db.QueryRow(ctx, fmt.Sprintf(tableStatsSQL, checkpointsOf(b.report.Machine.PostgreSQL))).Scan(&t.wal, &t.checkpoints, &t.commits,
		&t.updated, &t.hot)
	return s, err
}

// checkpointsOf is the way to ask a server of that version, such as "17.2 (Debian 17.2-1)".
func checkpointsOf(version string) string {
	var major int
	if n, _ := fmt.Sscan(version, &major); n == 1 && major < 17 {
		return checkpointsSQL16
	}
	return checkpointsSQL
}

// postmaster is the process of the embedded server, 0 when there is none.
func (s *service) postmaster() int {
	text, _ := os.ReadFile(filepath.Join(s.dataDir(), "pgdata", "postmaster.pid"))
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(strings.TrimSpace(line)) // 0 is what cannot be read
	return pid
}

// cost is what a hit takes, over all rounds of a row.
type cost struct {
	Allocations   float64 `json:"allocations"`     // of quotad
	AllocatedSize float64 `json:"allocated_bytes"` // of quotad
	QuotadCPU     float64 `json:"quotad_cpu_us"`   // µs; 0: not known on this system
	ServerCPU     float64 `json:"postgres_cpu_us"` // µs, all of its processes
	LoadCPU       float64 `json:"load_cpu_us"`     // µs, of the load maker
	RoundTrips    float64 `json:"round_trips"`     // of those that read or charge counters
	AtLeast       bool    `json:"at_least"`        // there may be more of them, by up to a half
	Transactions  float64 `json:"transactions"`    // of the server, committed, whatever they are for
	WAL           float64 `json:"wal_bytes"`       // bytes
	Checkpoint    bool    `json:"checkpoint"`      // one began meanwhile: pages were logged whole
	HOT           float64 `json:"hot_percent"`     // of updates of counters; 0: there were none
}

// costOf is the difference of two snapshots by the hits between them.
func costOf(before, after snapshot, load closed, r *row) *cost {
	hits := float64(load.operations * r.hits())
	delta := func(name string) float64 { return grown(before.metrics, after.metrics, name, all) }
	micros := func(d time.Duration) float64 { return per(float64(d.Microseconds()), hits) }
	c := &cost{
		Allocations:   per(delta(mallocsMetric), hits),
		AllocatedSize: per(delta(bytesMetric), hits),
		LoadCPU:       micros(load.cpu),
		RoundTrips:    per(delta(batchesMetric), hits),
		Transactions:  per(float64(after.tables.commits-before.tables.commits), hits),
		WAL:           per(float64(after.tables.wal-before.tables.wal), hits),
		Checkpoint:    after.tables.checkpoints > before.tables.checkpoints,
		HOT:           100 * per(float64(after.tables.hot-before.tables.hot), float64(after.tables.updated-before.tables.updated)),
	}
	if r.load.ids || r.load.reserve {
		// quotad counts the worker's transactions: each is two round trips, or three.
		c.RoundTrips, c.AtLeast = 2*c.RoundTrips, true
	}
	if before.cpuKnown && after.cpuKnown {
		c.QuotadCPU, c.ServerCPU = micros(after.quotad-before.quotad), micros(after.server-before.server)
	}
	return c
}

// metrics are samples of one node, or of several one after the other.
type metrics model.Vector

// parseMetrics reads Prometheus' text format.
func parseMetrics(text []byte) (metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
	return metrics(samples), err
}

// sum adds up a metric's series, of which some may be left out.
func (m metrics) sum(name string, in func(labels model.Metric) bool) (sum float64) {
	for _, sample := range m {
		if sample.Metric[model.MetricNameLabel] == model.LabelValue(name) && in(sample.Metric) {
			sum += float64(sample.Value)
		}
	}
	return sum
}

// grown is by how much the sum of a metric's series became more.
func grown(before, after metrics, name string, in func(labels model.Metric) bool) float64 {
	return after.sum(name, in) - before.sum(name, in)
}

// all takes in every series.
func all(model.Metric) bool { return true }

// The metrics of quotad that the bench reads.
const (
	requestsMetric = "quotad_http_requests_total"
	hitsMetric     = "quotad_hits_total"
	batchesMetric  = "quotad_engine_batches_total"
	mallocsMetric  = "go_memstats_mallocs_total"
	bytesMetric    = "go_memstats_alloc_bytes_total"
	evictedMetric  = "quotad_customers_evicted_total"
)

// check compares what quotad counted before and after the rounds with what the row is
// about: but for a few, and for requests, each of so many hits, that were cut off when
// load makers closed their connections; quotad counts them as not waited for.
func (w want) check(before, after metrics, cut, hitsEach int) error {
	posted := func(labels model.Metric) bool { return labels["method"] == "POST" }
	status := func(labels model.Metric) bool {
		return posted(labels) && slices.Contains(strings.Fields(w.status), string(labels["status"]))
	}
	if err := mostly(grown(before, after, requestsMetric, posted), grown(before, after, requestsMetric, status), cut); err != nil {
		return fmt.Errorf("%w of status %s", err, w.status)
	}
	if w.outcome == "" {
		return nil
	}
	outcome := func(labels model.Metric) bool { return string(labels["outcome"]) == w.outcome }
	if err := mostly(grown(before, after, hitsMetric, all), grown(before, after, hitsMetric, outcome), cut*hitsEach); err != nil {
		return fmt.Errorf("%w %s", err, w.outcome)
	}
	return nil
}

// mostly looks whether of all that was counted enough is good.
func mostly(total, good float64, cut int) error {
	if total == 0 || total-good > few*total+float64(cut) {
		return fmt.Errorf("%w: only %.0f of %.0f are", errAnswers, good, total)
	}
	return nil
}
