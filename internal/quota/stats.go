package quota

import "sync/atomic"

// counters are the engine's running totals.
type counters struct {
	admitted, refused, failed, fromMemory atomic.Int64
	batches, batched, statements          atomic.Int64
	unknown, retried, ahead               atomic.Int64
}

func (c *counters) batch(hits, statements int) {
	c.batches.Add(1)
	c.batched.Add(int64(hits))
	c.statements.Add(int64(statements))
}

// Stats are totals since the engine started.
type Stats struct {
	Admitted, Refused, Failed int64 // hits, by outcome
	FromMemory                int64 // refusals answered without a statement
	Batches, Batched          int64 // round trips that charged, and the hits in them
	Statements                int64
	Unknown                   int64 // hits whose outcome was lost
	Retried                   int64 // hits of batches that the server rolled back
	Ahead                     int64 // hits on counters that are more than a second in the future
	Denials                   int64 // denied units that could not be written
	Queued                    int64 // hits waiting now
}

// Stats returns the totals.
func (e *Engine) Stats() Stats {
	s := Stats{
		Admitted: e.stats.admitted.Load(), Refused: e.stats.refused.Load(), Failed: e.stats.failed.Load(),
		FromMemory: e.stats.fromMemory.Load(), Batches: e.stats.batches.Load(), Batched: e.stats.batched.Load(),
		Statements: e.stats.statements.Load(), Unknown: e.stats.unknown.Load(), Retried: e.stats.retried.Load(),
		Ahead: e.stats.ahead.Load(), Denials: e.denials.lost.Load(),
	}
	for _, l := range e.lanes {
		l.mu.Lock()
		s.Queued += int64(len(l.queue))
		l.mu.Unlock()
	}
	return s
}
