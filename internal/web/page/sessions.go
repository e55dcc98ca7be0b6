package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/alexedwards/scs/v2"
	"github.com/go-json-experiment/json"

	"quotad/client"
	"quotad/internal/calendar"
	"quotad/internal/plans"
)

// sessions are the kinds of sessions there are. They differ in their cookies only.
type sessions struct {
	Portal   *scs.SessionManager
	Embedded *scs.SessionManager // of a portal in another site's frame
	Admin    *scs.SessionManager
}

// The names under which a session keeps what it knows.
const (
	KeyCustomer = "customer"
	KeyTheme    = "theme"
	KeyBack     = "back"
	KeyEmbed    = "embed"
	KeyHash     = "key" // SHA-256 of the key's secret, in hexadecimal
)

func newSessions(o *Options) sessions {
	rows := sessionRows{o}
	// scs.New would start a goroutine that never ends, for a store that is not used here.
	kind := func(name string, sameSite http.SameSite, partitioned bool) *scs.SessionManager {
		if o.Secure {
			name = "__Host-" + name
		}
		return &scs.SessionManager{
			Lifetime: plans.SessionLife, IdleTimeout: plans.SessionIdle, Store: rows, Codec: codec{},
			Cookie: scs.SessionCookie{
				Name: name, Path: "/", HttpOnly: true, Persist: true, Secure: o.Secure, SameSite: sameSite, Partitioned: partitioned,
			},
		}
	}
	all := sessions{
		Portal:   kind("portal", http.SameSiteLaxMode, false),
		Embedded: kind("portal-embedded", http.SameSiteNoneMode, true),
		Admin:    kind("admin", http.SameSiteLaxMode, false),
	}
	if !o.Secure { // then only this machine's own pages can embed, which are the same site
		all.Embedded.Cookie.SameSite, all.Embedded.Cookie.Partitioned = http.SameSiteLaxMode, false
	}
	return all
}

// A Session is what a request knows of the session that it belongs to.
type Session struct {
	Kind *scs.SessionManager
	Ctx  context.Context // holds scs's data

	Customer string
	look     Look
	hash     [sha256.Size]byte
}

// Find returns the session of a request, nil when there is none.
func (s *Site) Find(r *http.Request, kinds ...*scs.SessionManager) (*Session, error) {
	for _, kind := range kinds {
		cookie, err := r.Cookie(kind.Cookie.Name)
		if err != nil || cookie.Value == "" || len(cookie.Value) > 200 {
			continue
		}
		ctx, err := kind.Load(r.Context(), cookie.Value)
		if err != nil {
			return nil, err
		}
		if kind.Token(ctx) == "" {
			continue
		}
		found := &Session{
			Kind: kind, Ctx: ctx, Customer: kind.GetString(ctx, KeyCustomer),
			look: Look{kind.GetString(ctx, KeyTheme), kind.GetString(ctx, KeyBack), kind.GetString(ctx, KeyEmbed)},
		}
		_, _ = hex.Decode(found.hash[:], []byte(kind.GetString(ctx, KeyHash)))
		return found, nil
	}
	return nil, nil //nolint:nilnil // nobody is signed in
}

// save notes that the session was used.
func (e *Session) save(w http.ResponseWriter) error {
	if e == nil || e.Kind.Status(e.Ctx) != scs.Modified {
		return nil
	}
	token, expires, err := e.Kind.Commit(e.Ctx)
	if err == nil {
		e.Kind.WriteSessionCookie(e.Ctx, w, token, expires)
	}
	return err
}

// Open begins a session that knows these values, under a new token. One that the browser had is
// over then.
func (s *Site) Open(w http.ResponseWriter, r *http.Request, kind *scs.SessionManager, by NewSession, values map[string]string) error {
	old, err := s.Find(r, kind)
	if err != nil {
		return err
	}
	ctx, err := kind.Load(context.WithValue(r.Context(), newSessionKey{}, by), "")
	if err != nil {
		return err
	}
	for name, value := range values {
		kind.Put(ctx, name, value)
	}
	token, expires, err := kind.Commit(ctx)
	if err != nil {
		return err
	}
	kind.WriteSessionCookie(ctx, w, token, expires)
	if old != nil {
		return kind.Destroy(old.Ctx)
	}
	return nil
}

