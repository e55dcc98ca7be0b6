package portal

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
)

// streamWrite bounds one write to a browser that takes nothing.
const streamWrite = 10 * time.Second

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

// events writes server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	site    *page.Site
}

func (e *events) begin() {
	h := e.w.Header()
	page.Protect(h, "")
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events back
	_ = e.control.SetReadDeadline(time.Time{})
	e.deadline()
	e.w.WriteHeader(http.StatusOK)
	_ = e.control.Flush() // an error means that the browser is gone, as the next write says
}

// deadline bounds the next write. A stream outlasts what bounds other answers.
func (e *events) deadline() {
	_ = e.control.SetWriteDeadline(e.site.Options.Wall().Add(streamWrite))
}

// send writes an event; ok says that the browser took it.
func (e *events) send(name, data string) (ok bool) {
	var all strings.Builder
	if name != "" {
		all.WriteString("event: " + name + "\n")
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(data, "\r", ""), "\n") {
		all.WriteString("data: " + line + "\n")
	}
	all.WriteString("\n")
	e.deadline()
	_, err := e.w.Write([]byte(all.String()))
	return err == nil && e.control.Flush() == nil
}

// beat says what the page's clock shows, in milliseconds, and that hits are counted. While the
// database is out of reach it says nothing, and the page says that it is old.
func (f *follower) beat() (ok bool) {
	if f.Site.Options.Trouble() != "" {
		return true
	}
	us, err := f.Site.Options.Now(f.Ctx())
	if err != nil {
		return true
	}
	if f.OnTestClock() { // it shows what it showed when the limits were read: a change of it has them read again
		if f.state == nil {
			return true
		}
		us = f.state.Quota.At.UnixMicro()
	}
	return f.out.send("at", fmt.Sprint(us/1000))
}
