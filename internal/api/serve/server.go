package serve

import (
	"context"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/api/respond"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/closing"
	"quotad/internal/billing/invoices"
	"quotad/internal/plans/catalog"
	"quotad/internal/plans/store"
	"quotad/internal/quota"
	"quotad/internal/throttle"
)

// Options are the parts and settings that all rooms of the API share. All parts are required;
// settings are optional.
type Options struct {
	Engine   *quota.Engine
	Catalog  *catalog.Catalog
	Store    *store.Store
	Accounts *accounts.Accounts
	Invoices *invoices.Invoices
	Closing  *closing.Worker

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
	// DecideWithin is how long of that a request may wait that charges; 0: all of it.
	DecideWithin time.Duration
	NodeMemory   int64 // bytes that this node may use, by which bodies and answers have their share; 0: not known
	FailedKeys   int   // how often an address may send wrong keys, a minute; 0: any number
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

// Server is what serves the requests of all rooms: their keys, bodies and answers. It is safe for
// concurrent use.
type Server struct {
	Options
	Memory     *respond.Budget // of bodies and answers
	Processing *Turns          // places for what takes a processor for long: bodies and answers of batches, views
	Reading    *Turns          // places for views, while they are read and encoded
	Metrics    *metrics
	Failures   *throttle.Throttle // of keys, by address; nil: not limited
	signIns    *throttle.Throttle // of those who sign in to the pages

	keysWrong, keysLimited prometheus.Counter
}

const (
	// DefaultDeadline is below WriteTimeout.
	DefaultDeadline = 5 * time.Second
	// WriteTimeout is how long a request and its answer may take. It starts with the request. So it
	// is longer than the time for the body and the deadline together.
	WriteTimeout = 20 * time.Second
	// UsualBodies is how many bytes bodies and answers may take together, if that is at least a 64th of the
	// node's memory and at most an eighth of it: see bodyMemory.
	UsualBodies = 64 << 20
)

// bodyMemory returns how many bytes bodies and answers may take together on a node that may use so many
// bytes: UsualBodies, but at least a 64th of the node's bytes, and at most an eighth. node is 0 if nobody
// knows how many the node may use.
func bodyMemory(node int64) int64 {
	if node <= 0 {
		return UsualBodies
	}
	return min(max(UsualBodies, node/64), node/8)
}

// New makes a server and registers its metrics in Options.Registry. It starts nothing.
func New(parts Options) *Server {
	if parts.Deadline <= 0 {
		parts.Deadline = DefaultDeadline
	}
	if parts.DecideWithin <= 0 || parts.DecideWithin > parts.Deadline {
		parts.DecideWithin = parts.Deadline
	}
	s := &Server{
		Options: parts, Processing: NewTurns(runtime.GOMAXPROCS(0)), Memory: respond.NewBudget(bodyMemory(parts.NodeMemory)),
		Metrics: newMetrics(parts.Registry), signIns: throttle.New(signInsPerMinute, parts.Wall),
	}
	if parts.Store != nil { // nil: the routes are only described
		// The other half of the store's pool is for what a view must not keep waiting: writes of
		// admins, and the customers of hits.
		s.Reading = NewTurns(int(parts.Store.Pool().Config().MaxConns) / 2)
	}
	if parts.FailedKeys > 0 {
		s.Failures = throttle.New(parts.FailedKeys, parts.Wall)
	}
	s.countMemory()
	s.countFailures()
	return s
}
