// Package portal owns the pages of one customer, and the streams that update open pages. To add a page, add a
// template, a method that makes its view, and a line in pages.
package portal

import (
	"context"
	"net/http"
	"sync"

	"golang.org/x/time/rate"

	"quotad/internal/web/page"
)

// A visit is one request of a portal page.
type visit struct{ *page.Visit }

// pages lists all portal pages.
var pages = []struct {
	pattern string
	who     page.Who
	show    func(*visit) (*page.View, error)
}{
	{"GET /portal/enter/{token}", page.Anyone, (*visit).entry},
	{"POST /portal/enter/{token}", page.Anyone, (*visit).enter},
	{"POST /portal/leave", page.Customer, (*visit).leave},
	{"GET /portal/{$}", page.Anyone, (*visit).toPortal},
	{"GET /portal", page.Customer, (*visit).overview},
	{"GET /portal/usage", page.Customer, (*visit).usagePage},
	{"GET /portal/usage.csv", page.Customer, (*visit).usageFile},
	{"GET /portal/refusals", page.Customer, (*visit).refusalsPage},
	{"GET /portal/invoices", page.Customer, (*visit).bills},
	{"GET /portal/invoices/{id}", page.Customer, (*visit).bill},
	{"GET /portal/invoices/{id}/lines/{n}", page.Customer, (*visit).billHours},
	{"GET /portal/invoices/file/{file}", page.Customer, (*visit).billFile},
	{"GET /portal/plan", page.Customer, (*visit).planPage},
	{"POST /portal/plan/{plan}", page.Customer, (*visit).askForPlan},
}

// A Portal serves the portal's pages and notifies open pages of changes. It is safe for concurrent use.
type Portal struct {
	site     *page.Site
	hub      *hub
	draws    *rate.Limiter // limits the renderings of all streams
	stopping chan struct{} // closed when the node stops
}

// New adds the portal's pages to a site.
func New(site *page.Site, w Watcher) *Portal {
	for _, p := range pages {
		site.Add(p.pattern, p.who, func(v *page.Visit) (*page.View, error) { return p.show(&visit{v}) })
	}
	p := &Portal{site: site, hub: newHub(w), draws: rate.NewLimiter(drawsOfNode, drawsAtOnce), stopping: make(chan struct{})}
	site.Handle("GET /portal/live", http.HandlerFunc(p.live))
	return p
}

// Run notifies open pages of changes and of the end of their sessions, until ctx ends.
func (p *Portal) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { p.hub.run(ctx) })
	both.Go(func() { p.hub.checkSessions(ctx, p.followed) })
	both.Wait()
}

// followed returns the tokens of the sessions that still exist.
func (p *Portal) followed(ctx context.Context, tokens []string) (map[string]bool, error) {
	now, err := p.site.Options.Now(ctx)
	if err != nil {
		return nil, err
	}
	return p.site.Options.Store.FollowedSessions(ctx, tokens, now)
}

// Stop ends the streams of open pages. It must be called only once.
func (p *Portal) Stop() { close(p.stopping) }
