package play

import (
	"context"
	"time"

	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

// Samples is the number of instants in Limit.Level. They are evenly spaced, and the first instant is the start
// of the play.
const Samples = 240

// Outcome is the result of one hit.
type Outcome struct {
	Hit
	Admitted bool
	Wait     int64 // of a refusal: µs until the hit would be admitted, or model.Never
}

// Sum counts hits and their units.
type Sum struct{ Hits, Units int64 }

func (s *Sum) add(cost int64) { s.Hits, s.Units = s.Hits+1, model.AddUpTo(s.Units, cost) }

// Result is the result of all hits of a play.
type Result struct {
	Hits              []Outcome
	Admitted, Refused Sum
	LongestWait       int64 // µs, of the refusals that waiting lifts
	Hopeless          int64 // refusals that no wait lifts
	Length            int64 // µs
	Limits            []Limit
	// Refusal is the refusal with the longest wait; a refusal that no wait ends counts as the longest. Nil means
	// that no hit was refused.
	Refusal *model.Decision
}

// Limit is the result of one limit of a play.
type Limit struct {
	*model.Limit
	Refused int64   // hits that it did not admit; they passed if it is soft or a shadow
	Level   []int64 // units that counted against it, at each sample
	Fullest Window  // the window of its length with the most admitted units
}

// Window is a part of a play. Its units were admitted in [From, From + the limit's window).
type Window struct {
	From  int64 // µs since the start
	Units int64
}

// Epoch is midnight of 2026-01-01 in UTC, µs, at which plays with calendar windows start. A week since the Unix
// epoch starts there, too.
const Epoch = int64(1_767_225_600e6)

// startOf returns the instant of the clock, µs, at which a play of the limits starts. It is an edge of the
// longest window, so that windows look as people expect them.
func startOf(limits []*model.Limit) int64 {
	longest := int64(1)
	for _, l := range limits {
		if l.Calendar {
			return Epoch
		}
		longest = max(longest, l.Window)
	}
	return (Epoch + longest - 1) / longest * longest
}

// Periods returns the hours and billing periods of a play's customer, in UTC with an anchor at Epoch.
func Periods(interval calendar.Interval) calendar.Periods {
	anchor, err := calendar.AnchorAt(Epoch, time.UTC)
	if err != nil {
		panic("play: " + err.Error()) // the instant is a constant
	}
	return calendar.Periods{Zone: time.UTC, Anchor: anchor, Interval: interval}
}

// Play sends hits through limits without earlier usage. The hits must be in order, and the limits must belong to
// one meter. Concurrency limits apply to reservations only and are left out. The error is that of ctx.
func Play(ctx context.Context, limits []*model.Limit, periods calendar.Periods, hits []Hit, length int64) (*Result, error) {
	p := newPlayer(limits, periods, startOf(limits), length)
	for i, h := range hits {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p.sampleUntil(h.At)
		p.hit(h)
	}
	p.sampleUntil(length)
	for i := range p.result.Limits {
		l := &p.result.Limits[i]
		l.Fullest = fullest(p.result.Hits, l.Window)
	}
	return p.result, ctx.Err()
}

// player is a running play.
type player struct {
	*Stream
	start  int64 // µs since the Unix epoch
	series model.Series
	result *Result
}

func newPlayer(limits []*model.Limit, periods calendar.Periods, start, length int64) *player {
	s := NewStream(limits, periods)
	p := &player{Stream: s, start: start, result: &Result{Length: length, Limits: make([]Limit, s.target.NumLimits())}}
	for i := range p.result.Limits {
		p.result.Limits[i] = Limit{Limit: s.target.Limit(i), Level: make([]int64, 0, Samples)}
	}
	return p
}

// hit decides one hit as a node does, and records the result.
func (p *player) hit(h Hit) {
	r := p.result
	p.series.Costs = append(p.series.Costs[:0], h.Cost)
	instant := p.start + h.At
	for i := range p.rows {
		instant = max(instant, p.rows[i].At) // a counter's time never runs backwards
	}
	p.series.Decide(p.target, p.rows, instant, nil, func(_ int, d model.Decision) {
		wait := d.RetryAfter()
		r.Hits = append(r.Hits, Outcome{h, d.Allowed, wait})
		for i := range r.Limits {
			if v := d.View(i); v.RetryAfter != 0 || v.Exceeded {
				r.Limits[i].Refused++
			}
		}
		if d.Allowed {
			r.Admitted.add(h.Cost)
			return
		}
		r.Refused.add(h.Cost)
		switch first := r.Refusal == nil; {
		case wait == model.Never:
			if r.Hopeless++; r.Hopeless == 1 {
				r.Refusal = &d
			}
		case first || wait > r.LongestWait:
			if r.LongestWait = max(r.LongestWait, wait); r.Hopeless == 0 {
				r.Refusal = &d
			}
		}
	})
}

// sampleUntil records the levels of the limits at each sample before an instant.
func (p *player) sampleUntil(at int64) {
	for {
		n := int64(len(p.result.Limits))
		if n == 0 {
			return
		}
		sample := int64(len(p.result.Limits[0].Level))
		next := p.result.Length/Samples*sample + p.result.Length%Samples*sample/Samples
		if sample == Samples || next >= at {
			return
		}
		d := model.Judge(p.target, p.rows, p.start+next, 0)
		for i := range p.result.Limits {
			l := &p.result.Limits[i]
			l.Level = append(l.Level, d.View(i).Used)
		}
	}
}

// fullest returns the window of a given length, µs, in which the most units were admitted. The window ends with
// a hit or at the end of the play.
func fullest(hits []Outcome, length int64) (most Window) {
	if length == 0 {
		return most
	}
	first, units := 0, int64(0)
	for i := range hits {
		if !hits[i].Admitted {
			continue
		}
		units = model.AddUpTo(units, hits[i].Cost)
		for ; hits[first].At <= hits[i].At-length; first++ {
			if hits[first].Admitted {
				units -= hits[first].Cost
			}
		}
		if units > most.Units {
			for !hits[first].Admitted {
				first++
			}
			most = Window{From: hits[first].At, Units: units}
		}
	}
	return most
}
