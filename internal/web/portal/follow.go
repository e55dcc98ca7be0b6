package portal

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"quotad/internal/web/page"
	"quotad/internal/web/parts"
)

const (
	// beatEvery is the interval of a stream's heartbeat. After 6 s without an event, the page reports that it is
	// out of date.
	beatEvery = 2 * time.Second
	// drawEvery is the minimum interval between two renderings of limits that change by themselves. The hub
	// reports all other changes.
	drawEvery = time.Second
	// slideEvery is the interval between two renderings of limits that change continuously with time.
	slideEvery = 5 * time.Second
	// restEvery is the minimum interval between two renderings of the outlook and the cost, which need more
	// reads than the limits.
	restEvery = 8 * time.Second
	// drawsOfNode is the number of parts that all streams of a node may render in a second, and drawsAtOnce is
	// the largest burst. Rendering a part takes a millisecond or two of CPU time, and hits have priority. If
	// more pages change continuously, each page is rendered less often.
	drawsOfNode, drawsAtOnce = 50, 100
)

// A follower sends the changed parts of a page to the browser that has the page open.
type follower struct {
	*page.Visit
	portal *Portal
	out    *events
	state  *parts.Standing // state of the last rendered limits, or nil at first

	sent map[string][sha256.Size]byte // hashes of the last sent parts, by template name
	// These flags report whether the outlook or the cost is out of date. The outlook depends on the limits as
	// last shown, and the cost depends on the counted usage.
	outlookOld, costOld bool
}

func newFollower(p *Portal, v *page.Visit, out *events) *follower {
	return &follower{Visit: v, portal: p, out: out, sent: map[string][sha256.Size]byte{}, costOld: true} // the page may be stale
}

// A turn schedules when a stream may render a part again.
type turn struct {
	of    *rate.Limiter // the node's limiter
	taken bool          // reserved, and its wait has passed
}

// wait returns the remaining wait for the turn, or 0 if the stream may render now.
func (t *turn) wait() time.Duration {
	if t.taken {
		t.taken = false
		return 0
	}
	wait := t.of.Reserve().Delay()
	t.taken = wait > 0
	return wait
}

// follow sends changes until the browser disconnects, the session ends, or the node stops.
func (f *follower) follow(line *stream) {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	draw, rest := time.NewTimer(0), time.NewTimer(drawEvery)
	defer draw.Stop()
	defer rest.Stop()
	told, resting := true, true
	limitsTurn, restTurn := turn{of: f.portal.draws, taken: true}, turn{of: f.portal.draws} // limits are sent at once
	for ok := true; ok; {
		select {
		case <-f.Ctx().Done():
			return
		case <-f.portal.stopping:
			return
		case <-line.changed:
			f.costOld = true
			if !told {
				told = true
				draw.Reset(drawEvery / 4)
			}
		case <-draw.C:
			if wait := limitsTurn.wait(); wait > 0 {
				told = true
				draw.Reset(wait)
				continue
			}
			var next time.Duration
			next, ok = f.sendLimits()
			told = false
			draw.Reset(next)
			if !resting && f.hasOld() {
				rest.Reset(0)
			}
		case <-rest.C:
			if resting = f.hasOld(); resting {
				if wait := restTurn.wait(); wait > 0 {
					rest.Reset(wait)
					continue
				}
				ok = f.sendRest()
				rest.Reset(restEvery)
			}
		case <-beat.C:
			ok = f.beat()
		case <-line.over:
			f.out.send("over", "")
			return
		}
	}
}

// send sends parts that were just read if the session still exists, because otherwise the customer's key may
// belong to another customer by now. If the session cannot be checked, send sends nothing, and all parts count
// as never sent. ok reports whether the stream may continue.
func (f *follower) send(data string) (sent, ok bool) {
	found, err := f.Site.Find(f.R, f.Session.Kind)
	switch {
	case err != nil:
		clear(f.sent)
		return false, true
	case found == nil:
		f.out.send("over", "")
		return false, false
	}
	ok = f.out.send("", data)
	return ok, ok
}

func (f *follower) hasOld() bool { return f.state != nil && (f.outlookOld || f.costOld) }

// sendLimits sends the part with the limits, unless the part is unchanged. next is the time after which the part
// changes by itself.
func (f *follower) sendLimits() (next time.Duration, ok bool) {
	state, err := parts.StandingOf(f.Visit)
	if err != nil {
		return slideEvery, true // there is no heartbeat, so the page reports that it is old
	}
	if f.state != nil && f.state.Periods() != state.Periods() {
		f.costOld = true
	}
	f.state = state
	data := state.Limits()
	next = changesIn(&data, state)
	part, changed, ok := f.drawn("limits", data)
	if !changed {
		return next, ok
	}
	sent, ok := f.send(part)
	if sent {
		f.outlookOld = true
		ok = f.beat()
	}
	return next, ok
}

