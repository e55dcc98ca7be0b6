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
	// overviewEvery is how long an overview is shown before it is read again.
	overviewEvery = 2 * time.Second
	// fullestRest is how long the fullest customers are shown at least. It is also twenty times what
	// it took to find them, where that is longer: so a session is busy with it for a twentieth.
	fullestRest = 10 * time.Second
)

// The parts of an overview that can be missing.
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

// overviews keeps the overview that was read last. Who asks while it is read waits for it.
type overviews struct {
	mu           sync.Mutex
	last         client.Overview
	until        time.Time // when last is read again, by the node's own clock
	fullest      *client.Fullest
	fullestErr   error
	fullestUntil time.Time
	fullestKeys  []model.CounterKey // the fullest counters of the last search
}

// overview serves GET /v1/overview. Reading is bounded below the deadline of a request, and goes on
// when the request is given up: others wait for it.
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
