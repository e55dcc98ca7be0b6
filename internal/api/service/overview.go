package service

import (
	"context"
	"sync"
	"time"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/serve"
	"quotad/internal/quota/model"
)

const (
	// overviewEvery is the time for which an overview is shown before it is read again.
	overviewEvery = 2 * time.Second
	// fullestRest is the minimum time for which the fullest customers are shown. The actual time is at least
	// twenty times the duration of the search, so that the search occupies a session for at most a twentieth of
	// the time.
	fullestRest = 10 * time.Second
)

// The parts of an overview that may be missing.
const (
	partDecisions = "decisions"
	partNodes     = "nodes"
	partDatabase  = "database"
	partFullest   = "fullest"
	partHeld      = "held"
)

func (s *Room) overviewRoute() serve.Route {
	return serve.Get(apidoc.Readers, "/v1/overview", "overview.get", "How the service is", s.overview, serve.Same)
}

// overviews keeps the latest overview. Requests that arrive during a read wait for the read.
type overviews struct {
	mu           sync.Mutex
	last         client.Overview
	until        time.Time // when last expires, by the node's own clock
	fullest      *client.Fullest
	fullestErr   error
	fullestUntil time.Time
	fullestKeys  []model.CounterKey // the fullest counters that the last search found
}

// overview serves GET /v1/overview. The read has a shorter limit than a request's deadline, and continues after
// its request has ended, because other requests wait for it.
func (s *Room) overview(c *serve.Call) (client.Overview, error) {
	o := &s.overviews
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.Wall().After(o.until) {
		last, err := s.readOverview(context.WithoutCancel(c.Ctx()))
		if err != nil {
			return last, err
		}
		o.last, o.until = last, s.Wall().Add(overviewEvery)
	}
	return o.last, nil
}
