package quota

import "github.com/prometheus/client_golang/prometheus"

// Stats are the totals since the start of the engine.
type Stats struct {
	FromMemory       int64 // refusals answered without a statement
	Batches, Batched int64 // round trips for hits, and the hits that they were to charge
	Statements       int64
	Swapped          int64 // counters charged by a swap
	SwapsLost        int64 // counters that somebody else had written meanwhile
	Unknown          int64 // hits whose outcome was lost
	Retried          int64 // hits of batches that the server rolled back
	RowsWentBack     int64 // counters whose row had the number of a change that there is not; each was repaired
	Ahead            int64 // hits on counters that are more than a second in the future
	Denials          int64 // denied units that could not be written
	Refusals         int64 // refused units that are missing in the table of refusals
	ManyValues       int64 // operations that would have made too many counters of values
	Over             int64 // hits and operations turned away, since their sender had its share of a queue
	Queued           int64 // hits waiting now
	QueuedLocked     int64 // of those, what waits for the locked way
	Sessions         int64 // made for lanes
	SessionsLocked   int64 // made for the locked way
	Admitted         int64 // hits and reservations; looks and replays are none
	Refused          int64 // the same, refusals from memory included
}

// Stats returns the totals.
func (e *Engine) Stats() Stats {
	s := Stats{
		FromMemory: e.node.Totals.FromMemory.Load(), Batches: e.node.Totals.Batches.Load(), Batched: e.node.Totals.Batched.Load(),
		Statements: e.node.Totals.Statements.Load(), Swapped: e.node.Totals.Swapped.Load(), SwapsLost: e.node.Totals.SwapsLost.Load(),
		Unknown: e.node.Totals.Unknown.Load(), Retried: e.node.Totals.Retried.Load(),
		RowsWentBack: e.node.Totals.RowsWentBack.Load(), Ahead: e.node.Totals.Ahead.Load(), Denials: e.denials.lost.Load(),
		Refusals: e.denials.lostRefusals.Load(), ManyValues: e.node.Totals.ManyValues.Load(),
		Over: e.node.Totals.Over.Load(), Admitted: e.node.Totals.Admitted.Load(), Refused: e.node.Totals.Refused.Load(),
	}
	for i, l := range e.lanes {
		w := e.workers[i]
		s.Queued += int64(l.Queued() + w.Queued())
		s.QueuedLocked += int64(w.Queued())
		s.Sessions += l.Session.Made()
		s.SessionsLocked += w.Session.Made()
	}
	return s
}

// Collectors returns the engine's histograms for a registry.
func (e *Engine) Collectors() []prometheus.Collector { return e.node.Metrics.Collectors() }
