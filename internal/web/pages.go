package web

import (
	"errors"
	"net/http"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

// who may open a page.
type who int

const (
	anyone   who = iota // no session
	customer            // a session of the portal
	staff               // a session that a key began
)

// A view is what a page shows: a sheet, a place to go to, or a file.
type view struct {
	status int    // 0: 200
	sheet  string // the template's file, without .html
	layout string // what stands around it; empty: that of whoever may open the page
	title  string
	tab    string // the entry of the menu that is open
	live   bool   // the page has a stream
	data   any

	to   string // instead of a sheet: 303
	file *file  // instead of a sheet
}

// A file is a body that is no page, such as CSV.
type file struct {
	mediaType, name string
	body            []byte
	shown           bool   // and not saved
	policy          string // of what is shown, instead of a page's
}

// serve makes the handler of a page.
func (s *Site) serve(who who, show func(*Visit) (*view, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := s.begin(who, w, r)
		var shown *view
		if err == nil {
			shown, err = show(v)
		}
		if err == nil {
			err = v.session.save(w)
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
func (v *Visit) over(of who) error {
	v.session, v.customer = nil, nil
	if of == staff {
		return errNoStaff
	}
	return errSignedOut
}

// explain is the page of an error.
func (s *Site) explain(v *Visit, err error) *view {
	if errors.Is(err, errNoStaff) {
		return v.toSignIn()
	}
	said, ok := errors.AsType[*message](err)
	if !ok {
		said = messageOf(store.Classify(err))
	}
	switch {
	case said.status == http.StatusInternalServerError:
		s.options.Log.Error("page failed", "path", v.r.URL.Path, "error", err)
	case said.status > http.StatusInternalServerError: // an outage, which is logged once, or too many at once
		s.options.Log.Debug("page not served", "path", v.r.URL.Path, "error", err)
	}
	return s.framed(v, said)
}

// missing is the page of an address that no page has.
func (s *Site) missing() http.Handler {
	return s.serve(anyone, func(*Visit) (*view, error) { return nil, errMissing })
}
