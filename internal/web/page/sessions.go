package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/go-json-experiment/json"

	"quotad/internal/plans"
)

// sessions contains the kinds of sessions, which differ only in their cookies.
type sessions struct {
	Portal   *scs.SessionManager
	Embedded *scs.SessionManager // sessions of a portal in a frame of another site
	Admin    *scs.SessionManager
}

// The names of a session's values.
const (
	KeyCustomer = "customer"
	KeyTheme    = "theme"
	KeyBack     = "back"
	KeyEmbed    = "embed"
	KeyHash     = "key" // SHA-256 of the key's secret, in hexadecimal
)

func newSessions(o *Options) sessions {
	rows := sessionRows{o}
	// scs.New is not used, because it would start an endless goroutine for a store that is not used here.
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
	if !o.Secure { // without TLS only pages of this machine can embed the portal, and they are the same site
		all.Embedded.Cookie.SameSite, all.Embedded.Cookie.Partitioned = http.SameSiteLaxMode, false
	}
	return all
}

// Session is the session of a request.
type Session struct {
	Kind *scs.SessionManager
	Ctx  context.Context // contains the data of scs

	Customer string
	look     Look
	hash     [sha256.Size]byte
}

// Find returns the session of a request, or nil if there is no session.
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

// save records that the session was used.
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

// Open begins a session with these values under a new token. It ends the browser's previous session.
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

// End deletes the session and its cookie.
func (e *Session) End(w http.ResponseWriter) error {
	err := e.Kind.Destroy(e.Ctx)
	if err == nil {
		e.Kind.WriteSessionCookie(e.Ctx, w, "", time.Time{})
	}
	return err
}

// NewSession contains the start of a session: a link into the portal, which the session uses up, or the id of a
// key. A session is created only if the context contains a NewSession. Otherwise the session is updated if it
// still exists.
type NewSession struct{ Link, Key string }

type newSessionKey struct{}

// sessionRows stores the sessions of scs in the database. Its instants are PostgreSQL's.
type sessionRows struct{ of *Options }

// FindCtx implements scs.CtxStore. It waits until this node's data about the customer's key is at least as new
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

// Find, Commit and Delete exist only to implement scs.Store. scs never calls them, because it calls the variants
// with a context.

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

// codec encodes a session as one JSON object of texts, which SQL can read.
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
