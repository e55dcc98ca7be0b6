package portal

import (
	"net/http"

	"quotad/internal/web/page"
)

// Entering and leaving the portal.

// entry shows the button that opens a link. Showing the button does not use up the link, so a link preview in a
// chat or mail program leaves the link valid.
func (v *visit) entry() (*page.View, error) {
	now, err := v.Site.Options.Now(v.Ctx())
	if err != nil {
		return nil, err
	}
	link, err := v.Site.Options.Store.PortalLink(v.Ctx(), v.R.PathValue("token"), now)
	if err != nil {
		return nil, err
	}
	v.Look = page.Look{Theme: link.Theme, Embed: link.EmbedOrigin}
	return &page.View{Sheet: "entry", Layout: "plain", Title: "Open your usage", Data: struct{ Action string }{v.R.URL.EscapedPath()}}, nil
}

// enter uses up a link and starts the link's session.
func (v *visit) enter() (*page.View, error) {
	now, err := v.Site.Options.Now(v.Ctx())
	if err != nil {
		return nil, err
	}
	token := v.R.PathValue("token")
	link, err := v.Site.Options.Store.PortalLink(v.Ctx(), token, now)
	if err != nil {
		return nil, err
	}
	kind := v.Site.Sessions.Portal
	if link.EmbedOrigin != "" {
		kind = v.Site.Sessions.Embedded
	}
	err = v.Site.Open(v.W, v.R, kind, page.NewSession{Link: token}, map[string]string{
		page.KeyCustomer: link.Customer, page.KeyTheme: link.Theme, page.KeyBack: link.ReturnURL, page.KeyEmbed: link.EmbedOrigin,
	})
	return &page.View{To: link.Path}, err
}

// leave ends the session.
func (v *visit) leave() (*page.View, error) {
	if err := v.Session.End(v.W); err != nil {
		return nil, err
	}
	v.Session = nil
	said := &page.Message{Status: http.StatusOK, Title: "You have signed out", Text: "A new link shows your usage again."}
	if v.Look.Back != "" {
		said.Link = &page.Link{Text: "Back to " + v.Site.Options.Brand.DisplayName(), URL: v.Look.Back}
	}
	return said.View(), nil
}

func (v *visit) toPortal() (*page.View, error) { return &page.View{To: "/portal"}, nil }
