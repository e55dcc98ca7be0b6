package api

import (
	"context"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/api/respond"
	"quotad/internal/billing/ledger"
	"quotad/internal/plans/catalog"
	"quotad/internal/plans/store"
	"quotad/internal/quota"
	"quotad/internal/throttle"
)

// Parts are the parts and settings that all rooms of the API share. All parts are required;
// settings are optional.
type Parts struct {
	Engine  *quota.Engine
	Catalog *catalog.Catalog
	Store   *store.Store
	Billing *ledger.Ledger

	// Ready tells what /readyz answers, and why a node is degraded, without secrets. It is
	// called each time that the answer is needed.
	Ready func() (State, string)
	// Now is the database's clock, µs since the Unix epoch (postgres.Clock's Now).
	Now func(ctx context.Context) (int64, error)
	// Estimate is the database's time as far as it is known without asking (postgres.Clock's
	// Estimate). Hits that an outage admits use it.
	Estimate func() (us int64, ok bool)
	// Wall is the node's own clock, time.Now. Latencies are measured by it.
	Wall     func() time.Time
	Registry *prometheus.Registry
	Log      *slog.Logger

	// Settings; the zero value is the default.
	ResetStyle respond.ResetStyle
	Deadline   time.Duration // how long a request may wait, 5 s
	BodyMemory int64         // bytes that bodies and answers may take together, 64 MiB
	FailedKeys int           // how often an address may send wrong keys, a minute; 0: any number
}

// State is how ready a node is for requests.
type State string

// The states. A degraded node still gets requests: it admits the hits whose limits allow that.
const (
	StateStarting State = "starting"
	StateReady    State = "ready"
	StateDegraded State = "degraded"
	StateStopping State = "stopping"
)

// shared is what serves the requests of all rooms: their keys, bodies and answers. It is safe for
// concurrent use.
type shared struct {
	Parts
	memory     *respond.Budget // of bodies and answers
	processing *turns          // places for what takes a processor for long: bodies and answers of batches, views
	reading    *turns          // places for views, while they are read and encoded
	metrics    *metrics
	failures   *throttle.Throttle // of keys, by address; nil: not limited
	signIns    *throttle.Throttle // of those who sign in to the pages

	keysWrong, keysLimited prometheus.Counter
}

const (
	// defaultDeadline is below writeTimeout.
	defaultDeadline = 5 * time.Second
	// writeTimeout is how long a request and its answer may take. It starts with the request. So it
	// is longer than the time for the body and the deadline together.
	writeTimeout = 20 * time.Second
	// defaultMemory is what bodies and answers may take together, in bytes.
	defaultMemory = 64 << 20
)

// newShared makes it, and registers its metrics in Parts.Registry. It starts nothing.
func newShared(parts Parts) *shared {
	if parts.Deadline <= 0 {
		parts.Deadline = defaultDeadline
	}
	if parts.BodyMemory <= 0 {
		parts.BodyMemory = defaultMemory
	}
	s := &shared{
		Parts: parts, processing: newTurns(runtime.GOMAXPROCS(0)), memory: respond.NewBudget(parts.BodyMemory),
		metrics: newMetrics(parts.Registry), signIns: throttle.New(signInsPerMinute, parts.Wall),
	}
	if parts.Store != nil { // nil: the routes are only described
		// The other half of the store's pool is for what a view must not keep waiting: writes of
		// admins, and the customers of hits.
		s.reading = newTurns(int(parts.Store.Pool().Config().MaxConns) / 2)
	}
	if parts.FailedKeys > 0 {
		s.failures = throttle.New(parts.FailedKeys, parts.Wall)
	}
	s.countMemory()
	s.countFailures()
	return s
}