// changesIn returns the time for which the part stays correct if nothing else happens.
func changesIn(d *parts.LimitsData, state *parts.Standing) time.Duration {
	next := slideEvery * 12
	if state.Quota.TestClock != "" {
		return next
	}
	if ends := state.Quota.EndsAt; ends != nil && !state.Quota.Ended {
		next = min(next, ends.Sub(state.Quota.At)+drawEvery/10)
	}
	if change := state.Quota.Scheduled; change != nil {
		next = min(next, change.At.Sub(state.Quota.At)+drawEvery/10)
	}
	for i := range d.Cards {
		c := &d.Cards[i]
		if c.Slides {
			next = min(next, slideEvery)
		}
		if !c.At.IsZero() {
			next = min(next, c.At.Sub(state.Quota.At)+drawEvery/10)
		}
	}
	return max(next, drawEvery)
}

// sendRest sends the outlook and the cost in one event if they changed. If one of the two could not be read, its
// reading is retried later.
func (f *follower) sendRest() (ok bool) {
	var all strings.Builder
	if f.outlookOld {
		if !f.replace(&all, "outlook", "outlook", f.state.Outlook(f.Visit)) {
			return false
		}
		f.outlookOld = false
	}
	if f.costOld {
		if cost, err := parts.CostOf(f.Visit); err == nil {
			if !f.replace(&all, "cost", "cost-panel", overviewData{Cost: cost}) {
				return false
			}
			f.costOld = false
		}
	}
	if all.Len() == 0 {
		return true
	}
	sent, ok := f.send(all.String())
	if !sent {
		f.outlookOld, f.costOld = true, true
	}
	return ok
}

// replace adds the new content of an HTML element to an event, unless the content is unchanged.
func (f *follower) replace(event *strings.Builder, id, name string, data any) (ok bool) {
	part, changed, ok := f.drawn(name, data)
	if changed {
		event.WriteString(`<hx-partial hx-target="#` + id + `" hx-swap="innerMorph">` + part + `</hx-partial>`)
	}
	return ok
}

// drawn renders a part of the page with its template. changed reports whether the part differs from the last
// sent part, apart from countdowns. The caller must send a changed part.
func (f *follower) drawn(name string, data any) (part string, changed, ok bool) {
	var all bytes.Buffer
	if err := f.Site.Sheet("overview").ExecuteTemplate(&all, name, data); err != nil {
		f.Site.Options.Log.Error("part of a page cannot be drawn", "part", name, "error", err)
		return "", false, false
	}
	shown := sha256.Sum256(uncounted(all.Bytes()))
	before, there := f.sent[name]
	f.sent[name] = shown
	return all.String(), !there || shown != before, true
}

// counted matches an element that a script counts down, except for its end tag.
var counted = regexp.MustCompile(`<time [^>]*data-countdown[^>]*>[^<]*`)

// uncounted returns a part without the content that a script changes: the text of a countdown, and the target
// instant of a repeating countdown. The script computes the next target itself.
func uncounted(part []byte) []byte {
	return counted.ReplaceAllFunc(part, func(element []byte) []byte {
		tag, _, _ := bytes.Cut(element, []byte(">"))
		return tag[max(0, bytes.Index(tag, []byte("data-every="))):]
	})
}

// beat sends the page's present time in milliseconds as a sign that hits are counted. While the database is out
// of reach, beat sends nothing, so the page reports that it is out of date.
func (f *follower) beat() (ok bool) {
	if f.Site.Options.Trouble() != "" {
		return true
	}
	us, err := f.Site.Options.Now(f.Ctx())
	if err != nil {
		return true
	}
	if f.OnTestClock() { // a test clock shows the time at which the limits were read
		if f.state == nil {
			return true
		}
		us = f.state.Quota.At.UnixMicro()
	}
	return f.out.send("at", fmt.Sprint(us/1000))
}

// streamWrite bounds one write to a browser that does not read.
const streamWrite = 10 * time.Second

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
	h.Set("X-Accel-Buffering", "no") // nginx would buffer events
	_ = e.control.SetReadDeadline(time.Time{})
	e.deadline()
	e.w.WriteHeader(http.StatusOK)
	_ = e.control.Flush() // if the browser is gone, the next write fails
}

// deadline sets the deadline of the next write. Streams last longer than the server's write timeout for other
// responses.
func (e *events) deadline() {
	_ = e.control.SetWriteDeadline(e.site.Options.Wall().Add(streamWrite))
}

// send writes an event. ok reports whether the write succeeded.
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
