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

// Options contains the parts of a Server: the parts that all rooms share, and the parts that only one room
// needs.
type Options struct {
	serve.Options
	// Reconciler checks the books for GET /v1/reconcile.
	Reconciler *reconcile.Reconciler

	// Webhooks and Sender are used by the routes of webhooks.
	Webhooks *hooks.Webhooks
	Sender   *hooks.Sender

	// The following fields are settings. The zero value is the default.
	PublicURL       string // named in the OpenAPI document
	LocalURL        string // URL for clients on this machine, shown in /docs if PublicURL is empty
	SeparateMetrics bool   // MetricsHandler serves /metrics on another listener
	Portal          admin.Portal
	Version         string // program version, named in the OpenAPI document
}

// Server serves quotad's HTTP API. It is safe for concurrent use.
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
	single  http.Handler // handler of POST /v1/hits

	gateways http.Handler // handler of /v1/authorize
}

// New returns a server and registers its metrics in Options.Registry. It starts nothing.
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

// Limits against slow and idle clients, beside WriteTimeout.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
)

// Limits of one HTTP/2 connection. net/http applies the limits above to each stream.
const (
	// maxStreams is the maximum number of concurrent requests on a connection.
	maxStreams = 250
	// maxFrame is the smallest maximum frame size that HTTP/2 allows. A connection has a buffer for the
	// announced frame length during its whole life, even before a key is known.
	maxFrame = 16 << 10
	// streamBuffer is the number of bytes that a connection, and each of its streams, may send before a handler
	// reads them. It is the smallest value that net/http allows. These bytes are not part of Server.Memory.
	streamBuffer = 64 << 10
)

// NewHTTPServer returns a server with the fast path for hits, which backends send repeatedly. Its timeouts
// prevent slow and idle clients from blocking it. wall is the node's own clock. The caller provides a listener
// and starts the server.
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
			// The write timeout resets a stream, which requires that the connection accepts a frame. If the
			// client accepts nothing at all, this timeout closes the connection.
			WriteByteTimeout: serve.WriteTimeout,
		},
	}, fastpath.Options{
		Serves: func(r *http.Request) bool { return isHit(r) || hits.AsksAgain(r) },
		Varies: append([]string{request.IdempotencyHeader, "Traceparent", "Tracestate", "X-Request-Id"}, hits.GatewayHeaders...),
		Wall:   wall,
		Below:  hits.AuthorizePattern + "/",
	})
}
