package queue

import (
	"sync/atomic"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/quota/refusals"
	"quotad/internal/quota/session"
)

// Node is what the lanes and workers of an engine share.
type Node struct {
	session.Options
	MaxQueue        int              // hits waiting in a lane, and as many in a worker
	MaxReservations int              // that a customer may have open on a meter
	AlsoAdjusted    string           // SQL that goes with new adjustments, "" for none
	Memory          *refusals.Memory // of refusals
	Values          *NewValues
	Totals          totals
}

// MaxBatch is the number of hits in one batch of a lane, and of rows in one transaction of a
// worker. The running sums of a batch's costs stay far inside 64 bits.
const MaxBatch = 1000

// totals are counted since the engine started; what each is, Stats says.
type totals struct {
	Batches, Batched, Statements        atomic.Int64
	FromMemory, Unknown, Retried, Ahead atomic.Int64
	Swapped, SwapsLost                  atomic.Int64
	ManyValues                          atomic.Int64
	Over                                atomic.Int64
	Admitted, Refused                   atomic.Int64
	aheadSaid                           atomic.Int64 // second of the last warning
}

// Batch counts a round trip that is to charge so many hits.
func (t *totals) Batch(hits, statements int) {
	t.Batches.Add(1)
	t.Batched.Add(int64(hits))
	t.Statements.Add(int64(statements))
}

// tooFarAhead is how much later than the clock a counter's last charge may be, µs. Nodes
// agree on PostgreSQL's time far better than this: beyond it the clock itself went back.
const tooFarAhead = int64(1e6)

// WatchAhead raises the alarm for a counter from the future: until its instant comes its
// windows and refills stand still. docs/internals/time.md says how to repair one.
func (n *Node) WatchAhead(t *model.Target, hits int, now, instant int64) {
	if instant-now <= tooFarAhead || t.Clock != nil { // test clocks are set back
		return
	}
	n.Totals.Ahead.Add(int64(hits))
	second := int64(n.Stopwatch() / time.Second)
	if n.Totals.aheadSaid.Swap(second) == second {
		return // once a second is enough for a log
	}
	key := t.Counters[0].Key
	n.Log.Warn("a counter was last charged in the future: its limits stand still until then",
		"customer_id", key.Customer, "meter_id", key.Meter, "ahead_us", instant-now)
}
