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

// Options contains the parts and settings that all rooms of the API share. All parts are required, and settings
// are optional.
type Options struct {
	Engine   *quota.Engine
	Catalog  *catalog.Catalog
	Store    *store.Store
	Accounts *accounts.Accounts
	Invoices *invoices.Invoices
	Closing  *closing.Worker

	// Ready returns the state that /readyz reports, and the reason why a node is degraded, without secrets. It
	// is called for every response that needs the state.
	Ready func() (State, string)
	// Now returns the database's time, µs since the Unix epoch (postgres.Clock's Now).
	Now func(ctx context.Context) (int64, error)
	// Estimate returns the database's time as far as it is known without a query (postgres.Clock's Estimate).
	// Hits that are admitted in an outage use it.
	Estimate func() (us int64, ok bool)
	// Wall is the node's own clock, time.Now. It measures latencies.
	Wall     func() time.Time
	Registry *prometheus.Registry
	Log      *slog.Logger

	// The following fields are settings. The zero value is the default.
	ResetStyle respond.ResetStyle
	Deadline   time.Duration // maximum wait of a request, 5 s
	// DecideWithin is the part of Deadline for which a charging request may wait. 0 means the whole deadline.
	DecideWithin time.Duration
	NodeMemory   int64 // memory of this node in bytes, which determines the share of bodies and responses; 0 if unknown
	FailedKeys   int   // wrong keys that an address may send in a minute; 0 means any number
}

// State is the readiness of a node for requests.
type State string

// The states of a node. A degraded node still receives requests, because it admits hits whose limits allow that
// in an outage.
const (
	StateStarting State = "starting"
	StateReady    State = "ready"
	StateDegraded State = "degraded"
	StateStopping State = "stopping"
)

// Server contains the common state of all rooms for serving requests: keys, bodies and responses. It is safe for
// concurrent use.
type Server struct {
	Options
	Memory     *respond.Budget // budget of bodies and responses
	Processing *Turns          // places for work that needs a processor for long: batches and views
	Reading    *Turns          // places for reading and encoding views
	Metrics    *metrics
	Failures   *throttle.Throttle // failed keys by address; nil if not limited
	signIns    *throttle.Throttle // failed sign-ins to the pages

	keysWrong, keysLimited prometheus.Counter
}

const (
	// DefaultDeadline is shorter than WriteTimeout.
	DefaultDeadline = 5 * time.Second
	// WriteTimeout is the maximum time for a request and its response. It starts with the request, so it is
	// longer than the sum of the time for the body and the deadline.
	WriteTimeout = 20 * time.Second
	// UsualBodies is the usual maximum of the bytes that bodies and responses use together. It applies if it is
	// at least a 64th and at most an eighth of the node's memory; see bodyMemory.
	UsualBodies = 64 << 20
)

// bodyMemory returns the maximum number of bytes that bodies and responses may use together on a node with node
// bytes of memory. The result is UsualBodies, but at least a 64th and at most an eighth of the node's memory.
// node is 0 if the node's memory is unknown.
func bodyMemory(node int64) int64 {
	if node <= 0 {
		return UsualBodies
	}
	return min(max(UsualBodies, node/64), node/8)
}

// New returns a server and registers its metrics in Options.Registry. It starts nothing.
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
	if parts.Store != nil { // nil if the routes are only described
		// The other half of the store's pool is reserved for work that a view must not delay: writes of admins,
		// and lookups of customers for hits.
		s.Reading = NewTurns(int(parts.Store.Pool().Config().MaxConns) / 2)
	}
	if parts.FailedKeys > 0 {
		s.Failures = throttle.New(parts.FailedKeys, parts.Wall)
	}
	s.countMemory()
	s.countFailures()
	return s
}
