// Package page owns the common parts of all pages: the visitor's identity and permissions, sessions, queries to
// the API, messages, and the rendering of a view inside its layout. The package must not depend on the content
// of any page.
//
// The customer of a portal page comes only from the session, never from the request.
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

// Identity is the key on whose behalf pages query the API.
type Identity struct {
	Scope   plans.Scope
	KeyID   string
	KeyName string
	Request string // the id of the page request
}

// Options are the parts and settings of a Site. All parts are required.
type Options struct {
	API *client.Client // calls the API within the process
	// As returns a context whose API requests are answered as if a key with that identity had sent them.
	As    func(context.Context, Identity) context.Context
	Store *store.Store // stores sessions and links

	// SignIn returns the active key of a typed secret. If there is no such key, status and detail contain the
	// reason.
	SignIn func(r *http.Request, secret string) (key plans.Key, status int, detail string)
	// LiveKey returns the active key by the SHA-256 of its secret. The error is plans.ErrUnknownKey if the key
	// was revoked.
	LiveKey func(ctx context.Context, hash [sha256.Size]byte) (plans.Key, error)
	// CatchUp waits until this node has applied a change and all changes before it.
	CatchUp func(ctx context.Context, change int64) error
	// Why returns the sentence that explains a refusal to people.
	Why func(*model.Decision) string
	// Trouble returns the reason why hits are not counted at present, or an empty string if they are.
	Trouble func() string
	// Now returns the database's time, µs since the Unix epoch.
	Now func(ctx context.Context) (int64, error)
	// Wall is the node's own clock. It is used for deadlines of connections.
	Wall func() time.Time
	// PlayTime bounds the wait for a free slot on the playground, and the play itself. 0 means 4 s.
	PlayTime time.Duration
	Log      *slog.Logger

	Brand  Brand
	Secure bool     // browsers use https to open the pages
	URL    string   // this service's address in browsers
	Home   string   // target of the portal's back link; empty if there is none or several
	Plans  []string // keys of the plans that customers may request in the portal
}

// Site serves pages. It is safe for concurrent use.
type Site struct {
	Options  Options
	assets   *assets
	sheets   sheets
	Sessions sessions
	mux      *http.ServeMux
	guarded  http.Handler
}

// New returns a site without pages. files contains the templates and assets, and more contains template
// functions of the packages that add pages.
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

// Add adds a page with its http.ServeMux pattern, its permitted visitors, and the function that makes its view.
// All pages must be added before the first request.
func (s *Site) Add(pattern string, who Who, show func(*Visit) (*View, error)) {
	s.mux.Handle(pattern, s.serve(who, show))
}

// Handle adds a handler for something other than a page, such as a stream. The handler must call Begin to
// identify the visitor.
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

// panicked logs a panic and writes the page for internal errors. If the response has already begun, panicked
// aborts it with http.ErrAbortHandler.
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

// guard returns a handler that rejects other sites' requests before it calls next. Without TLS, the handler also
// rejects requests from other machines, except for assets. Assets are public, and the page that explains the
// rejection loads some of them.
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

// fromHere reports whether a request comes from this machine and names a host that no other site can use,
// localhost or a loopback address.
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
