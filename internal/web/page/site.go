// Package page owns the common parts of all pages: identification of visitors, sessions, requests to the API,
// messages, and the drawing of a view in its layout. It must not know the contents of any page.
//
// On portal pages, the customer is determined by the session alone.
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

// Identity is the identity under which the pages call the API.
type Identity struct {
	Scope   plans.Scope
	KeyID   string
	KeyName string
	Request string // id of the page's request
}

// Options contains the parts and settings of a Site. All parts are required.
type Options struct {
	API *client.Client // client within the process
	// As returns a context whose API requests have the rights of a key of that identity.
	As    func(context.Context, Identity) context.Context
	Store *store.Store // store of sessions and links

	// SignIn returns the active key of a typed secret. If there is no such key, status and detail contain the
	// reason.
	SignIn func(r *http.Request, secret string) (key plans.Key, status int, detail string)
	// LiveKey returns the active key of a secret's SHA-256. plans.ErrUnknownKey means that the key was revoked.
	LiveKey func(ctx context.Context, hash [sha256.Size]byte) (plans.Key, error)
	// CatchUp waits until a change and all changes before it are in force on this node.
	CatchUp func(ctx context.Context, change int64) error
	// Why returns the sentence for people that explains a refusal.
	Why func(*model.Decision) string
	// Trouble returns the reason why hits are not counted now, or an empty string.
	Trouble func() string
	// Now returns the database's time, µs since the Unix epoch.
	Now func(ctx context.Context) (int64, error)
	// Wall is the node's own clock. It sets the deadlines of connections.
	Wall func() time.Time
	// PlayTime limits the wait for a place on the playground plus the play. 0 means 4 s.
	PlayTime time.Duration
	Log      *slog.Logger

	Brand  Brand
	Secure bool     // browsers reach the pages over HTTPS
	URL    string   // URL of this service for browsers
	Home   string   // the site to which the portal links back; empty if there is none, or several
	Plans  []string // keys of plans that customers may request in the portal
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

// New returns a site without pages. files contains templates and assets. more contains template functions of the
// rooms above.
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

// Add adds a page with its http.ServeMux pattern, its permitted visitors, and the function that creates its
// view. All pages must be added before the first request.
func (s *Site) Add(pattern string, who Who, show func(*Visit) (*View, error)) {
	s.mux.Handle(pattern, s.serve(who, show))
}

// Handle adds a handler that is not a page. The handler calls Begin to identify the visitor.
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

// panicked responds with the page of a defect and logs the panic. A page or stream that has already begun is cut
// off in the way that net/http provides.
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

// guard makes the checks for all pages: it rejects requests of other sites and, without TLS, of other machines.
// Assets are exempt, because they are the same for all visitors and the page with the rejection needs them.
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

// fromHere reports whether a request comes from this machine and uses a host name that no other site can have.
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
