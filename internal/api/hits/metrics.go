package hits

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/api/problem"
	"quotad/internal/quota/model"
)

// metrics contains the counters of hits.
type metrics struct {
	outcomes map[string]prometheus.Counter // hits that were not decided, by problem

	// The counters that every hit increments are looked up only once.
	allowed, replayed, refused, refusedFromMemory, looked, degraded, refusedDegraded prometheus.Counter
	hardExceeded, softExceeded, shadowExceeded                                       prometheus.Counter
}

func newMetrics(registry *prometheus.Registry) *metrics {
	m := &metrics{outcomes: map[string]prometheus.Counter{}}
	hits := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quotad_hits_total", Help: "Hits by outcome; each one of a batch counts.",
	}, []string{"outcome"})
	m.allowed = hits.WithLabelValues("allowed")
	m.replayed = hits.WithLabelValues("replayed")
	m.refused = hits.WithLabelValues("refused")
	m.refusedFromMemory = hits.WithLabelValues("refused_from_memory")
	m.looked = hits.WithLabelValues("looked")
	m.degraded = hits.WithLabelValues("degraded")
	m.refusedDegraded = hits.WithLabelValues("refused_degraded")
	exceeded := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quotad_exceeded_total", Help: "Admitted hits that a soft limit admitted past itself, that a shadow would have refused, or that overran a hard limit, for each such limit.",
	}, []string{"mode"})
	m.hardExceeded = exceeded.WithLabelValues(model.Hard.String())
	m.softExceeded = exceeded.WithLabelValues(model.Soft.String())
	m.shadowExceeded = exceeded.WithLabelValues(model.Shadow.String())
	registry.MustRegister(exceeded)
	for _, k := range problem.Kinds {
		if k != problem.KindQuotaExceeded {
			m.outcomes[k.Name] = hits.WithLabelValues(k.Name)
		}
	}
	registry.MustRegister(hits)
	return m
}

// countBatches registers the metrics of batches that found no place.
func (s *Room) countBatches() {
	s.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "quotad_batches_over_share_total", Help: "Batches answered 503 too-busy, since this node worked on 32 of their API key.",
	}, func() float64 { return float64(s.Batches.Over.Load()) }))
}

// count counts a decided hit.
func (m *metrics) count(h *hit, d *model.Decision) {
	switch {
	case d.Degraded && !d.Allowed:
		m.refusedDegraded.Inc()
	case d.Degraded:
		m.degraded.Inc()
	case d.Replayed:
		m.replayed.Inc()
	case h.chargesNothing():
		m.looked.Inc()
	case d.Allowed:
		m.allowed.Inc()
	case d.AsOf != 0:
		m.refusedFromMemory.Inc()
	default:
		m.refused.Inc()
	}
}

// countExceeded counts the limits that an admitted and charged hit exceeded.
func (m *metrics) countExceeded(h *hit, d *model.Decision, views []model.View) {
	if !d.Allowed || d.Replayed || h.chargesNothing() {
		return
	}
	for i := range views {
		switch {
		case !views[i].Exceeded:
		case views[i].Limit.Mode == model.Soft:
			m.softExceeded.Inc()
		case views[i].Limit.Mode == model.Hard:
			m.hardExceeded.Inc()
		default:
			m.shadowExceeded.Inc()
		}
	}
}

// failed counts hits that were not decided, by problem.
func (s *Room) failed(err error, hits int) {
	kind := problem.Of(err).Kind
	s.metrics.outcomes[kind.Name].Add(float64(hits))
	if kind.Status >= http.StatusInternalServerError {
		s.Engine.Failed(err)
	}
}
