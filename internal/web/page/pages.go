package page

import (
	"errors"
	"net/http"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

// Who may open a page.
type Who int

// The kinds of who.
const (
	Anyone   Who = iota // no session
	Customer            // a session of the portal
	Staff               // a session that a key began
)

// serve makes the handler of a page.
func (s *Site) serve(who Who, show func(*Visit) (*View, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := s.Begin(who, w, r)
		if err == nil {
			err = v.readForm()
		}
		var shown *View
		if err == nil {
			shown, err = show(v)
		}
		if err == nil {
			err = v.Session.save(w)
		}
		if errors.Is(err, plans.ErrSessionOver) { // nothing of what was read is shown
			err = v.over(who)
		}
		if err != nil {
			shown = s.explain(v, err)
		}
		s.draw(w, v, shown)
	})
}

// over is what is said of a session that ended while its page was made.
func (v *Visit) over(of Who) error {
	v.Session, v.Customer = nil, nil
	if of == Staff {
		return errNoStaff
	}
	return errSignedOut
}

// explain is the page of an error.
func (s *Site) explain(v *Visit, err error) *View {
	if errors.Is(err, errNoStaff) {
		return v.toSignIn()
	}
	said, ok := errors.AsType[*Message](err)
	if !ok {
		said = MessageOf(store.Classify(err))
	}
	switch {
	case said.Status == http.StatusInternalServerError:
		s.Options.Log.Warn("page failed", "request_id", v.RequestID, "path", v.R.URL.Path, "error", err)
	case said.Status > http.StatusInternalServerError: // an outage, which is logged once, or too many at once
		s.Options.Log.Debug("page not served", "request_id", v.RequestID, "path", v.R.URL.Path, "error", err)
	}
	return s.framed(v, said)
}

// missing is the page of an address that no page has.
func (s *Site) missing() http.Handler {
	return s.serve(Anyone, func(*Visit) (*View, error) { return nil, ErrMissing })
}

// errNoStaff leads to the page where one signs in.
var errNoStaff = errors.New("nobody is signed in")
