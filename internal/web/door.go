package web

import "net/http"

// The way into the portal and out of it.

// door shows the button of a link. It spends nothing, so that previews of a link burn nothing.
func (v *visit) door() (*view, error) {
	now, err := v.site.options.Now(v.ctx())
	if err != nil {
		return nil, err
	}
	link, err := v.site.options.Store.PortalLink(v.ctx(), v.r.PathValue("token"), now)
	if err != nil {
		return nil, err
	}
	v.look = look{theme: link.Theme, embed: link.EmbedOrigin}
	return &view{sheet: "door", layout: "plain", title: "Open your usage", data: struct{ Action string }{v.r.URL.EscapedPath()}}, nil
}

// enter spends a link, and begins the session that it is for.
func (v *visit) enter() (*view, error) {
	now, err := v.site.options.Now(v.ctx())
	if err != nil {
		return nil, err
	}
	token := v.r.PathValue("token")
	link, err := v.site.options.Store.PortalLink(v.ctx(), token, now)
	if err != nil {
		return nil, err
	}
	kind := v.site.sessions.portal
	if link.EmbedOrigin != "" {
		kind = v.site.sessions.embedded
	}
	err = v.site.open(v.w, v.r, kind, newSession{link: token}, map[string]string{
		keyCustomer: link.Customer, keyTheme: link.Theme, keyBack: link.ReturnURL, keyEmbed: link.EmbedOrigin,
	})
	return &view{to: link.Path}, err
}

// leave ends the session.
func (v *visit) leave() (*view, error) {
	if err := v.session.end(v.w); err != nil {
		return nil, err
	}
	v.session = nil
	said := &message{status: http.StatusOK, title: "You have signed out", text: "A new link shows your usage again."}
	if v.look.back != "" {
		said.link = &link{"Back to " + v.site.options.Brand.name(), v.look.back}
	}
	return said.view(), nil
}

func (v *visit) toPortal() (*view, error) { return &view{to: "/portal"}, nil }
