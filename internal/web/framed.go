package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/alexedwards/scs/v2"

	"quotad/internal/plans/store"
)

// framed is the page of a message, in the frame of the pages around its address, with ways on.
func (s *Site) framed(v *Visit, m *message) *view {
	shown := m.view()
	data, _ := shown.data.(messageData)
	data.Again = data.Again && v.r.Method == http.MethodGet // no link sends a form again
	layout, tabs := s.around(v, m)
	if layout == "" {
		if !beneath(v.r.URL.Path, "/admin") {
			shown.layout = "open"
		}
		if len(data.Links) == 0 && !data.Again {
			data.Links = s.outside(v)
		}
		shown.data = data
		return shown
	}
	near := tabs[0]
	for _, t := range tabs {
		if beneath(v.r.URL.Path, t.URL) && len(t.URL) >= len(near.URL) {
			near = t
		}
	}
	for _, t := range []tab{near, tabs[0]} {
		if t.URL != v.r.URL.Path && (t != near || len(data.Links) == 0) {
			data.Links = append(data.Links, link{t.Text, t.URL})
		}
	}
	switch {
	case m == errForbidden && layout == "admin":
		data.Text = "Your key has the scope " + string(v.as.Scope) + ", which does not allow this page."
		data.Links = append(data.Links, link{"Sign in with another key", "/admin/sign-in"})
	case m == errBusy && layout == "admin":
		data.Text = "The database did not answer. Meanwhile each limit says what becomes of its hits."
	}
	shown.layout, shown.tab, shown.data = layout, near.Name, data
	return shown
}

// beneath reports whether a path is root or a page under it.
func beneath(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// around is the layout of the pages around the visit's address, with the entries of their menu,
// the first page first. It is empty for whom has no session of them. In an outage nobody can say
// whether a session holds. Then its cookie is enough: a menu tells nothing of anybody.
func (s *Site) around(v *Visit, m *message) (layout string, tabs []tab) {
	layout, who, kinds := "portal", customer, []*scs.SessionManager{s.sessions.embedded, s.sessions.portal}
	switch {
	case m == errNotSecure:
		return "", nil
	case beneath(v.r.URL.Path, "/playground"):
		return "open", []tab{{"", "The playground", "/playground"}}
	case beneath(v.r.URL.Path, "/admin"):
		layout, who, kinds = "admin", staff, []*scs.SessionManager{s.sessions.admin}
	}
	known, out := v.customer != nil || who == staff && v.as.Scope != "", m.status == http.StatusServiceUnavailable
	if !known && !out {
		found, err := s.begin(who, v.w, v.r)
		known, out = err == nil, err != nil && messageOf(store.Classify(err)).status == http.StatusServiceUnavailable
		if known {
			v.session, v.as, v.look, v.key, v.customer, v.zone = found.session, found.as, found.look, found.key, found.customer, found.zone
		}
	}
	if !known {
		v.as = Identity{}
		if !out || !hasCookie(v.r, kinds) {
			return "", nil
		}
	}
	if layout == "portal" {
		return layout, portalTabs()
	}
	for _, g := range adminTabs(string(v.as.Scope)) {
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

// outside are the ways on for whom is not signed in.
func (s *Site) outside(v *Visit) []link {
	if beneath(v.r.URL.Path, "/admin") {
		return []link{{"Sign in", "/admin/sign-in"}}
	}
	if s.options.Home == "" {
		return nil
	}
	return []link{{"Back to " + s.options.Brand.name(), s.options.Home}}
}

// Out reports whether a link leads to another site, and so out of a frame.
func (l link) Out() bool { return !strings.HasPrefix(l.URL, "/") }

// toSignIn leads to the page where one signs in, and from there back.
func (v *Visit) toSignIn() *view {
	to := "/admin/sign-in"
	if v.r.Method == http.MethodGet && v.r.URL.Path != "/admin" {
		to += "?to=" + url.QueryEscape(v.r.URL.RequestURI())
	}
	return &view{to: to}
}
