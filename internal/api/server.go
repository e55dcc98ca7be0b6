package api

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/respond"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/closing"
	"quotad/internal/billing/invoices"
	"quotad/internal/billing/reconcile"
	"quotad/internal/fastpath"
	"quotad/internal/plans/catalog"
	"quotad/internal/plans/store"
	"quotad/internal/quota"
	"quotad/internal/quota/queue"
	"quotad/internal/throttle"
)

// Options are the parts and settings of a Server. All parts are required; settings are
// optional.
type Options struct {
	Engine   *quota.Engine
	Catalog  *catalog.Catalog
	Store    *store.Store
	Accounts *accounts.Accounts
	Invoices *invoices.Invoices
	Closing  *closing.Worker
	// Reconciler checks the books for GET /v1/reconcile.
	Reconciler *reconcile.Reconciler

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
	ResetStyle      respond.ResetStyle
	PublicURL       string        // named in the OpenAPI document
	LocalURL        string        // where clients on this machine find it: for /docs, without a PublicURL
	Deadline        time.Duration // how long a request may wait, 5 s
	BodyMemory      int64         // bytes that bodies and answers may take together, 64 MiB
	FailedKeys      int           // how often an address may send wrong keys, a minute; 0: any number
	SeparateMetrics bool          // /metrics is served elsewhere, by MetricsHandler
	Portal          Portal
	Version         string // of the program, named in the OpenAPI document
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

// Server answers quotad's HTTP API. It is safe for concurrent use.
type Server struct {
	options                Options
	engine                 *quota.Engine
	catalog                *catalog.Catalog
	store                  *store.Store
	accounts               *accounts.Accounts
	invoices               *invoices.Invoices
	closing                *closing.Worker
	now                    func(ctx context.Context) (int64, error)
	log                    *slog.Logger
	metrics                *metrics
	keysWrong, keysLimited prometheus.Counter
	waits                  *waits
	memory                 *respond.Budget    // of bodies and answers
	failures               *throttle.Throttle // of keys, by address; nil: not limited
	signIns                *throttle.Throttle // of those who sign in to the pages
	router                 *chi.Mux
	single                 http.Handler // of POST /v1/hits
	batches                slots
	unread                 unread
	imports                slots                   // of those that are open
	importing              *turns                  // places for groups of lines that are being done
	heavy                  *turns                  // places for plays and comparisons of drafts
	processing             *turns                  // places for what takes a processor for long: bodies and answers of batches, views
	reading                *turns                  // places for views, while they are read and encoded
	checked                atomic.Pointer[checked] // by GET /v1/reconcile; nil: not yet
	overviews              overviews
	openAPI, docsPage      func() []byte // made when they are asked for first

	importWait, importPause time.Duration // as the constants of the same names; tests set others
}

// defaultDeadline is below the write timeout of NewHTTPServer.
const defaultDeadline = 5 * time.Second

// New makes a server and registers its metrics in Options.Registry. It starts nothing.
func New(options Options) *Server {
	if options.Deadline <= 0 {
		options.Deadline = defaultDeadline
	}
	if options.BodyMemory <= 0 {
		options.BodyMemory = defaultMemory
	}
	if options.Version == "" {
		options.Version = "dev"
	}
	s := &Server{
		options: options, engine: options.Engine, catalog: options.Catalog, store: options.Store,
		accounts: options.Accounts, invoices: options.Invoices, closing: options.Closing,
		now: options.Now, log: options.Log, router: chi.NewRouter(),
		batches: slots{Shares: queue.NewShares(maxBatches), full: errManyBatches, own: errOwnBatches},
		imports: slots{Shares: queue.NewShares(maxImports), full: errManyImports, own: errOwnImports}, importing: newTurns(maxGroups), importWait: importWait, importPause: importPause,
		overviews: overviews{every: overviewEvery, rest: fullestRest},
		waits:     newWaits(options.Deadline), processing: newTurns(runtime.GOMAXPROCS(0)), heavy: newTurns(maxHeavy), memory: respond.NewBudget(options.BodyMemory),
	}
	if options.Store != nil { // nil: the routes are only described
		// The other half of the store's pool is for what a view must not keep waiting: writes of
		// admins, and the customers of hits.
		s.reading = newTurns(int(options.Store.Pool().Config().MaxConns) / 2)
	}
	list := routes(options.SeparateMetrics)
	s.metrics = newMetrics(options.Registry)
	s.countMemory(options.Registry)
	s.countFailures(options.Registry)
	s.signIns = throttle.New(signInsPerMinute, options.Wall)
	if options.FailedKeys > 0 {
		s.failures = throttle.New(options.FailedKeys, options.Wall)
	}
	s.countBatches(options.Registry)
	doc := sync.OnceValue(func() *apidoc.Document {
		return apidoc.New(operations(list), options.Version, options.PublicURL)
	})
	s.openAPI = sync.OnceValue(func() []byte { return doc().OpenAPI() })
	s.docsPage = sync.OnceValue(func() []byte { return doc().Page(options.LocalURL) })
	for i := range list {
		handler := s.serve(&list[i])
		s.router.Method(list[i].Method, list[i].Pattern, handler)
		if list[i].Pattern == hitsPattern {
			s.single = handler
		}
	}
	s.router.NotFound(s.notFound)
	s.router.MethodNotAllowed(s.methodNotAllowed)
	return s
}

// Bounds against slow and idle clients. The write timeout starts with the request. So it is
// longer than the time for the body and the deadline together.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = 20 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
)

// Bounds of one HTTP/2 connection, beside those above, which net/http applies to each stream.
const (
	// maxStreams is how many requests may be under way at once on a connection.
	maxStreams = 250
	// maxFrame is the least that HTTP/2 allows. A connection has a buffer of the length that a
	// frame promises, for as long as it lives, and before there is a key.
	maxFrame = 16 << 10
	// streamBuffer is what a connection, and each of its streams, may send before a handler reads
	// it, the least that net/http allows. What waits there is no part of --body-memory.
	streamBuffer = 64 << 10
)

// NewHTTPServer makes a server with the fast path for hits, which backends send again and
// again. Its timeouts keep slow and idle clients from holding it up. wall is the node's own
// clock. The caller gives it a listener and starts it.
func NewHTTPServer(handler http.Handler, wall func() time.Time) *fastpath.Server {
	return fastpath.New(&http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReadFrameSize:              maxFrame,
			MaxReceiveBufferPerConnection: streamBuffer,
			MaxReceiveBufferPerStream:     streamBuffer,
			// The write timeout resets a stream, for which its connection must take a frame. Of a
			// client that takes nothing at all the connection is closed.
			WriteByteTimeout: writeTimeout,
		},
	}, fastpath.Options{
		Serves: isHit,
		Varies: []string{idempotencyHeader, "Traceparent", "Tracestate", "X-Request-Id"},
		Wall:   wall,
	})
}
