package page

import (
	"errors"
	"net/http"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

// Who is the kind of visitor who may open a page.
type Who int

// The kinds of visitors.
const (
	Anyone   Who = iota // needs no session
	Customer            // needs a session of the portal
	Staff               // needs a session of a signed-in key
)

// serve returns the handler of a page.
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
		if errors.Is(err, plans.ErrSessionOver) { // data that was already read must not be shown
			err = v.over(who)
		}
		if err != nil {
			shown = s.explain(v, err)
		}
		s.draw(w, v, shown)
	})
}

// over returns the error for a session that ended while its page was made. It removes the session from the
// visit.
func (v *Visit) over(of Who) error {
	v.Session, v.Customer = nil, nil
	if of == Staff {
		return errNoStaff
	}
	return errSignedOut
}

// explain returns the page that explains an error.
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
	case said.Status > http.StatusInternalServerError: // an outage, which is logged elsewhere, or too many requests at once
		s.Options.Log.Debug("page not served", "request_id", v.RequestID, "path", v.R.URL.Path, "error", err)
	}
	return s.framed(v, said)
}

// missing returns the handler for addresses without a page.
func (s *Site) missing() http.Handler {
	return s.serve(Anyone, func(*Visit) (*View, error) { return nil, ErrMissing })
}

// errNoStaff reports that no key is signed in. explain turns it into a redirect to the sign-in page.
var errNoStaff = errors.New("nobody is signed in")
