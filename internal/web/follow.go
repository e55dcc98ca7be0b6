package web

import (
	"bytes"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

const (
	// beatEvery is how often a stream says that it lives; after 6 s without a word a page says so.
	beatEvery = 2 * time.Second
	// drawEvery is how often limits are made anew at most that change by themselves. The hub tells of
	// other changes.
	drawEvery = time.Second
	// slideEvery is how often limits are made anew that change with time alone.
	slideEvery = 5 * time.Second
	// restEvery is how often the outlook and the cost are made anew at most. They take more reads
	// than the limits.
	restEvery = 8 * time.Second
	// drawsOfNode is how many parts a second all streams of a node make anew, and drawsAtOnce how many
	// without a pause. A part takes a millisecond or two of a processor, and hits come first: with more
	// pages than that changing all the time, each is made anew less often.
	drawsOfNode, drawsAtOnce = 50, 100
)

// A follower sends an open page what has changed, part by part.
type follower struct {
	*visit
	out   *events
	state *standing // as the limits were drawn last; nil: not yet

	limits, outlook, cost string // what was sent last
	// What is to be made anew: the outlook goes by the limits as they are shown, the cost by what was
	// counted.
	outlookOld, costOld bool
}

// A turn is when a stream may make a part anew.
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
func (v *visit) follow(out *events, line *stream) {
	f := &follower{visit: v, out: out, costOld: true} // the page may have changed since it was drawn
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	draw, rest := time.NewTimer(0), time.NewTimer(drawEvery)
	defer draw.Stop()
	defer rest.Stop()
	told, resting := true, true
	limitsTurn, restTurn := turn{of: v.site.draws, taken: true}, turn{of: v.site.draws} // the first is at once
	for ok := true; ok; {
		select {
		case <-v.ctx().Done():
			return
		case <-v.site.stopping:
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
			out.send("over", "")
			return
		}
	}
}

// sendPart sends parts that were just read, if the session has not ended meanwhile: then the
// customer's key may be another's. Where that cannot be told nothing is sent; ok says that the
// stream goes on.
func (f *follower) sendPart(data string) (sent, ok bool) {
	found, err := f.site.find(f.r, f.session.kind)
	switch {
	case err != nil:
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
	state, err := f.standing()
	if err != nil {
		return slideEvery, true // no beat without an answer: the page says that it is old
	}
	if f.state != nil && f.state.periods() != state.periods() {
		f.costOld = true
	}
	f.state = state
	data := state.limits()
	next = data.changesIn(state)
	mark := data.mark()
	if mark == f.limits {
		return next, true
	}
	part, ok := f.drawn("limits", data)
	if !ok {
		return next, false
	}
	sent, ok := f.sendPart(part)
	if sent {
		f.limits, f.outlookOld = mark, true
		ok = f.beat()
	}
	return next, ok
}

// periods tells billing periods apart.
func (s *standing) periods() string {
	var all strings.Builder
	for i := range s.quota.Meters {
		all.WriteString(s.quota.Meters[i].PeriodStart.Format(time.RFC3339Nano))
	}
	return all.String()
}

// changesIn is how long the part may stay as it is if nothing else happens.
func (d *limitsData) changesIn(state *standing) time.Duration {
	next := slideEvery * 12
	if state.quota.TestClock != "" {
		return next
	}
	for i := range d.Cards {
		c := &d.Cards[i]
		if c.slides {
			next = min(next, slideEvery)
		}
		if !c.at.IsZero() {
			next = min(next, c.at.Sub(state.quota.At)+drawEvery/10)
		}
	}
	return max(next, drawEvery)
}

// sendRest sends the outlook and the cost where they changed. Both go into one event. A part that
// cannot be read now is tried again.
func (f *follower) sendRest() (ok bool) {
	var all strings.Builder
	if f.outlookOld {
		part, ok := f.drawn("outlook", f.visit.outlook(f.state))
		if !ok {
			return false
		}
		f.outlookOld = false
		replaces(&all, "outlook", part, &f.outlook)
	}
	if f.costOld {
		if cost, err := f.visit.cost(); err == nil {
			part, ok := f.drawn("cost-panel", overviewData{Cost: cost})
			if !ok {
				return false
			}
			f.costOld = false
			replaces(&all, "cost", part, &f.cost)
		}
	}
	if all.Len() == 0 {
		return true
	}
	sent, ok := f.sendPart(all.String())
	if !sent {
		f.outlook, f.cost, f.outlookOld, f.costOld = "", "", true, true
	}
	return ok
}

// replaces adds to an event what the element of an id becomes, unless it is that already.
func replaces(event *strings.Builder, id, part string, sent *string) {
	if part == *sent {
		return
	}
	*sent = part
	event.WriteString(`<hx-partial hx-target="#` + id + `" hx-swap="innerMorph">` + part + `</hx-partial>`)
}

// drawn is a part of the page.
func (f *follower) drawn(name string, data any) (part string, ok bool) {
	var all bytes.Buffer
	if err := f.site.sheets["overview"].ExecuteTemplate(&all, name, data); err != nil {
		f.site.options.Log.Error("part of a page cannot be drawn", "part", name, "error", err)
		return "", false
	}
	return all.String(), true
}
