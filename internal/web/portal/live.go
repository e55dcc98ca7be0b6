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

// live serves the event stream of the portal's first page.
func (p *Portal) live(w http.ResponseWriter, r *http.Request) {
	v, err := p.site.Begin(page.Customer, w, r)
	out := &events{w: w, control: http.NewResponseController(w), site: p.site}
	out.begin()
	if err != nil { // the page reloads and shows the reason
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

// counters returns the keys of the counters of the limits on the page.
func (p *Portal) counters(v *page.Visit) ([]model.CounterKey, error) {
	_, values := parts.Attributes(v)
	attributes := map[string]string{}
	for _, h := range values {
		attributes[strings.TrimPrefix(h.Name, "attr.")] = h.Value
	}
	all, err := p.hub.watcher.Counters(v.Ctx(), v.Session.Customer, attributes)
	return all[:min(len(all), countersOfStream)], err
}

// Bounds on the streams of open pages.
const (
	streamsOfSession = 4
	streamsOfNode    = 1000
	// countersOfStream is the number of counters that are watched for a page. A page with more counters is
	// rendered again every few seconds.
	countersOfStream = 200
	// watchEvery is the interval at which one statement reads the versions of all watched counters.
	watchEvery   = 500 * time.Millisecond
	watchTimeout = 5 * time.Second
	// checkEvery is the interval at which one statement checks the sessions of all streams. A stream ends within
	// 2 s of its session.
	checkEvery = 750 * time.Millisecond
)

// Watcher contains the functions with which the portal detects changes.
type Watcher struct {
	// Counters returns the keys of the counters of a customer's limits. attributes selects the counters of
	// limits per attribute.
	Counters func(ctx context.Context, customer string, attributes map[string]string) ([]model.CounterKey, error)
	// Versions reads the versions of counters with one statement.
	Versions func(ctx context.Context, counters []model.CounterKey) ([]int64, error)
	// Change returns the number of the newest change of plans and customers that this node has applied.
	Change func() int64
}

// A hub notifies this node's streams of changes. It is safe for concurrent use.
type hub struct {
	watcher Watcher

	mu      sync.Mutex
	streams map[*stream]struct{}
	session map[string]int // number of streams by session token
}

// A stream is one open page that is notified of changes.
type stream struct {
	session  string
	counters []model.CounterKey
	changed  chan struct{} // contains an element if something changed
	over     chan struct{} // contains an element if the session has ended
}

func newStream(session string, counters []model.CounterKey) *stream {
	return &stream{session: session, counters: counters, changed: make(chan struct{}, 1), over: make(chan struct{}, 1)}
}

func newHub(w Watcher) *hub {
	return &hub{watcher: w, streams: map[*stream]struct{}{}, session: map[string]int{}}
}

// join adds a stream. It reports false if there are too many streams.
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

// run polls the versions of watched counters until ctx ends. It sends no statement while there are no streams.
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

// look reads the versions of all watched counters and returns the versions. It notifies the streams with changed
// counters, or every stream if all is true.
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
		return known // the streams' own reads report the outage
	}
	fresh := make(map[model.CounterKey]int64, len(counters))
	told := map[*stream]bool{}
	for i, k := range counters {
		fresh[k] = versions[i]
		// A counter without an earlier version may have changed between the page's first read and this read.
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
	default: // an earlier notification is still pending
	}
}

// checkSessions notifies streams of the end of their session, until ctx ends. followed returns the sessions that
// still exist. In an outage all sessions count as existing.
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

// open returns all streams by their sessions.
func (h *hub) open() map[string][]*stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string][]*stream{}
	for s := range h.streams {
		all[s.session] = append(all[s.session], s)
	}
	return all
}

// watched returns the counters of all streams, each with the streams that watch it.
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