// End deletes the session, and its cookie.
func (e *Session) End(w http.ResponseWriter) error {
	err := e.Kind.Destroy(e.Ctx)
	if err == nil {
		e.Kind.WriteSessionCookie(e.Ctx, w, "", time.Time{})
	}
	return err
}

// A NewSession says what a session begins with: a link into the portal, which it spends, or the id of
// a key. Only where the context has one a session is made. Elsewhere it is written if it is still
// there.
type NewSession struct{ Link, Key string }

type newSessionKey struct{}

// sessionRows keeps scs's sessions in the database. Its instants are PostgreSQL's.
type sessionRows struct{ of *Options }

// FindCtx implements scs.CtxStore. What this node remembers of the customer's key is at least as new
// as the customer.
func (s sessionRows) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	now, err := s.of.Now(ctx)
	if err != nil {
		return nil, false, err
	}
	data, change, err := s.of.Store.FindSession(ctx, token, now)
	if err == nil && change > 0 {
		err = s.of.CatchUp(ctx, change)
	}
	return data, data != nil, err
}

// CommitCtx implements scs.CtxStore.
func (s sessionRows) CommitCtx(ctx context.Context, token string, data []byte, expires time.Time) error {
	now, err := s.of.Now(ctx)
	if err != nil {
		return err
	}
	by, begins := ctx.Value(newSessionKey{}).(NewSession)
	switch {
	case !begins:
		return s.of.Store.UpdateSession(ctx, token, data, expires.UnixMicro(), now)
	case by.Link != "":
		return s.of.Store.EnterPortal(ctx, by.Link, now, token, data, expires.UnixMicro())
	}
	return s.of.Store.CreateSession(ctx, token, data, expires.UnixMicro(), by.Key)
}

// DeleteCtx implements scs.CtxStore.
func (s sessionRows) DeleteCtx(ctx context.Context, token string) error {
	return s.of.Store.DeleteSession(ctx, token)
}

// Find, Commit and Delete are scs.Store's; scs calls those with a context instead.

// Find implements scs.Store.
func (s sessionRows) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit implements scs.Store.
func (s sessionRows) Commit(token string, data []byte, expires time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expires)
}

// Delete implements scs.Store.
func (s sessionRows) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

// codec writes sessions as one JSON object of texts, which SQL can look into.
type codec struct{}

const keyDeadline = "until"

// Encode implements scs.Codec.
func (codec) Encode(deadline time.Time, values map[string]any) ([]byte, error) {
	all := map[string]string{keyDeadline: deadline.UTC().Format(time.RFC3339Nano)}
	for name, value := range values {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("a session's %s is no text", name)
		}
		all[name] = text
	}
	return json.Marshal(all)
}

// Decode implements scs.Codec.
func (codec) Decode(data []byte) (deadline time.Time, values map[string]any, err error) {
	var all map[string]string
	if err = json.Unmarshal(data, &all); err != nil {
		return deadline, nil, err
	}
	values = map[string]any{}
	for name, value := range all {
		if name != keyDeadline {
			values[name] = value
		}
	}
	deadline, err = time.Parse(time.RFC3339Nano, all[keyDeadline])
	return deadline, values, err
}

// A Visit is one request of a page by somebody who may open it.
type Visit struct {
	R       *http.Request
	W       http.ResponseWriter // for cookies; views are what writes it
	Site    *Site
	API     *client.Client
	Session *Session   // nil for anyone
	Form    url.Values // of a POST
	As      Identity
	Look    Look
	Key     string // the customer's whom the page is about: the session's, or for staff the address's
	about   *client.Customer
	Zone    *time.Location // of all times of the page: that customer's, or UTC
	mu      sync.Mutex
	kept    map[string]any // see askOnce

	RequestID string // which the answer has already; empty: none

	Customer *client.Customer // of a session of the portal
}

// A Look is what a link into the portal says of its pages.
type Look struct{ Theme, Back, Embed string }

// Ctx is the context of the visit's requests to the API: it says for whom they are.
func (v *Visit) Ctx() context.Context {
	if v.As == (Identity{}) {
		return v.R.Context()
	}
	return v.ctx(v.As)
}

// AsSupport is Ctx of what a customer may tell, and not only read.
func (v *Visit) AsSupport() context.Context {
	as := v.As
	as.Scope = plans.ScopeSupport
	return v.ctx(as)
}

func (v *Visit) ctx(as Identity) context.Context {
	as.Request = v.RequestID
	return v.Site.Options.As(v.R.Context(), as)
}

