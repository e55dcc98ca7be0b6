package api

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"quotad/internal/api/problem"
	"quotad/internal/quota/model"
)

// metrics are what the HTTP side counts. Labels are routes, statuses and outcomes, which
// are few and known beforehand: never a customer, a meter or a key.
type metrics struct {
	outcomes map[string]prometheus.Counter
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec

	// Those that every hit touches, looked up once.
	allowed, replayed, refused, refusedFromMemory, looked, degraded prometheus.Counter
	hardExceeded, softExceeded, shadowExceeded                      prometheus.Counter

	operations map[string]operationCounters // by name
}

// latencyBuckets go from a refusal from memory to the deadline, in seconds.
var latencyBuckets = []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func newMetrics(registry *prometheus.Registry) *metrics {
	m := &metrics{
		outcomes: map[string]prometheus.Counter{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_http_requests_total", Help: "Answered requests by route and status.",
		},
			[]string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quotad_http_request_seconds", Help: "Time to answer a request, by route.", Buckets: latencyBuckets,
		},
			[]string{"route", "method"}),
	}
	hits := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quotad_hits_total", Help: "Hits by outcome; each one of a batch counts.",
	}, []string{"outcome"})
	m.allowed = hits.WithLabelValues("allowed")
	m.replayed = hits.WithLabelValues("replayed")
	m.refused = hits.WithLabelValues("refused")
	m.refusedFromMemory = hits.WithLabelValues("refused_from_memory")
	m.looked = hits.WithLabelValues("looked")
	m.degraded = hits.WithLabelValues("degraded")
	exceeded := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quotad_exceeded_total", Help: "Admitted hits that a soft limit admitted past itself, that a shadow would have refused, or that overran a hard limit, for each such limit.",
	}, []string{"mode"})
	m.hardExceeded = exceeded.WithLabelValues(model.Hard.String())
	m.softExceeded = exceeded.WithLabelValues(model.Soft.String())
	m.shadowExceeded = exceeded.WithLabelValues(model.Shadow.String())
	registry.MustRegister(exceeded)
	m.countOperations(registry)
	for _, k := range problem.Kinds {
		if k != problem.KindQuotaExceeded {
			m.outcomes[k.Name] = hits.WithLabelValues(k.Name)
		}
	}
	registry.MustRegister(hits, m.requests, m.seconds)
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		// The program may have registered these for itself.
		if err := registry.Register(c); err != nil {
			continue
		}
	}
	return m
}

// countMemory shows what bodies and answers take.
func (s *Server) countMemory(registry *prometheus.Registry) {
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quotad_body_memory_bytes", Help: "What the bodies and answers of requests under way take of --body-memory.",
		}, func() float64 { return float64(s.memory.Taken()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "quotad_body_memory_refused_total", Help: "Requests answered 503 too-busy, as bodies and answers took all of --body-memory, or those of their API key half.",
		}, func() float64 { return float64(s.memory.Refused()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "quotad_body_memory_over_share_total", Help: "Of quotad_body_memory_refused_total, those whose API key had half of --body-memory.",
		}, func() float64 { return float64(s.memory.OverShare()) }),
	)
}

// countBatches shows which batches found no place.
func (s *Server) countBatches(registry *prometheus.Registry) {
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "quotad_batches_over_share_total", Help: "Batches answered 503 too-busy, since this node worked on 32 of their API key.",
	}, func() float64 { return float64(s.batches.over.Load()) }))
}

// count counts a decided hit.
func (m *metrics) count(h *hit, d *model.Decision) {
	switch {
	case d.Degraded:
		m.degraded.Inc()
	case d.Replayed:
		m.replayed.Inc()
	case h.look():
		m.looked.Inc()
	case d.Allowed:
		m.allowed.Inc()
	case d.AsOf != 0:
		m.refusedFromMemory.Inc()
	default:
		m.refused.Inc()
	}
}

// countExceeded counts the limits that an admitted and charged hit went past.
func (m *metrics) countExceeded(h *hit, d *model.Decision, views []model.View) {
	if !d.Allowed || d.Replayed || h.look() {
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

// failed counts hits that were not decided, by their problem.
func (m *metrics) failed(err error, hits int) {
	m.outcomes[problem.Of(err).Kind.Name].Add(float64(hits))
}

// routeMetrics are one route's own: what every request touches is looked up once.
type routeMetrics struct {
	seconds prometheus.Observer
	counter func(status int) prometheus.Counter
	// status remembers the counters by status - 100; they are made when first needed,
	// so that /metrics does not list what never happened.
	status [500]atomic.Pointer[prometheus.Counter]
}

func (m *metrics) route(pattern, method string) *routeMetrics {
	return &routeMetrics{
		seconds: m.seconds.WithLabelValues(pattern, method),
		counter: func(status int) prometheus.Counter {
			return m.requests.WithLabelValues(pattern, method, strconv.Itoa(status))
		},
	}
}

func (rm *routeMetrics) observe(status int, took time.Duration) {
	rm.seconds.Observe(took.Seconds())
	kept := &rm.status[(status-100)%len(rm.status)]
	c := kept.Load()
	if c == nil {
		made := rm.counter(status)
		c = &made
		kept.Store(c)
	}
	(*c).Inc()
}

// MetricsHandler serves the registry in Prometheus' format, for a listener of its own.
func (s *Server) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(s.options.Registry, promhttp.HandlerOpts{})
}
