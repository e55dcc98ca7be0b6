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

// A View is what a page shows: a sheet, a place to go to, or a file.
type View struct {
	Status int    // 0: 200
	Sheet  string // the template's file, without .html
	Layout string // what stands around it; empty: that of whoever may open the page
	Title  string
	Tab    string // the entry of the menu that is open
	Live   bool   // the page has a stream
	Data   any

	To   string // instead of a sheet: 303
	File *File  // instead of a sheet
}

// A File is a body that is no page, such as CSV.
type File struct {
	MediaType, Name string
	Body            []byte
	Shown           bool   // and not saved
	Policy          string // of what is shown, instead of a page's
}

// serve makes the handler of a page.
func (s *Site) serve(who Who, show func(*Visit) (*View, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := s.Begin(who, w, r)
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
		s.Options.Log.Error("page failed", "path", v.R.URL.Path, "error", err)
	case said.Status > http.StatusInternalServerError: // an outage, which is logged once, or too many at once
		s.Options.Log.Debug("page not served", "path", v.R.URL.Path, "error", err)
	}
	return s.framed(v, said)
}

// missing is the page of an address that no page has.
func (s *Site) missing() http.Handler {
	return s.serve(Anyone, func(*Visit) (*View, error) { return nil, ErrMissing })
}
