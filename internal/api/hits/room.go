// Package hits is what charges and what is judged by limits: hits, batches, refunds, and
// reservations with their ends.
//
// Hits are the whole load. They have a decoder of their own for the form that nearly all clients
// write (plain, in hit.go), and append their answers to buffers. Package hits must never hold rules about
// limits, which are in quota.
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
	Unread  unread       // answers of batches on their way
	Batches *serve.Slots // places of batches under way

	// refusals bounds the lines of the log about refused gateways. A suspended customer may flood one.
	refusals rate.Sometimes
}

// New makes a room, and registers its metrics.
func New(s *serve.Server) *Room {
	r := &Room{
		Server: s, metrics: newMetrics(s.Registry), waits: newWaits(s.DecideWithin),
		Batches:  serve.NewSlots(MaxBatches, errManyBatches, errOwnBatches),
		refusals: rate.Sometimes{First: 20, Interval: 3 * time.Second},
	}
	r.countBatches()
	return r
}
