package api

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/respond"
	"quotad/internal/fastpath"
	"quotad/internal/plans/catalog"
	"quotad/internal/plans/store"
	"quotad/internal/quota"
)

// Options are the parts and settings of a Server. All parts are required; settings are
// optional.
type Options struct {
	Engine  *quota.Engine
	Catalog *catalog.Catalog
	Store   *store.Store

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
	SeparateMetrics bool          // /metrics is served elsewhere, by MetricsHandler
	Version         string        // of the program, named in the OpenAPI document
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
	options   Options
	engine    *quota.Engine
	catalog   *catalog.Catalog
	store     *store.Store
	now       func(ctx context.Context) (int64, error)
	log       *slog.Logger
	metrics   *metrics
	waits     *waits
	memory    *respond.Budget // of bodies and answers
	router    *chi.Mux
	single    http.Handler  // of POST /v1/hits
	batches   chan struct{} // one element for each batch under way
	unread    unread
	importing chan struct{} // one element for each import under way
	encoding  chan struct{} // one element for each answer that is being encoded
	openAPI   []byte
	docsPage  []byte

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
		now: options.Now, log: options.Log, router: chi.NewRouter(), batches: make(chan struct{}, maxBatches),
		importing: make(chan struct{}, maxImports), importWait: importWait, importPause: importPause,
		waits: newWaits(options.Deadline), encoding: make(chan struct{}, runtime.GOMAXPROCS(0)), memory: respond.NewBudget(options.BodyMemory),
	}
	list := routes(options.SeparateMetrics)
	s.metrics = newMetrics(options.Registry)
	s.countMemory(options.Registry)
	doc := apidoc.New(operations(list), options.Version, options.PublicURL)
	s.openAPI, s.docsPage = doc.OpenAPI(), doc.Page(options.LocalURL)
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

// Handler serves every route.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.dispatch) }

// dispatch hands single hits straight to their route.
// Every GET route answers HEAD, too; net/http leaves out the body.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request) {
	if isHit(r) {
		s.single.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodHead {
		ctx := chi.NewRouteContext()
		ctx.Routes, ctx.RouteMethod = s.router, http.MethodGet
		r = r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, ctx))
	}
	s.router.ServeHTTP(w, r)
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
	}, fastpath.Options{
		Serves: isHit,
		Varies: []string{idempotencyHeader, "Traceparent", "Tracestate", "X-Request-Id"},
		Wall:   wall,
	})
}

// isHit reports whether a request is one of a single hit, as nearly all are.
func isHit(r *http.Request) bool {
	return r.URL.Path == hitsPattern && r.URL.RawPath == "" && r.Method == http.MethodPost
}
