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
	// beatEvery is how often a stream says that it lives; after 6 s without a word a page says so.
	beatEvery = 2 * time.Second
	// drawEvery is how often limits are made again at most that change by themselves. The hub tells of
	// other changes.
	drawEvery = time.Second
	// slideEvery is how often limits are made again that change with time alone.
	slideEvery = 5 * time.Second
	// restEvery is how often the outlook and the cost are made again at most. They take more reads
	// than the limits.
	restEvery = 8 * time.Second
	// drawsOfNode is how many parts a second all streams of a node make again, and drawsAtOnce how many
	// without a pause. A part takes a millisecond or two of a processor, and hits come first: with more
	// pages than that changing all the time, each is made again less often.
	drawsOfNode, drawsAtOnce = 50, 100
)

// A follower sends an open page what has changed, part by part.
type follower struct {
	*page.Visit
	portal *Portal
	out    *events
	state  *parts.Standing // as the limits were drawn last; nil: not yet

	sent map[string][sha256.Size]byte // what is shown of each part that was sent, by the part's template
	// What is to be made again: the outlook goes by the limits as they are shown, the cost by what was
	// counted.
	outlookOld, costOld bool
}

func newFollower(p *Portal, v *page.Visit, out *events) *follower {
	return &follower{Visit: v, portal: p, out: out, sent: map[string][sha256.Size]byte{}, costOld: true} // the page may have changed since it was drawn
}

// A turn is when a stream may make a part again.
type turn struct {
	of    *rate.Limiter // of the node
	taken bool          // and waited for
}

// wait is how long to wait for the turn; 0: it has come.
func (t *turn) wait() time.Duration {
	if t.taken {
		t.taken = false
		return 0
	}
	wait := t.of.Reserve().Delay()
	t.taken = wait > 0
	return wait
}

// follow sends what changes until the browser, the session or the node goes.
func (f *follower) follow(line *stream) {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	draw, rest := time.NewTimer(0), time.NewTimer(drawEvery)
	defer draw.Stop()
	defer rest.Stop()
	told, resting := true, true
	limitsTurn, restTurn := turn{of: f.portal.draws, taken: true}, turn{of: f.portal.draws} // the first is at once
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

// send sends parts that were just read, if the session has not ended meanwhile: then the customer's
// key may be another's. Where that cannot be told nothing is sent, and the parts count as never sent;
// ok says that the stream goes on.
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

// sendLimits sends the part with the limits, unless it is what was sent last, and says when it
// changes by itself.
func (f *follower) sendLimits() (next time.Duration, ok bool) {
	state, err := parts.StandingOf(f.Visit)
	if err != nil {
		return slideEvery, true // no beat without an answer: the page says that it is old
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

// changesIn is how long the part may stay as it is if nothing else happens.
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

// sendRest sends the outlook and the cost where they changed. Both go into one event. A part that
// cannot be read now is tried again.
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

// replace adds to an event what the element of an id becomes, unless it is that already.
func (f *follower) replace(event *strings.Builder, id, name string, data any) (ok bool) {
	part, changed, ok := f.drawn(name, data)
	if changed {
		event.WriteString(`<hx-partial hx-target="#` + id + `" hx-swap="innerMorph">` + part + `</hx-partial>`)
	}
	return ok
}

// drawn is a part of the page, by its template. changed says that it differs from what was sent last,
// but for what a script counts down. Then the caller sends it.
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

// counted is what a script counts down, but for its end.
var counted = regexp.MustCompile(`<time [^>]*data-countdown[^>]*>[^<]*`)

// uncounted is a part without what a script changes in it: the text of a countdown, and the instant
// of one that begins again, since the script finds the next one.
func uncounted(part []byte) []byte {
	return counted.ReplaceAllFunc(part, func(element []byte) []byte {
		tag, _, _ := bytes.Cut(element, []byte(">"))
		return tag[max(0, bytes.Index(tag, []byte("data-every="))):]
	})
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

// streamWrite bounds one write to a browser that takes nothing.
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
