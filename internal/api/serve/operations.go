package serve

import (
	"context"
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
)

// This file contains the common parts of refunds, reservations and their commits and releases, and imports.

// The names of these operations in metrics.
const (
	NameRefund  = "refund"
	NameReserve = "reserve"
	NameCommit  = "commit"
	NameRelease = "release"
	NameImport  = "import"
	NameAdjust  = "adjust"
)

// InTime returns a context that limits the time for which a request may wait.
func (s *Server) InTime(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), s.Deadline)
}

// ChargeInTime returns a context that limits the time for which a request may wait if it charges or returns
// units.
func (s *Server) ChargeInTime(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), s.DecideWithin)
}

// operationCounters contains the counters of the outcomes of one kind of operation.
type operationCounters struct{ Done, Replayed, refused, Failed prometheus.Counter }

// countOperations creates the counters of all kinds of operations.
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

// CountOperation counts one operation. d is its decision if err is nil.
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
