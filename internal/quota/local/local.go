// Package local counts limits in a node's memory while the database is out of reach. It starts with the rows
// that the node knows, and the Go model charges them. The charges are neither stored nor billed, and other nodes
// do not see them.
//
// The package must never decide a hit that could be charged in the database.
package local

import (
	"sync"

	"quotad/internal/cache"
	"quotad/internal/quota/model"
)

// Memory contains the counters of hits that were decided in outages. It is safe for concurrent use.
type Memory struct {
	rows  *cache.Cache[model.CounterKey, row]
	locks [64]sync.Mutex // of customers: all counters of a hit are one customer's
}

// row is a counter after the hits of outages.
type row struct {
	model.Row
	began begun
}

// begun is the known row from which the memory started. If the node knows another row now, the database was
// reachable in between, and the other row counts.
type begun struct {
	known       bool
	version, at int64
}

// Memory of a row in bytes: the part beside its state, and the usual total for two limits.
const (
	rowWeight   = 320
	usualWeight = rowWeight + 2*model.BucketLen*8
)

func weigh(key model.CounterKey, r row) int {
	return rowWeight + len(key.Attribute) + 8*len(r.State) + r.Holds.Weight()
}

// New returns a memory for size usual counters. It evicts the least recently used counters.
func New(size int) (*Memory, error) {
	rows, err := cache.NewWeighed(size, usualWeight, weigh)
	return &Memory{rows: rows}, err
}

// Decide decides a hit of a target at now, µs, and charges it in memory unless look is true. known returns the
// row of the target's i-th counter, as far as the node knows it. An unknown counter starts empty.
func (m *Memory) Decide(t *model.Target, now, cost int64, look bool, known func(i int) (model.Row, bool)) (d model.Decision) {
	lock := &m.locks[uint64(t.Counters[0].Key.Customer)%uint64(len(m.locks))]
	lock.Lock()
	defer lock.Unlock()
	instant := t.Instant(now)
	rows, began := make([]model.Row, len(t.Counters)), make([]begun, len(t.Counters))
	for i := range t.Counters {
		one, knows := known(i)
		began[i] = begun{knows, one.Version, one.At}
		if kept, there := m.rows.Get(t.Counters[i].Key, now); there && (!knows || kept.began == began[i]) {
			one, began[i] = kept.Row, kept.began
		}
		rows[i], instant = one, max(instant, one.At)
	}
	if t.Uncounted(rows[0].State) { // a cap begins empty, too
		rows[0].State = t.CountCap(rows[0].State, 0)
	}
	hit := model.Series{Costs: []int64{cost}}
	hit.Decide(t, rows, instant, nil, func(_ int, decided model.Decision) { d = decided })
	if d.Allowed && !look {
		for i := range rows {
			m.rows.Add(t.Counters[i].Key, row{rows[i], began[i]}, cache.NoExpiry)
		}
	}
	d.Degraded = true
	return d
}
