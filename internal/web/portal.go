package web

import (
	"context"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
)

// A visit is one of the portal's pages.
type visit struct{ *Visit }

var portalPages = []struct {
	pattern string
	who     who
	show    func(*visit) (*view, error)
}{
	{"GET /portal/enter/{token}", anyone, (*visit).door},
	{"POST /portal/enter/{token}", anyone, (*visit).enter},
	{"POST /portal/leave", customer, (*visit).leave},
	{"GET /portal/{$}", anyone, (*visit).toPortal},
	{"GET /portal", customer, (*visit).overview},
	{"GET /portal/usage", customer, (*visit).usagePage},
	{"GET /portal/usage.csv", customer, (*visit).usageFile},
	{"GET /portal/refusals", customer, (*visit).refusalsPage},
	{"GET /portal/invoices", customer, (*visit).bills},
	{"GET /portal/invoices/{id}", customer, (*visit).bill},
	{"GET /portal/invoices/{id}/lines/{n}", customer, (*visit).billHours},
	{"GET /portal/invoices/file/{file}", customer, (*visit).billFile},
	{"GET /portal/plan", customer, (*visit).planPage},
}

// A Portal tells its open pages what has changed. It is safe for concurrent use.
type Portal struct {
	site     *Site
	hub      *hub
	draws    *rate.Limiter // of all streams
	stopping chan struct{} // closed when the node stops
}

// newPortal adds the portal's pages to a site.
func newPortal(site *Site, w Watcher) *Portal {
	for _, p := range portalPages {
		site.add(p.pattern, p.who, func(v *Visit) (*view, error) { return p.show(&visit{v}) })
	}
	p := &Portal{site: site, hub: newHub(w), draws: rate.NewLimiter(drawsOfNode, drawsAtOnce), stopping: make(chan struct{})}
	site.handle("GET /portal/live", http.HandlerFunc(p.live))
	return p
}

// Run tells open pages what has changed, and ends them with their sessions, until ctx ends.
func (p *Portal) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { p.hub.run(ctx) })
	both.Go(func() { p.hub.checkSessions(ctx, p.followed) })
	both.Wait()
}

// followed are the sessions that have not ended, of those with these tokens.
func (p *Portal) followed(ctx context.Context, tokens []string) (map[string]bool, error) {
	now, err := p.site.options.Now(ctx)
	if err != nil {
		return nil, err
	}
	return p.site.options.Store.FollowedSessions(ctx, tokens, now)
}

// Stop ends the streams of open pages. It is called once.
func (p *Portal) Stop() { close(p.stopping) }
