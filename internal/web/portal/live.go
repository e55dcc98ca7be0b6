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

// live serves the stream of the portal's first page.
func (p *Portal) live(w http.ResponseWriter, r *http.Request) {
	v, err := p.site.Begin(page.Customer, w, r)
	out := &events{w: w, control: http.NewResponseController(w), site: p.site}
	out.begin()
	if err != nil { // the page is reloaded and shows the reason
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

// counters returns the counters of the page's limits.
func (p *Portal) counters(v *page.Visit) ([]model.CounterKey, error) {
	_, values := parts.Attributes(v)
	attributes := map[string]string{}
	for _, h := range values {
		attributes[strings.TrimPrefix(h.Name, "attr.")] = h.Value
	}
	all, err := p.hub.watcher.Counters(v.Ctx(), v.Session.Customer, attributes)
	return all[:min(len(all), countersOfStream)], err
}

// The limits of streams.
const (
	streamsOfSession = 4
	streamsOfNode    = 1000
	// countersOfStream is the maximum number of watched counters of a page. A page with more counters is updated
	// every few seconds.
	countersOfStream = 200
	// watchEvery is the interval at which one statement reads the versions of all watched counters.
	watchEvery   = 500 * time.Millisecond
	watchTimeout = 5 * time.Second
	// checkEvery is the interval at which one statement checks the sessions of all streams. A stream ends within
	// 2 s of its session.
	checkEvery = 750 * time.Millisecond
)

// Watcher contains the functions by which pages detect changes.
type Watcher struct {
	// Counters returns the counters of a customer's limits for the given attribute values.
	Counters func(ctx context.Context, customer string, attributes map[string]string) ([]model.CounterKey, error)
	// Versions reads the versions of counters with one statement.
	Versions func(ctx context.Context, counters []model.CounterKey) ([]int64, error)
	// Change returns the newest change of plans and customers that is in force on this node.
	Change func() int64
}

// hub notifies the streams of this node of changes. It is safe for concurrent use.
type hub struct {
	watcher Watcher

	mu      sync.Mutex
	streams map[*stream]struct{}
	session map[string]int // number of streams by session token
}

// stream is one open page that receives changes.
type stream struct {
	session  string
	counters []model.CounterKey
	changed  chan struct{} // receives an element when something has changed
	over     chan struct{} // receives an element when the session has ended
}

func newStream(session string, counters []model.CounterKey) *stream {
	return &stream{session: session, counters: counters, changed: make(chan struct{}, 1), over: make(chan struct{}, 1)}
}

func newHub(w Watcher) *hub {
	return &hub{watcher: w, streams: map[*stream]struct{}{}, session: map[string]int{}}
}

// join adds a stream. It returns false if there are too many streams.
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

// run reads versions until ctx ends. It sends no statements while there are no streams.
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

// look reads the versions of all watched counters and notifies the streams of changed counters. If all is true,
// it notifies every stream. It returns the current versions.
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
		return known // the streams notice the error by their own reads
	}
	fresh := make(map[model.CounterKey]int64, len(counters))
	told := map[*stream]bool{}
	for i, k := range counters {
		fresh[k] = versions[i]
		// A counter that is not known yet may have changed between the page's first read and this read.
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
	default: // the stream has not yet read the previous notification
	}
}

// checkSessions notifies streams of the end of their sessions, until ctx ends. followed returns the active
// sessions. In an outage all sessions count as active.
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

// open returns all streams by session.
func (h *hub) open() map[string][]*stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string][]*stream{}
	for s := range h.streams {
		all[s.session] = append(all[s.session], s)
	}
	return all
}

// watched returns the counters of all streams, with the streams that watch each counter.
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
