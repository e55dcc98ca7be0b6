package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"quotad/client"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/web"
	"quotad/internal/web/page"
	"quotad/internal/web/portal"
)

// maxBrandName is the maximum length in characters of --brand-name, which is shown at the top of each page.
const maxBrandName = 60

// maxLogoRead is the number of bytes that are read from a logo file. A valid logo is smaller.
const maxLogoRead = 1 << 20

// brand returns the portal's name, accent color and logo from the settings.
func (s *settings) brand() (page.Brand, error) {
	b := page.Brand{Name: strings.TrimSpace(s.BrandName)}
	if utf8.RuneCountInString(b.Name) > maxBrandName || !plans.PlainText(b.Name) {
		return b, badSetting("brand-name", "must be at most %d characters, without control characters", maxBrandName)
	}
	if s.BrandName != "" && !plans.Says(b.Name) {
		return b, badSetting("brand-name", plans.SeenRule)
	}
	if s.BrandAccent != "" {
		if err := b.SetAccent(s.BrandAccent); err != nil {
			return b, badSetting("brand-accent", "%w", err)
		}
	}
	if s.BrandLogo == "" {
		return b, nil
	}
	file, err := os.Open(s.BrandLogo)
	if err != nil {
		return b, badSetting("brand-logo", "%w", err)
	}
	defer func() { _ = file.Close() }()
	logo, err := io.ReadAll(io.LimitReader(file, maxLogoRead))
	if err == nil {
		err = b.SetLogo(logo)
	}
	if err != nil {
		return b, badSetting("brand-logo", "%s: %w", s.BrandLogo, err)
	}
	return b, nil
}

// checkOrigins returns an error if an origin is not in the form in which browsers send it.
func checkOrigins(flag string, origins []string) error {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || origin != u.Scheme+"://"+strings.ToLower(u.Host) ||
			strings.ContainsAny(u.Host, "*;, '") {
			return badSetting(flag, "must be origins such as https://app.example.com, without a path, not %q", origin)
		}
	}
	return nil
}

// secure reports whether browsers use https to reach this node.
func (s *settings) secure() bool {
	return s.TLSCert != "" || strings.HasPrefix(s.PublicURL, "https://")
}

// pagesURL returns the URL at which browsers reach this node.
func (n *node) pagesURL(s *settings) string {
	if s.PublicURL != "" {
		return strings.TrimSuffix(s.PublicURL, "/")
	}
	return n.url
}

// openPages creates the pages, which call the API of the same node.
func (n *node) openPages(s *settings) error {
	brand, err := s.brand()
	if err != nil {
		return err
	}
	home := ""
	if len(s.PortalReturnOrigins) == 1 {
		home = s.PortalReturnOrigins[0]
	}
	n.pages, err = web.New(page.Options{
		API: &client.Client{HTTPClient: &http.Client{Transport: n.api.Within()}},
		As: func(ctx context.Context, who page.Identity) context.Context {
			return serve.As(ctx, serve.Identity(who))
		},
		Why:   func(d *model.Decision) string { return respond.Why(&respond.Subject{Cost: d.Cost}, d) },
		Store: n.store, SignIn: n.api.SignIn, LiveKey: n.catalog.Live, CatchUp: n.catalog.CatchUp, Trouble: n.trouble,
		Now: n.clock.Now, Wall: time.Now, PlayTime: s.patience, Log: n.log,
		Brand: brand, Secure: s.secure(), URL: n.pagesURL(s), Home: home, Plans: s.PortalPlans,
	}, portal.Watcher{Counters: n.countersOf, Versions: n.engine.Versions, Change: n.catalog.Applied})
	return err
}

// countersOf returns the counters against which a customer's limits are judged.
func (n *node) countersOf(ctx context.Context, customer string, attributes map[string]string) ([]model.CounterKey, error) {
	account, err := n.catalog.Meters(ctx, customer)
	if err != nil {
		return nil, err
	}
	var all []model.CounterKey
	for _, m := range account.Meters {
		all = append(all, m.Target.For(attributes).ForReservations().Keys()...)
	}
	return all, nil
}

// trouble returns the reason why hits cannot be counted now, or an empty string.
func (n *node) trouble() string {
	if state, reason := n.state(); state == serve.StateDegraded {
		return reason
	}
	return ""
}

// handler returns the handler for the pages and the API.
func (n *node) handler() http.Handler {
	requests := n.api.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if web.Serves(r.URL.Path) {
			n.pages.ServeHTTP(w, r)
			return
		}
		requests.ServeHTTP(w, r)
	})
}
