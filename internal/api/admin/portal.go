package admin

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Portal contains the settings of links into the portal.
type Portal struct {
	URL           string   // the public URL of this service, to which /portal is appended
	Origins       []string // origins of sites that may show the portal in a frame
	ReturnOrigins []string // origins of sites to which the portal may link back
}

func (s *Room) portalRoutes() []serve.Route {
	return serve.Tagged("Portal", serve.Create(apidoc.Supporters, "/v1/portal-sessions", "portalSessions.create", "Make a link into a customer's portal",
		s.createPortalSession, serve.Same).Defaults(portalRequest{Path: "/portal", Theme: plans.ThemeAuto}).Fails(problem.KindNotFound))
}

type portalRequest client.PortalRequest

// portalPath matches the pages of the portal that a link may open. It matches no files, no streams, and no
// addresses that change anything.
var portalPath = regexp.MustCompile(`^/portal(/usage|/refusals|/plan|/invoices(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(/lines/[0-9]+)?)?)?(\?[A-Za-z0-9._~%&=:+-]*)?$`)

// maxPath is the maximum length of a link's path, in bytes.
const maxPath = 200

// isPortalPage reports whether a link may open a path, which must be a page of the portal with a valid query.
func isPortalPage(path string) bool {
	_, query, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(query)
	if err != nil || len(path) > maxPath || !portalPath.MatchString(path) {
		return false
	}
	for name, all := range values {
		if !request.Storable(name) || !request.Storable(strings.Join(all, "")) {
			return false
		}
	}
	return true
}

func (in *portalRequest) check(p *Portal) (bad model.FieldErrors) {
	refuse := func(field, detail string) { bad = append(bad, model.FieldError{Field: field, Detail: detail}) }
	if !plans.ValidCustomerKey(in.Customer) {
		refuse("customer", plans.CustomerKeyRule)
	}
	if !isPortalPage(in.Path) {
		refuse("path", "must be a page of the portal, such as /portal/usage")
	}
	if in.ReturnURL != "" && !slices.Contains(p.ReturnOrigins, originOf(in.ReturnURL)) {
		refuse("return_url", "must be a URL whose origin --portal-return-origins names")
	}
	if in.EmbedOrigin != "" && !slices.Contains(p.Origins, in.EmbedOrigin) {
		refuse("embed_origin", "must be an origin that --portal-origins names, such as https://app.example.com")
	}
	if !slices.Contains([]string{plans.ThemeAuto, plans.ThemeLight, plans.ThemeDark}, in.Theme) {
		refuse("theme", "must be auto, light or dark")
	}
	return bad
}

// originOf returns the origin of a URL in the form that settings use, or an empty string.
func originOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > 2000 || u.Host == "" || u.User != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func (s *Room) createPortalSession(c *serve.Call, in portalRequest) (is client.Portal, err error) {
	if bad := in.check(&s.Portal); len(bad) > 0 {
		return is, problem.InvalidFields(bad)
	}
	now, err := s.Instant(c.Ctx())
	if err != nil {
		return is, err
	}
	expires := now + plans.LinkLife.Microseconds()
	token, err := s.Store.CreatePortalLink(c.Ctx(), plans.PortalLink{
		Customer: in.Customer, Path: in.Path, ReturnURL: in.ReturnURL, EmbedOrigin: in.EmbedOrigin, Theme: in.Theme,
	}, expires, string(c.From))
	return client.Portal{URL: s.Portal.URL + "/portal/enter/" + token, ExpiresAt: respond.Time(expires)}, err
}
