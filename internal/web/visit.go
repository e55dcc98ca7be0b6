package web

import (
	"context"
	"errors"
	"net/http"
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
	r       *http.Request
	w       http.ResponseWriter // for cookies; views are what writes it
	site    *Site
	api     *client.Client
	session *session // nil for anyone
	as      Identity
	look    look
	key     string // the customer's whom the page is about: the session's, or for staff the address's
	about   *client.Customer
	zone    *time.Location // of all times of the page: that customer's, or UTC
	mu      sync.Mutex
	kept    map[string]any // see askOnce

	customer *client.Customer // of a session of the portal
}

// A look is what a link into the portal says of its pages.
type look struct{ theme, back, embed string }

// ctx is the context of the visit's requests to the API: it says for whom they are.
func (v *Visit) ctx() context.Context {
	if v.as == (Identity{}) {
		return v.r.Context()
	}
	return v.site.options.As(v.r.Context(), v.as)
}

// portalIdentity is whom the portal asks the API for. The paths that it asks for are built with
// the session's customer and never with one of a request.
var portalIdentity = Identity{Scope: plans.ScopeRead, KeyID: "portal", KeyName: "portal"}

func (s *Site) visitOf(w http.ResponseWriter, r *http.Request) *Visit {
	return &Visit{r: r, w: w, site: s, api: s.options.API, zone: time.UTC}
}

// begin finds out who asks for a page, and whether they may.
func (s *Site) begin(who who, w http.ResponseWriter, r *http.Request) (v *Visit, err error) {
	v = s.visitOf(w, r)
	if !isText(r.URL.Path) || !isText(r.URL.RawQuery) {
		return v, errNoText
	}
	for name, values := range r.URL.Query() {
		if !isText(name) || !isText(values...) {
			return v, errNoText
		}
	}
	switch who {
	case customer:
		v.session, err = s.find(r, s.sessions.embedded, s.sessions.portal)
		if err == nil && v.session == nil {
			err = errSignedOut
		}
		if err == nil {
			v.as, v.look, v.key = portalIdentity, v.session.look, v.session.customer
			err = v.meet()
		}
	case staff:
		err = s.beginStaff(v)
	}
	return v, err
}

// isText reports whether all of it is UTF-8, without the character U+0000, as the API takes it.
func isText(all ...string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !utf8.ValidString(s) || strings.ContainsRune(s, 0) })
}

// meet reads who the session's customer is.
func (v *Visit) meet() error {
	who, _, err := v.api.Customer(v.ctx(), v.key)
	if err != nil {
		return err
	}
	v.customer = &who
	return v.setClock(&who)
}

// setClock makes a customer's clock the page's: the time zone, and the test clock where there is one.
func (v *Visit) setClock(who *client.Customer) error {
	zone, err := calendar.Location(who.Timezone)
	if err == nil {
		v.about, v.zone = who, zone
	}
	return err
}

func (v *Visit) onTestClock() bool { return v.about != nil && v.about.TestClock != nil }

// now is the page's present: what the test clock of the customer shows whom the page is about, or
// the database's time. The API tells no clock of an archived customer.
func (v *Visit) now() (time.Time, error) {
	if v.onTestClock() {
		if q, err := v.api.Quota(v.ctx(), v.key, nil); err == nil {
			return q.At, nil
		}
	}
	us, err := v.site.options.Now(v.ctx())
	return time.UnixMicro(us), err
}

// beginStaff looks the session's key up at each request: who revokes the key ends its sessions.
func (s *Site) beginStaff(v *Visit) (err error) {
	if v.session, err = s.find(v.r, s.sessions.admin); err != nil {
		return err
	}
	if v.session == nil {
		return errNoStaff
	}
	key, err := s.options.LiveKey(v.ctx(), v.session.hash)
	if errors.Is(err, plans.ErrUnknownKey) {
		v.session = nil
		return errNoStaff
	}
	v.as = Identity{key.Scope, key.ID, key.Name}
	return err
}

// of is a path of the API below the customer whom the page is about.
func (v *Visit) of(rest string) string { return "/v1/customers/" + segment(v.key) + rest }

// beside makes a part of a page while others are made. A part that fails, or panics, fails alone.
func (v *Visit) beside(all *sync.WaitGroup, part string, do func() error, without func()) {
	all.Go(func() {
		var err error
		defer func() {
			p := recover()
			switch {
			case p != nil:
				v.site.options.Log.Error("panic while making a part of a page", "part", part, "path", v.r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			case err != nil:
				v.note(part, err)
			default:
				return
			}
			without()
		}()
		err = do()
	})
}

// note logs why a part of a page is missing.
func (v *Visit) note(part string, err error) {
	v.site.options.Log.Warn("part of a page cannot be shown", "part", part, "path", v.r.URL.Path, "error", err)
}
