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
	History         func() uint64 // as quota.Options has it
	Totals          totals
	Metrics         *Metrics
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
	RowsWentBack                        atomic.Int64
	aheadSaid                           atomic.Int64 // minute of the last warning, from 1 on
	wentBackSaid                        atomic.Int64 // minute of the last warning, from 1 on
}

// Batch counts a round trip that is to charge so many hits.
func (t *totals) Batch(hits, statements int) {
	t.Batches.Add(1)
	t.Batched.Add(int64(hits))
	t.Statements.Add(int64(statements))
}

// Outdated reports whether a target was resolved in an earlier history of the database. Its limits
// may not be in force, nor even its customer be there.
func (n *Node) Outdated(t *model.Target) bool { return n.History != nil && n.History() != t.History }

// WatchAhead raises the alarm for hits on a counter that is ahead of the customer's clock, µs,
// whether they were admitted or refused: until the counter's instant comes its windows and refills
// stand still. `quotad repair clock` brings it back.
func (n *Node) WatchAhead(t *model.Target, hits int, ahead int64) {
	if ahead <= model.MostAhead || t.Clock != nil { // test clocks are set back
		return
	}
	n.Totals.Ahead.Add(int64(hits))
	minute := 1 + int64(n.Stopwatch()/time.Minute)
	if n.Totals.aheadSaid.Swap(minute) == minute {
		return // once a minute is enough for a log
	}
	key := t.Counters[0].Key
	n.Log.Warn("a counter was last charged in the future: its limits stand still until then; `quotad repair clock` brings such counters back",
		"customer_id", key.Customer, "meter_id", key.Meter, "ahead_us", ahead)
}

// WentBack counts counters whose row had a change number that the database does not have, and that
// got the right one with this write. One of them is named, once a minute.
func (n *Node) WentBack(one model.CounterKey, counters int) {
	n.Totals.RowsWentBack.Add(int64(counters))
	minute := 1 + int64(n.Stopwatch()/time.Minute)
	if n.Totals.wentBackSaid.Swap(minute) == minute {
		return
	}
	n.Log.Warn("counters have change numbers that the database does not have: it went back, or somebody wrote them by hand; each gets the right one with its next write",
		"customer_id", one.Customer, "meter_id", one.Meter)
}
