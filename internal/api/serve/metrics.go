package serve

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics contains the metrics of the HTTP server. Labels are routes, statuses and outcomes, whose few values
// are known in advance. A customer, meter or key is never a label.
type metrics struct {
	requests   *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	Operations map[string]operationCounters // by name
}

// latencyBuckets range from the latency of a refusal from memory to the deadline, in seconds.
var latencyBuckets = []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func newMetrics(registry *prometheus.Registry) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotad_http_requests_total", Help: "Answered requests by route and status.",
		},
			[]string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quotad_http_request_seconds", Help: "Time to answer a request, by route.", Buckets: latencyBuckets,
		},
			[]string{"route", "method"}),
	}
	m.countOperations(registry)
	registry.MustRegister(m.requests, m.seconds)
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		// The program may already have registered these metrics.
		if err := registry.Register(c); err != nil {
			continue
		}
	}
	return m
}

// countMemory registers the metrics of the memory that bodies and responses use.
func (s *Server) countMemory() {
	s.Registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quotad_body_memory_bytes", Help: "What the bodies and answers of requests under way take.",
		}, func() float64 { return float64(s.Memory.Taken()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quotad_body_memory_limit_bytes", Help: "What the bodies and answers of requests under way may take together.",
		}, func() float64 { return float64(s.Memory.Most()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "quotad_body_memory_refused_total",
			Help: "Requests answered 503 too-busy, as bodies and answers took all of quotad_body_memory_limit_bytes, or those of their API key half.",
		}, func() float64 { return float64(s.Memory.Refused()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "quotad_body_memory_over_share_total", Help: "Of quotad_body_memory_refused_total, those whose API key had half of quotad_body_memory_limit_bytes.",
		}, func() float64 { return float64(s.Memory.OverShare()) }),
	)
}

// routeMetrics contains the metrics of one route. Metrics that every request updates are looked up once.
type routeMetrics struct {
	seconds prometheus.Observer
	counter func(status int) prometheus.Counter
	// status contains the counters by status - 100. A counter is created when it is first needed, so that
	// /metrics does not list statuses that never occurred.
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
