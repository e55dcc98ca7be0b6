package api

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"quotad/internal/api/admin"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/billing"
	"quotad/internal/api/drafts"
	"quotad/internal/api/hits"
	"quotad/internal/api/imports"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/api/service"
	"quotad/internal/api/usage"
	"quotad/internal/api/webhooks"
	"quotad/internal/billing/reconcile"
	"quotad/internal/events"
	"quotad/internal/fastpath"
	hooks "quotad/internal/webhooks"
)

// Options are what a Server is made of: what all rooms share, and what one of them needs.
type Options struct {
	serve.Options
	// Reconciler checks the books for GET /v1/reconcile.
	Reconciler *reconcile.Reconciler

	// Webhooks and Sender are of the routes of webhooks.
	Webhooks *hooks.Webhooks
	Sender   *hooks.Sender

	// Settings; the zero value is the default.
	PublicURL       string // named in the OpenAPI document
	LocalURL        string // where clients on this machine find it: for /docs, without a PublicURL
	SeparateMetrics bool   // /metrics is served elsewhere, by MetricsHandler
	Portal          admin.Portal
	Version         string // of the program, named in the OpenAPI document
}

// Server answers quotad's HTTP API. It is safe for concurrent use.
type Server struct {
	*serve.Server
	hits    *hits.Room
	usage   *usage.Room
	admin   *admin.Room
	drafts  *drafts.Room
	billing *billing.Room
	imports *imports.Room
	hooks   *webhooks.Room
	Service *service.Room
	router  *chi.Mux
	single  http.Handler // of POST /v1/hits

	gateways http.Handler // of /v1/authorize
}

// New makes a server and registers its metrics in Options.Registry. It starts nothing.
func New(options Options) *Server {
	if options.Version == "" {
		options.Version = "dev"
	}
	shared := serve.New(options.Options)
	limits := &usage.Room{Server: shared}
	s := &Server{
		Server: shared, hits: hits.New(shared), usage: limits, drafts: drafts.New(shared),
		admin: &admin.Room{Server: shared, Portal: options.Portal}, billing: &billing.Room{Server: shared, Limits: limits.LimitsIn, Left: limits.LeftIn},
		imports: imports.New(shared),
		hooks:   &webhooks.Room{Server: shared, Webhooks: options.Webhooks, Sender: options.Sender},
		router:  chi.NewRouter(),
	}
	var list []serve.Route
	doc := sync.OnceValue(func() *apidoc.Document {
		return apidoc.New(serve.Operations(list), events.Types, options.Version, options.PublicURL)
	})
	s.Service = service.New(shared, service.Options{
		Reconciler: options.Reconciler,
		OpenAPI:    sync.OnceValue(func() []byte { return doc().OpenAPI() }),
		Docs:       sync.OnceValue(func() []byte { return doc().Page(options.LocalURL) }),
	})
	list = s.routes()
	if options.SeparateMetrics {
		list = slices.DeleteFunc(list, func(r serve.Route) bool { return r.Pattern == "/metrics" })
	}
	for i := range list {
		handler := s.Serve(&list[i])
		s.router.Method(list[i].Method, list[i].Pattern, handler)
		switch list[i].Pattern {
		case hits.Pattern:
			s.single = handler
		case hits.AuthorizePattern:
			s.gateways = hits.ForGateways(handler)
		}
	}
	s.router.NotFound(s.notFound)
	s.router.MethodNotAllowed(s.methodNotAllowed)
	return s
}

// Bounds against slow and idle clients, beside WriteTimeout.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
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
	// it, the least that net/http allows. What waits there is no part of Server.Memory.
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
		WriteTimeout:      serve.WriteTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReadFrameSize:              maxFrame,
			MaxReceiveBufferPerConnection: streamBuffer,
			MaxReceiveBufferPerStream:     streamBuffer,
			// The write timeout resets a stream, for which its connection must take a frame. Of a
			// client that takes nothing at all the connection is closed.
			WriteByteTimeout: serve.WriteTimeout,
		},
	}, fastpath.Options{
		Serves: func(r *http.Request) bool { return isHit(r) || hits.AsksAgain(r) },
		Varies: append([]string{request.IdempotencyHeader, "Traceparent", "Tracestate", "X-Request-Id"}, hits.GatewayHeaders...),
		Wall:   wall,
		Below:  hits.AuthorizePattern + "/",
	})
}
