package page

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"quotad/client"
	"quotad/internal/calendar"
	"quotad/internal/plans"
)

// A Visit is one page request by a visitor who may open the page.
type Visit struct {
	R       *http.Request
	W       http.ResponseWriter // for cookies only; views write the response
	Site    *Site
	API     *client.Client
	Session *Session   // nil if the page needs no session
	Form    url.Values // of a POST request
	As      Identity
	Look    Look
	Key     string // key of the page's customer, from the session or, for staff, from the address
	about   *client.Customer
	Zone    *time.Location // zone of all times on the page: the customer's, or UTC
	mu      sync.Mutex
	kept    map[string]any // cache of askOnce

	RequestID string // as in the response's X-Request-Id header, or empty

	Customer *client.Customer // the portal session's customer
}

// A Look contains the settings that a link into the portal carries for the portal's pages.
type Look struct{ Theme, Back, Embed string }

// Ctx returns the context for the visit's API requests. The context carries the visitor's identity.
func (v *Visit) Ctx() context.Context {
	if v.As == (Identity{}) {
		return v.R.Context()
	}
	return v.ctx(v.As)
}

// AsSupport returns a context like Ctx, but with the scope support. API requests that write data for a customer
// need this scope.
func (v *Visit) AsSupport() context.Context {
	as := v.As
	as.Scope = plans.ScopeSupport
	return v.ctx(as)
}

func (v *Visit) ctx(as Identity) context.Context {
	as.Request = v.RequestID
	return v.Site.Options.As(v.R.Context(), as)
}

// portalIdentity is the identity of the portal's API requests. Their paths contain the session's customer and
// never a customer from the request.
var portalIdentity = Identity{Scope: plans.ScopeRead, KeyID: "portal", KeyName: "portal"}

func (s *Site) visitOf(w http.ResponseWriter, r *http.Request) *Visit {
	return &Visit{R: r, W: w, RequestID: w.Header().Get("X-Request-Id"), Site: s, API: s.Options.API, Zone: time.UTC}
}

// Begin identifies the visitor of a page and reports an error if the visitor may not open the page.
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

// IsText reports whether all strings are valid UTF-8 without the character U+0000, as the API requires.
func IsText(all ...string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !utf8.ValidString(s) || strings.ContainsRune(s, 0) })
}

// meet reads the session's customer from the API.
func (v *Visit) meet() error {
	who, _, err := v.API.Customer(v.Ctx(), v.Key)
	if err != nil {
		return err
	}
	v.Customer = &who
	return v.SetClock(&who)
}

// SetClock sets the customer whose time zone and test clock, if any, apply to the page.
func (v *Visit) SetClock(who *client.Customer) error {
	zone, err := calendar.Location(who.Timezone)
	if err == nil {
		v.about, v.Zone = who, zone
	}
	return err
}

// OnTestClock reports whether the page's customer uses a test clock.
func (v *Visit) OnTestClock() bool { return v.about != nil && v.about.TestClock != nil }

// Now returns the page's present time: the test clock's time for a customer on a test clock, otherwise the
// database's time. The API returns no clock for an archived customer, so the database's time applies then, too.
func (v *Visit) Now() (time.Time, error) {
	if v.OnTestClock() {
		if q, err := v.API.Quota(v.Ctx(), v.Key, nil); err == nil {
			return q.At, nil
		}
	}
	us, err := v.Site.Options.Now(v.Ctx())
	return time.UnixMicro(us), err
}

// beginStaff reads the session's key at each request, so revoking a key ends the key's sessions.
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

// Of returns the API path of rest below the page's customer.
func (v *Visit) Of(rest string) string { return "/v1/customers/" + Segment(v.Key) + rest }

// Beside runs do, which makes a part of a page, concurrently with other parts. If do fails or panics, Beside
// logs the failure and calls without; the other parts are unaffected.
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

// Segment returns a name escaped as one segment of a path.
func Segment(name string) string { return url.PathEscape(name) }
