package portal

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
)

// live is the stream of the portal's first page.
func (p *Portal) live(w http.ResponseWriter, r *http.Request) {
	v, err := p.site.Begin(page.Customer, w, r)
	out := &events{w: w, control: http.NewResponseController(w), site: p.site}
	out.begin()
	if err != nil { // the page is loaded again, and says why
		out.send("over", "")
		return
	}
	counters, err := p.counters(v)
	if err != nil {
		out.send("over", "")
		return
	}
	line := newStream(v.Session.Kind.Token(v.Session.Ctx), counters)
	if !p.hub.join(line) {
		out.send("full", "")
		return
	}
	defer p.hub.leave(line)
	newFollower(p, v, out).follow(line)
}

// counters are those that the page's limits are judged by.
func (p *Portal) counters(v *page.Visit) ([]model.CounterKey, error) {
	_, values := parts.Attributes(v)
	attributes := map[string]string{}
	for _, h := range values {
		attributes[strings.TrimPrefix(h.Name, "attr.")] = h.Value
	}
	all, err := p.hub.watcher.Counters(v.Ctx(), v.Session.Customer, attributes)
	return all[:min(len(all), countersOfStream)], err
}

// Bounds of streams.
const (
	streamsOfSession = 4
	streamsOfNode    = 1000
	// countersOfStream is how many counters of a page are watched. A page with more is drawn again
	// every few seconds.
	countersOfStream = 200
	// watchEvery is how often the versions of all watched counters are read, with one statement.
	watchEvery   = 500 * time.Millisecond
	watchTimeout = 5 * time.Second
	// checkEvery is how often it is asked which sessions of streams have ended, with one statement. A
	// stream ends within 2 s of its session.
	checkEvery = 750 * time.Millisecond
)

// Watcher is what tells pages that something has changed.
type Watcher struct {
	// Counters are those that a customer's limits are judged by, with values of attributes.
	Counters func(ctx context.Context, customer string, attributes map[string]string) ([]model.CounterKey, error)
	// Versions reads the versions of counters with one statement.
	Versions func(ctx context.Context, counters []model.CounterKey) ([]int64, error)
	// Change is the newest change of plans and customers that counts on this node.
	Change func() int64
}

// A hub tells the streams of this node what has changed. It is safe for concurrent use.
type hub struct {
	watcher Watcher

	mu      sync.Mutex
	streams map[*stream]struct{}
	session map[string]int // streams by the session's token
}

// A stream is one open page that is told of changes.
type stream struct {
	session  string
	counters []model.CounterKey
	changed  chan struct{} // has an element when something changed
	over     chan struct{} // has an element when the session has ended
}

func newStream(session string, counters []model.CounterKey) *stream {
	return &stream{session: session, counters: counters, changed: make(chan struct{}, 1), over: make(chan struct{}, 1)}
}

func newHub(w Watcher) *hub {
	return &hub{watcher: w, streams: map[*stream]struct{}{}, session: map[string]int{}}
}

// join lets a stream in, or says that there are too many.
func (h *hub) join(s *stream) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= streamsOfNode || h.session[s.session] >= streamsOfSession {
		return false
	}
	h.streams[s] = struct{}{}
	h.session[s.session]++
	return true
}

func (h *hub) leave(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s)
	if h.session[s.session]--; h.session[s.session] == 0 {
		delete(h.session, s.session)
	}
}

// run reads versions until ctx ends. While nobody watches it asks nothing.
func (h *hub) run(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	known, change := map[model.CounterKey]int64{}, h.watcher.Change()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := h.watcher.Change()
		known = h.look(ctx, known, now != change)
		change = now
	}
}

// look reads the versions of all watched counters, and tells the streams of those that changed;
// all says that every stream is told. It returns what is known now.
func (h *hub) look(ctx context.Context, known map[model.CounterKey]int64, all bool) map[model.CounterKey]int64 {
	watched := h.watched()
	if len(watched) == 0 {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	counters := make([]model.CounterKey, 0, len(watched))
	for k := range watched {
		counters = append(counters, k)
	}
	versions, err := h.watcher.Versions(ctx, counters)
	if err != nil {
		return known // streams say so by their own reads
	}
	fresh := make(map[model.CounterKey]int64, len(counters))
	told := map[*stream]bool{}
	for i, k := range counters {
		fresh[k] = versions[i]
		// A counter that is new here may have changed between its page's first look and this one.
		if before, there := known[k]; all || !there || before != versions[i] {
			for _, s := range watched[k] {
				told[s] = true
			}
		}
	}
	for s := range told {
		tell(s.changed)
	}
	return fresh
}

func tell(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default: // it has been told and has not looked yet
	}
}

// checkSessions tells streams that their session has ended, until ctx ends. followed returns the
// sessions that have not. In an outage all are taken to last.
func (h *hub) checkSessions(ctx context.Context, followed func(context.Context, []string) (map[string]bool, error)) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		streams := h.open()
		if len(streams) == 0 {
			continue
		}
		within, cancel := context.WithTimeout(ctx, watchTimeout)
		last, err := followed(within, slices.Collect(maps.Keys(streams)))
		cancel()
		if err != nil {
			continue
		}
		for session, of := range streams {
			if !last[session] {
				for _, s := range of {
					tell(s.over)
				}
			}
		}
	}
}

// open are all streams by their sessions.
func (h *hub) open() map[string][]*stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string][]*stream{}
	for s := range h.streams {
		all[s.session] = append(all[s.session], s)
	}
	return all
}

// watched are the counters of all streams, and who watches each.
func (h *hub) watched() map[model.CounterKey][]*stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[model.CounterKey][]*stream{}
	for s := range h.streams {
		for _, k := range s.counters {
			all[k] = append(all[k], s)
		}
	}
	return all
}
