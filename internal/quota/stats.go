package quota

// Stats are totals since the engine started.
type Stats struct {
	FromMemory       int64 // refusals answered without a statement
	Batches, Batched int64 // round trips for hits, and the hits that they were to charge
	Statements       int64
	Swapped          int64 // counters charged by a swap
	SwapsLost        int64 // counters that somebody else had written meanwhile
	Unknown          int64 // hits whose outcome was lost
	Retried          int64 // hits of batches that the server rolled back
	Ahead            int64 // hits on counters that are more than a second in the future
	Denials          int64 // denied units that could not be written
	Refusals         int64 // refused units that are missing in the table of refusals
	ManyValues       int64 // operations that would have made too many counters of values
	Over             int64 // hits and operations turned away, since their sender had its share of a queue
	Queued           int64 // hits waiting now
	Admitted         int64 // hits and reservations; looks and replays are none
	Refused          int64 // the same, refusals from memory included
}

// Stats returns the totals.
func (e *Engine) Stats() Stats {
	s := Stats{
		FromMemory: e.node.Totals.FromMemory.Load(), Batches: e.node.Totals.Batches.Load(), Batched: e.node.Totals.Batched.Load(),
		Statements: e.node.Totals.Statements.Load(), Swapped: e.node.Totals.Swapped.Load(), SwapsLost: e.node.Totals.SwapsLost.Load(), Unknown: e.node.Totals.Unknown.Load(), Retried: e.node.Totals.Retried.Load(),
		Ahead: e.node.Totals.Ahead.Load(), Denials: e.denials.lost.Load(), Refusals: e.denials.lostSpells.Load(), ManyValues: e.node.Totals.ManyValues.Load(),
		Over: e.node.Totals.Over.Load(), Admitted: e.node.Totals.Admitted.Load(), Refused: e.node.Totals.Refused.Load(),
	}
	for i, l := range e.lanes {
		s.Queued += int64(l.Queued() + e.workers[i].Queued())
	}
	return s
}
