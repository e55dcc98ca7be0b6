package queue

import (
	"sync/atomic"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/quota/refusals"
	"quotad/internal/quota/session"
)

// Node contains the data that the lanes and workers of an engine share.
type Node struct {
	session.Options
	MaxQueue        int              // the maximum number of hits that wait in a lane, and also in a worker
	MaxReservations int              // the maximum number of open reservations of a customer on a meter
	AlsoAdjusted    string           // an SQL statement that accompanies new adjustments, or ""
	Memory          *refusals.Memory // remembered refusals
	Values          *NewValues
	History         func() uint64 // see quota.Options
	Totals          totals
	Metrics         *Metrics
}

// MaxBatch is the maximum number of hits in one batch of a lane, and of rows in one transaction of a worker. The
// running sums of a batch's costs stay far below the maximum of 64 bits.
const MaxBatch = 1000

// totals are counted from the start of the engine on; Stats describes them.
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

// Batch counts a round trip that charges hits.
func (t *totals) Batch(hits, statements int) {
	t.Batches.Add(1)
	t.Batched.Add(int64(hits))
	t.Statements.Add(int64(statements))
}

// Outdated reports whether a target was resolved in an earlier history of the database. The target's limits may
// not be in force, and its customer may not exist.
func (n *Node) Outdated(t *model.Target) bool { return n.History != nil && n.History() != t.History }

// WatchAhead logs a warning if a counter of admitted or refused hits is ahead of the customer's clock, µs. The
// windows and refills of such a counter do not advance until the clock reaches the counter's instant. `quotad
// repair clock` sets the counter back.
func (n *Node) WatchAhead(t *model.Target, hits int, ahead int64) {
	if ahead <= model.MostAhead || t.Clock != nil { // test clocks may be set back
		return
	}
	n.Totals.Ahead.Add(int64(hits))
	minute := 1 + int64(n.Stopwatch()/time.Minute)
	if n.Totals.aheadSaid.Swap(minute) == minute {
		return // one line a minute is enough for a log
	}
	key := t.Counters[0].Key
	n.Log.Warn("a counter was last charged in the future: its limits stand still until then; `quotad repair clock` brings such counters back",
		"customer_id", key.Customer, "meter_id", key.Meter, "ahead_us", ahead)
}

// WentBack counts counters whose row had a change number that the database does not have. This write has corrected
// the number. WentBack logs one of the counters at most once a minute.
func (n *Node) WentBack(one model.CounterKey, counters int) {
	n.Totals.RowsWentBack.Add(int64(counters))
	minute := 1 + int64(n.Stopwatch()/time.Minute)
	if n.Totals.wentBackSaid.Swap(minute) == minute {
		return
	}
	n.Log.Warn("counters have change numbers that the database does not have: it went back, or somebody wrote them by hand; each gets the right one with its next write",
		"customer_id", one.Customer, "meter_id", one.Meter)
}