// portalIdentity is whom the portal asks the API for. The paths that it asks for are built with
// the session's customer and never with one of a request.
var portalIdentity = Identity{Scope: plans.ScopeRead, KeyID: "portal", KeyName: "portal"}

func (s *Site) visitOf(w http.ResponseWriter, r *http.Request) *Visit {
	return &Visit{R: r, W: w, RequestID: w.Header().Get("X-Request-Id"), Site: s, API: s.Options.API, Zone: time.UTC}
}

// Begin finds out who asks for a page, and whether they may.
func (s *Site) Begin(who Who, w http.ResponseWriter, r *http.Request) (v *Visit, err error) {
	v = s.visitOf(w, r)
	if !IsText(r.URL.Path) || !IsText(r.URL.RawQuery) {
		return v, ErrNoText
	}
	for name, values := range r.URL.Query() {
		if !IsText(name) || !IsText(values...) {
			return v, ErrNoText
		}
	}
	switch who {
	case Customer:
		v.Session, err = s.Find(r, s.Sessions.Embedded, s.Sessions.Portal)
		if err == nil && v.Session == nil {
			err = errSignedOut
		}
		if err == nil {
			v.As, v.Look, v.Key = portalIdentity, v.Session.look, v.Session.Customer
			err = v.meet()
		}
	case Staff:
		err = s.beginStaff(v)
	}
	return v, err
}

// IsText reports whether all of it is UTF-8, without the character U+0000, as the API takes it.
func IsText(all ...string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !utf8.ValidString(s) || strings.ContainsRune(s, 0) })
}

// meet reads who the session's customer is.
func (v *Visit) meet() error {
	who, _, err := v.API.Customer(v.Ctx(), v.Key)
	if err != nil {
		return err
	}
	v.Customer = &who
	return v.SetClock(&who)
}

// SetClock makes a customer's clock the page's: the time zone, and the test clock where there is one.
func (v *Visit) SetClock(who *client.Customer) error {
	zone, err := calendar.Location(who.Timezone)
	if err == nil {
		v.about, v.Zone = who, zone
	}
	return err
}

// OnTestClock reports whether the page is about a customer who lives by a test clock.
func (v *Visit) OnTestClock() bool { return v.about != nil && v.about.TestClock != nil }

// Now is the page's present: what the test clock of the customer shows whom the page is about, or
// the database's time. The API tells no clock of an archived customer.
func (v *Visit) Now() (time.Time, error) {
	if v.OnTestClock() {
		if q, err := v.API.Quota(v.Ctx(), v.Key, nil); err == nil {
			return q.At, nil
		}
	}
	us, err := v.Site.Options.Now(v.Ctx())
	return time.UnixMicro(us), err
}

// beginStaff looks the session's key up at each request: who revokes the key ends its sessions.
func (s *Site) beginStaff(v *Visit) (err error) {
	if v.Session, err = s.Find(v.R, s.Sessions.Admin); err != nil {
		return err
	}
	if v.Session == nil {
		return errNoStaff
	}
	key, err := s.Options.LiveKey(v.Ctx(), v.Session.hash)
	if errors.Is(err, plans.ErrUnknownKey) {
		v.Session = nil
		return errNoStaff
	}
	v.As = Identity{Scope: key.Scope, KeyID: key.ID, KeyName: key.Name}
	return err
}

// Of is a path of the API below the customer whom the page is about.
func (v *Visit) Of(rest string) string { return "/v1/customers/" + Segment(v.Key) + rest }

// Beside makes a part of a page while others are made. A part that fails, or panics, fails alone.
func (v *Visit) Beside(all *sync.WaitGroup, part string, do func() error, without func()) {
	all.Go(func() {
		var err error
		defer func() {
			p := recover()
			switch {
			case p != nil:
				v.Site.Options.Log.Error("panic while making a part of a page", "request_id", v.RequestID, "part", part, "path", v.R.URL.Path, "panic", p,
					"stack", string(debug.Stack()))
			case err != nil:
				v.Note(part, err)
			default:
				return
			}
			without()
		}()
		err = do()
	})
}

// Note logs why a part of a page is missing.
func (v *Visit) Note(part string, err error) {
	v.Site.Options.Log.Warn("part of a page cannot be shown", "request_id", v.RequestID, "part", part, "path", v.R.URL.Path, "error", err)
}

// Segment is a name as a part of a path.
func Segment(name string) string { return url.PathEscape(name) }
