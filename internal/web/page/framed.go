package page

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/alexedwards/scs/v2"

	"quotad/internal/plans/store"
)

// framed returns the page that shows a message, in the layout of the pages around the visit's address, with
// links to some of these pages.
func (s *Site) framed(v *Visit, m *Message) *View {
	shown := m.View()
	data, _ := shown.Data.(messageData)
	data.Again = data.Again && v.R.Method == http.MethodGet // a link cannot send a form again
	layout, tabs := s.around(v, m)
	if layout == "" {
		if !beneath(v.R.URL.Path, "/admin") {
			shown.Layout = "open"
		}
		if len(data.Links) == 0 && !data.Again {
			data.Links = s.outside(v)
		}
		shown.Data = data
		return shown
	}
	near := tabs[0]
	for _, t := range tabs {
		if beneath(v.R.URL.Path, t.URL) && len(t.URL) >= len(near.URL) {
			near = t
		}
	}
	for _, t := range []tab{near, tabs[0]} {
		if t.URL != v.R.URL.Path && (t != near || len(data.Links) == 0) {
			data.Links = append(data.Links, Link{t.Text, t.URL})
		}
	}
	switch {
	case m == errForbidden && layout == "admin":
		data.Text = "Your key has the scope " + string(v.As.Scope) + ", which does not allow this page."
		data.Links = append(data.Links, Link{"Sign in with another key", "/admin/sign-in"})
	case m == errBusy && layout == "admin":
		data.Text = "The database did not answer. Meanwhile each limit says what becomes of its hits."
	}
	shown.Layout, shown.Tab, shown.Data = layout, near.Name, data
	return shown
}

// beneath reports whether a path is root or a page under it.
func beneath(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// around returns the layout and the menu entries of the pages around the visit's address, the first page first.
// The layout is empty if the visitor has no session for these pages. In an outage no session can be verified, so
// the presence of the session's cookie is enough, because a menu reveals nothing about anybody.
func (s *Site) around(v *Visit, m *Message) (layout string, tabs []tab) {
	layout, who, kinds := "portal", Customer, []*scs.SessionManager{s.Sessions.Embedded, s.Sessions.Portal}
	switch {
	case m == errNotSecure:
		return "", nil
	case beneath(v.R.URL.Path, "/playground"):
		return "open", []tab{{"", "The playground", "/playground"}}
	case beneath(v.R.URL.Path, "/admin"):
		layout, who, kinds = "admin", Staff, []*scs.SessionManager{s.Sessions.Admin}
	}
	known, out := v.Customer != nil || who == Staff && v.As.Scope != "", m.Status == http.StatusServiceUnavailable
	if !known && !out {
		found, err := s.Begin(who, v.W, v.R)
		known, out = err == nil, err != nil && MessageOf(store.Classify(err)).Status == http.StatusServiceUnavailable
		if known {
			v.Session, v.As, v.Look, v.Key, v.Customer, v.Zone = found.Session, found.As, found.Look, found.Key, found.Customer, found.Zone
		}
	}
	if !known {
		v.As = Identity{}
		if !out || !hasCookie(v.R, kinds) {
			return "", nil
		}
	}
	if layout == "portal" {
		return layout, portalTabs()
	}
	for _, g := range adminTabs(string(v.As.Scope)) {
		tabs = append(tabs, g.Tabs...)
	}
	return layout, tabs
}

func hasCookie(r *http.Request, kinds []*scs.SessionManager) bool {
	for _, kind := range kinds {
		if cookie, err := r.Cookie(kind.Cookie.Name); err == nil && cookie.Value != "" {
			return true
		}
	}
	return false
}

// outside returns the links for a visitor who is not signed in.
func (s *Site) outside(v *Visit) []Link {
	if beneath(v.R.URL.Path, "/admin") {
		return []Link{{"Sign in", "/admin/sign-in"}}
	}
	if s.Options.Home == "" {
		return nil
	}
	return []Link{{"Back to " + s.Options.Brand.DisplayName(), s.Options.Home}}
}

// Out reports whether a link leads to another site and therefore must leave a frame.
func (l Link) Out() bool { return !strings.HasPrefix(l.URL, "/") }

// toSignIn redirects to the sign-in page, which later redirects back to the visit's address.
func (v *Visit) toSignIn() *View {
	to := "/admin/sign-in"
	if v.R.Method == http.MethodGet && v.R.URL.Path != "/admin" {
		to += "?to=" + url.QueryEscape(v.R.URL.RequestURI())
	}
	return &View{To: to}
}
