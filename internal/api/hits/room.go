// Package hits serves the operations that charge units or are judged by limits: hits, batches, refunds, and
// reservations with their commits and releases.
//
// Hits cause nearly all of the load. They have a decoder of their own for the form that nearly all clients write
// (plain, in plain.go), and append their responses to buffers. Package hits must never contain rules about
// limits, which belong to package quota.
package hits

import (
	"time"

	"golang.org/x/time/rate"

	"quotad/internal/api/serve"
)

// Room serves the routes of hits.
type Room struct {
	*serve.Server
	metrics *metrics
	waits   *waits
	Unread  unread       // batch responses that are being written
	Batches *serve.Slots // places for batches in progress

	// refusals limits the log lines about refused gateway requests, because a suspended customer may cause very
	// many refusals.
	refusals rate.Sometimes
}

// New returns a room and registers its metrics.
func New(s *serve.Server) *Room {
	r := &Room{
		Server: s, metrics: newMetrics(s.Registry), waits: newWaits(s.DecideWithin),
		Batches:  serve.NewSlots(MaxBatches, errManyBatches, errOwnBatches),
		refusals: rate.Sometimes{First: 20, Interval: 3 * time.Second},
	}
	r.countBatches()
	return r
}
