package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"quotad/client"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
)

// Identity is whom the pages ask the API for.
type Identity struct {
	Scope   plans.Scope
	KeyID   string
	KeyName string
}

// Options are the parts and settings of a Site. All parts are required.
type Options struct {
	API *client.Client // within the process
	// As is a context whose requests to the API are answered as those with a key of that identity.
	As    func(context.Context, Identity) context.Context
	Store *store.Store // of sessions and links

	// SignIn returns the live key of a secret that somebody typed. Without one status and detail
	// say why.
	SignIn func(r *http.Request, secret string) (key plans.Key, status int, detail string)
	// LiveKey returns the live key of a secret's SHA-256. plans.ErrUnknownKey: it was revoked.
	LiveKey func(ctx context.Context, hash [sha256.Size]byte) (plans.Key, error)
	// CatchUp returns when a change counts on this node, and all before it.
	CatchUp func(ctx context.Context, change int64) error
	// Why is the sentence for people that a refusal says.
	Why func(*model.Decision) string
	// Trouble says why hits are not counted now; empty: they are.
	Trouble func() string
	// Now is the database's clock, µs since the Unix epoch.
	Now func(ctx context.Context) (int64, error)
	// Wall is the node's own clock. Deadlines of connections are set by it.
	Wall func() time.Time
	Log  *slog.Logger

	Watcher Watcher // tells open pages what has changed

	Brand  Brand
	Secure bool   // browsers reach the pages by https
	URL    string // of this service, as browsers see it
	Home   string // the site that the portal leads back to; empty: there is none, or several
}

// Site answers requests for pages. It is safe for concurrent use.
type Site struct {
	options  Options
	assets   *assets
	sheets   sheets
	sessions sessions
	ground   *ground
	hub      *hub
	draws    *rate.Limiter // of all streams
	stopping chan struct{} // closed when the node stops
	mux      *http.ServeMux
	guarded  http.Handler
}

// New makes a site. It starts nothing: Run does.
func New(o Options) (*Site, error) {
	s := &Site{options: o, mux: http.NewServeMux(), hub: newHub(o.Watcher), draws: rate.NewLimiter(drawsOfNode, drawsAtOnce), stopping: make(chan struct{})}
	var err error
	if s.assets, err = loadAssets(&o.Brand); err != nil {
		return nil, err
	}
	if s.sheets, err = loadSheets(s.assets); err != nil {
		return nil, err
	}
	s.sessions = newSessions(&s.options)
	s.ground = newGround(o.Wall)
	for _, p := range pages() {
		s.mux.Handle(p.pattern, s.serve(&p))
	}
	s.mux.HandleFunc("GET /portal/live", s.live)
	s.mux.Handle("GET /assets/", s.assets)
	s.mux.Handle("/", s.missing())
	if s.guarded, err = s.guard(s.mux); err != nil {
		return nil, err
	}
	return s, nil
}

// Serves reports whether a path is one of the site's.
func Serves(path string) bool {
	for _, root := range []string{"/portal", "/admin", "/playground", "/assets"} {
		if path == root || len(path) > len(root) && path[:len(root)] == root && path[len(root)] == '/' {
			return true
		}
	}
	return false
}

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(w, r, p)
		}
	}()
	s.guarded.ServeHTTP(w, r)
}

// panicked answers with the page of a defect, and logs the panic. A page or stream that has begun is
// cut off, by net/http's own way to do so.
func (s *Site) panicked(w http.ResponseWriter, r *http.Request, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	s.options.Log.Error("panic while answering", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if _, begun := w.Header()["Content-Type"]; begun {
		panic(http.ErrAbortHandler)
	}
	s.draw(w, s.visitOf(w, r), errBroken.view())
}

// Run tells open pages what has changed, and ends them with their sessions, until ctx ends.
func (s *Site) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { s.hub.run(ctx) })
	both.Go(func() { s.hub.checkSessions(ctx, s.followed) })
	both.Wait()
}

// followed are the sessions that have not ended, of those with these tokens.
func (s *Site) followed(ctx context.Context, tokens []string) (map[string]bool, error) {
	now, err := s.options.Now(ctx)
	if err != nil {
		return nil, err
	}
	return s.options.Store.FollowedSessions(ctx, tokens, now)
}

// Stop ends the streams of open pages. It is called once.
func (s *Site) Stop() { close(s.stopping) }
