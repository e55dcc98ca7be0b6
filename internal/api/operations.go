package api

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
	nameRefund  = "refund"
	nameReserve = "reserve"
	nameCommit  = "commit"
	nameRelease = "release"
	nameImport  = "import"
	nameAdjust  = "adjust"
)

// within bounds how long a request may wait.
func (s *shared) within(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), s.Deadline)
}

// operationCounters count the outcomes of one kind of operation.
type operationCounters struct{ done, replayed, refused, failed prometheus.Counter }

// countOperations makes the counters of all kinds.
func (m *metrics) countOperations(registry *prometheus.Registry) {
	operations := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quotad_operations_total", Help: "Refunds, reservations, their commits and releases, adjustments, and lines of imports by outcome; refused: it did not fit.",
	}, []string{"operation", "outcome"})
	registry.MustRegister(operations)
	m.operations = map[string]operationCounters{}
	for _, name := range []string{nameRefund, nameReserve, nameCommit, nameRelease, nameImport, nameAdjust} {
		of := func(outcome string) prometheus.Counter { return operations.WithLabelValues(name, outcome) }
		m.operations[name] = operationCounters{of("done"), of("replayed"), of("refused"), of("failed")}
	}
}

// countOperation counts one operation, d being its decision when err is nil.
func (m *metrics) countOperation(name string, d *model.Decision, err error) {
	counters := m.operations[name]
	_, noRoom := errors.AsType[*locked.NoRoomError](err)
	switch {
	case noRoom:
		counters.refused.Inc()
	case err != nil:
		counters.failed.Inc()
	case name == nameReserve && !d.Allowed:
		counters.refused.Inc()
	case d.Replayed:
		counters.replayed.Inc()
	default:
		counters.done.Inc()
	}
}
