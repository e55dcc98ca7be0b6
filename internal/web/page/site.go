// Package page owns what all pages have in common: who asks and may, sessions, asking the API, messages,
// and the drawing of a view with what stands around it. It must not know what any page shows.
//
// The customer of a portal's page comes from the session alone.
package page

import (
	"context"
	"crypto/sha256"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

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
	Request string // the id of the page's request
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
	// PlayTime bounds the wait for a place on the playground, and the play. 0 means 4 s.
	PlayTime time.Duration
	Log      *slog.Logger

	Brand  Brand
	Secure bool     // browsers reach the pages by https
	URL    string   // of this service, as browsers see it
	Home   string   // the site that the portal leads back to; empty: there is none, or several
	Plans  []string // keys of the plans that customers may ask for in the portal
}

// Site answers requests for pages. It is safe for concurrent use.
type Site struct {
	Options  Options
	assets   *assets
	sheets   sheets
	Sessions sessions
	mux      *http.ServeMux
	guarded  http.Handler
}

// New makes a site without pages. files are templates and assets; more are functions that templates
// of the rooms above have.
func New(o Options, files fs.FS, more template.FuncMap) (*Site, error) {
	s := &Site{Options: o, mux: http.NewServeMux()}
	var err error
	if s.assets, err = loadAssets(files, &o.Brand); err != nil {
		return nil, err
	}
	if s.sheets, err = loadSheets(files, s.assets, more); err != nil {
		return nil, err
	}
	s.Sessions = newSessions(&s.Options)
	s.mux.Handle("GET /assets/", s.assets)
	s.mux.Handle("/", s.missing())
	if s.guarded, err = s.guard(s.mux); err != nil {
		return nil, err
	}
	return s, nil
}

// Add adds a page: its pattern of http.ServeMux, who may open it, and how its view is made. All are
// added before the first request.
func (s *Site) Add(pattern string, who Who, show func(*Visit) (*View, error)) {
	s.mux.Handle(pattern, s.serve(who, show))
}

// Handle adds what is no page. It asks who comes by Begin.
func (s *Site) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

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
	s.Options.Log.Error("panic while answering", "request_id", w.Header().Get("X-Request-Id"), "method", r.Method, "path", r.URL.Path, "panic", p,
		"stack", string(debug.Stack()))
	if _, begun := w.Header()["Content-Type"]; begun {
		panic(http.ErrAbortHandler)
	}
	s.draw(w, s.visitOf(w, r), errBroken.View())
}

// guard does what all pages have in common before one of them is asked: it keeps other sites'
// requests and, without TLS, other machines out. Assets are the same for everybody, and the page that
// says so needs them.
func (s *Site) guard(next http.Handler) (http.Handler, error) {
	cross := http.NewCrossOriginProtection()
	if u, err := url.Parse(s.Options.URL); err == nil && u.Host != "" {
		if err := cross.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
			return nil, err
		}
	}
	cross.SetDenyHandler(s.serve(Anyone, func(*Visit) (*View, error) { return nil, errCrossOrigin }))
	local := s.serve(Anyone, func(*Visit) (*View, error) { return nil, errNotSecure })
	guarded := cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.Options.Secure && !fromHere(r) && !strings.HasPrefix(r.URL.Path, "/assets/") {
			local.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	}), nil
}

var (
	errCrossOrigin = &Message{Status: http.StatusForbidden, Title: "This came from another site", Text: "Open the page here and try again."}
	errNotSecure   = &Message{
		Status: http.StatusForbidden, Title: "Pages need https",
		Text: "Without it they are shown on the same machine only. The operator sets --tls-cert and --tls-key, or an https --public-url behind a proxy.",
	}
)

// fromHere reports whether a request comes from this machine, and asks for it by a name that no
// other site can have.
func fromHere(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && address.IsLoopback()
}
