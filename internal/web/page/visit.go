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

// Visit is one request of a page by a visitor who may open the page.
type Visit struct {
	R       *http.Request
	W       http.ResponseWriter // only for cookies, because the view is written later
	Site    *Site
	API     *client.Client
	Session *Session   // nil on pages for anyone
	Form    url.Values // form of a POST
	As      Identity
	Look    Look
	Key     string // key of the page's customer: from the session, or for staff from the address
	about   *client.Customer
	Zone    *time.Location // timezone of all times on the page: the customer's, or UTC
	mu      sync.Mutex
	kept    map[string]any // cache of askOnce

	RequestID string // id that the response has already; empty if there is none

	Customer *client.Customer // customer of a portal session
}

// Look contains the appearance of the portal that a link specifies.
type Look struct{ Theme, Back, Embed string }

// Ctx returns the context of the visit's API requests, which contains the identity.
func (v *Visit) Ctx() context.Context {
	if v.As == (Identity{}) {
		return v.R.Context()
	}
	return v.ctx(v.As)
}

// AsSupport returns the context for changes that a customer may make in the portal.
func (v *Visit) AsSupport() context.Context {
	as := v.As
	as.Scope = plans.ScopeSupport
	return v.ctx(as)
}

func (v *Visit) ctx(as Identity) context.Context {
	as.Request = v.RequestID
	return v.Site.Options.As(v.R.Context(), as)
}

// portalIdentity is the identity under which the portal calls the API. The portal builds paths with the
// session's customer, never with a customer from a request.
var portalIdentity = Identity{Scope: plans.ScopeRead, KeyID: "portal", KeyName: "portal"}

func (s *Site) visitOf(w http.ResponseWriter, r *http.Request) *Visit {
	return &Visit{R: r, W: w, RequestID: w.Header().Get("X-Request-Id"), Site: s, API: s.Options.API, Zone: time.UTC}
}

// Begin identifies the visitor of a page and checks whether the visitor may open the page.
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

// IsText reports whether all texts are UTF-8 without the character U+0000, as the API requires.
func IsText(all ...string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !utf8.ValidString(s) || strings.ContainsRune(s, 0) })
}

// meet reads the session's customer.
func (v *Visit) meet() error {
	who, _, err := v.API.Customer(v.Ctx(), v.Key)
	if err != nil {
		return err
	}
	v.Customer = &who
	return v.SetClock(&who)
}

// SetClock sets the page's clock to that of a customer: the timezone and, if there is one, the test clock.
func (v *Visit) SetClock(who *client.Customer) error {
	zone, err := calendar.Location(who.Timezone)
	if err == nil {
		v.about, v.Zone = who, zone
	}
	return err
}

// OnTestClock reports whether the page shows a customer on a test clock.
func (v *Visit) OnTestClock() bool { return v.about != nil && v.about.TestClock != nil }

// Now returns the page's present time: the test clock of the page's customer, or the database's time. For an
// archived customer, the API reports no clock.
func (v *Visit) Now() (time.Time, error) {
	if v.OnTestClock() {
		if q, err := v.API.Quota(v.Ctx(), v.Key, nil); err == nil {
			return q.At, nil
		}
	}
	us, err := v.Site.Options.Now(v.Ctx())
	return time.UnixMicro(us), err
}

// beginStaff checks the session's key at every request, so that revoking a key ends its sessions.
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

// Of returns an API path below the page's customer.
func (v *Visit) Of(rest string) string { return "/v1/customers/" + Segment(v.Key) + rest }

// Beside creates a part of a page concurrently with others. If the part fails or panics, the other parts are not
// affected.
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

// Note logs the reason why a part of a page is missing.
func (v *Visit) Note(part string, err error) {
	v.Site.Options.Log.Warn("part of a page cannot be shown", "request_id", v.RequestID, "part", part, "path", v.R.URL.Path, "error", err)
}

// Segment returns a name as an escaped path segment.
func Segment(name string) string { return url.PathEscape(name) }
