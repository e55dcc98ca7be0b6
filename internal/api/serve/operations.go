package serve

import (
	"context"
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
)

// What refunds, reservations and their ends, and imports have in common.

// The names of these operations in metrics.
const (
	NameRefund  = "refund"
	NameReserve = "reserve"
	NameCommit  = "commit"
	NameRelease = "release"
	NameImport  = "import"
	NameAdjust  = "adjust"
)

// InTime bounds how long a request may wait.
func (s *Server) InTime(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), s.Deadline)
}

// ChargeInTime bounds how long a request may wait that charges, or gives back.
func (s *Server) ChargeInTime(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), s.DecideWithin)
}

// operationCounters count the outcomes of one kind of operation.
type operationCounters struct{ Done, Replayed, refused, Failed prometheus.Counter }

// countOperations makes the counters of all kinds.
func (m *metrics) countOperations(registry *prometheus.Registry) {
	operations := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quotad_operations_total",
		Help: "Refunds, reservations, their commits and releases, adjustments, and lines of imports by outcome; refused: it did not fit.",
	}, []string{"operation", "outcome"})
	registry.MustRegister(operations)
	m.Operations = map[string]operationCounters{}
	for _, name := range []string{NameRefund, NameReserve, NameCommit, NameRelease, NameImport, NameAdjust} {
		of := func(outcome string) prometheus.Counter { return operations.WithLabelValues(name, outcome) }
		m.Operations[name] = operationCounters{of("done"), of("replayed"), of("refused"), of("failed")}
	}
}

// CountOperation counts one operation, d being its decision when err is nil.
func (m *metrics) CountOperation(name string, d *model.Decision, err error) {
	counters := m.Operations[name]
	_, noRoom := errors.AsType[*locked.NoRoomError](err)
	switch {
	case noRoom:
		counters.refused.Inc()
	case err != nil:
		counters.Failed.Inc()
	case name == NameReserve && !d.Allowed:
		counters.refused.Inc()
	case d.Replayed:
		counters.Replayed.Inc()
	default:
		counters.Done.Inc()
	}
}
