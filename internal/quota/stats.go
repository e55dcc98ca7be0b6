package quota

import (
	"sync/atomic"
	"time"
)

// counters are the engine's running totals.
type counters struct {
	batches, batched, statements        atomic.Int64
	fromMemory, unknown, retried, ahead atomic.Int64
	swapped, swapsLost                  atomic.Int64
	aheadSaid                           atomic.Int64 // second of the last warning
}

func (c *counters) batch(hits, statements int) {
	c.batches.Add(1)
	c.batched.Add(int64(hits))
	c.statements.Add(int64(statements))
}

// tooFarAhead is how much later than the clock a counter's last charge may be, µs. Nodes
// agree on PostgreSQL's time far better than this: beyond it the clock itself went back.
const tooFarAhead = int64(1e6)

// watchAhead raises the alarm for a counter from the future: until its instant comes its
// windows and refills stand still. ARCHITECTURE.md says how to repair one.
func (e *Engine) watchAhead(t *Target, hits int, now, instant int64) {
	if instant-now <= tooFarAhead || t.Clock != nil { // test clocks are set back
		return
	}
	e.stats.ahead.Add(int64(hits))
	second := int64(e.options.Stopwatch() / time.Second)
	if e.stats.aheadSaid.Swap(second) == second {
		return // once a second is enough for a log
	}
	key := t.Counters[0].Key
	e.options.Log.Warn("a counter was last charged in the future: its limits stand still until then",
		"customer_id", key.Customer, "meter_id", key.Meter, "ahead_us", instant-now)
}

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
		FromMemory: e.stats.fromMemory.Load(), Batches: e.stats.batches.Load(), Batched: e.stats.batched.Load(),
		Statements: e.stats.statements.Load(), Swapped: e.stats.swapped.Load(), SwapsLost: e.stats.swapsLost.Load(), Unknown: e.stats.unknown.Load(), Retried: e.stats.retried.Load(),
		Ahead: e.stats.ahead.Load(), Denials: e.denials.lost.Load(),
	}
	for i, l := range e.lanes {
		l.mu.Lock()
		s.Queued += int64(len(l.queue))
		l.mu.Unlock()
		s.Queued += int64(e.ledgers[i].queued())
	}
	return s
}
