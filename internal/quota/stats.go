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
	Queued           int64 // hits waiting now
}

// Stats returns the totals.
func (e *Engine) Stats() Stats {
	s := Stats{
		FromMemory: e.node.totals.fromMemory.Load(), Batches: e.node.totals.batches.Load(), Batched: e.node.totals.batched.Load(),
		Statements: e.node.totals.statements.Load(), Swapped: e.node.totals.swapped.Load(), SwapsLost: e.node.totals.swapsLost.Load(), Unknown: e.node.totals.unknown.Load(), Retried: e.node.totals.retried.Load(),
		Ahead: e.node.totals.ahead.Load(), Denials: e.denials.lost.Load(),
	}
	for i, l := range e.lanes {
		l.mu.Lock()
		s.Queued += int64(len(l.queue))
		l.mu.Unlock()
		s.Queued += int64(e.ledgers[i].queued())
	}
	return s
}
