package queue

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics contains the measurements of lanes and workers, which are made once for each batch.
type Metrics struct {
	Lane, Locked Way // the two ways of charging
	hits, trips  *prometheus.HistogramVec
}

// Way contains the measurements of one way of charging.
type Way struct {
	hits, read, write prometheus.Observer
}

var (
	batchBuckets = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
	// tripBuckets range from a server next to the node to the limit of a transaction, in seconds.
	tripBuckets = []float64{.0002, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
)

// NewMetrics returns empty Metrics.
func NewMetrics() *Metrics {
	m := &Metrics{
		hits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quotad_engine_batch_hits", Help: "Hits and operations of a batch, by the way of charging: lane or locked.", Buckets: batchBuckets,
		}, []string{"way"}),
		trips: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quotad_engine_round_trip_seconds", Buckets: tripBuckets,
			Help: "Round trips of batches. Step read reads rows, and locks them in the locked way; write charges and commits. A lane's server commits at the end of its statement, in the same round trip.",
		}, []string{"way", "step"}),
	}
	of := func(way string) Way {
		return Way{m.hits.WithLabelValues(way), m.trips.WithLabelValues(way, "read"), m.trips.WithLabelValues(way, "write")}
	}
	m.Lane, m.Locked = of("lane"), of("locked")
	return m
}

// Collectors returns the collectors for a registry.
func (m *Metrics) Collectors() []prometheus.Collector { return []prometheus.Collector{m.hits, m.trips} }

// Batch records a batch by its number of hits.
func (w *Way) Batch(hits int) { w.hits.Observe(float64(hits)) }

// Read records a round trip that reads rows.
func (w *Way) Read(took time.Duration) { w.read.Observe(took.Seconds()) }

// Write records a round trip that charges and commits.
func (w *Way) Write(took time.Duration) { w.write.Observe(took.Seconds()) }
