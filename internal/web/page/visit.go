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
