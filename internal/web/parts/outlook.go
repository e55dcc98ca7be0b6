package parts

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"quotad/client"
	"quotad/internal/quota/model"
	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

// An Outlook is a forecast, in words, of which limits run out first at the present pace.
type Outlook struct {
	Parts []phrase
	By    string // explanation of how the pace was measured
}

// A phrase is a part of a sentence.
type phrase struct {
	Text   string
	Strong bool
}

// leastPace is the minimum time of usage from which a pace is computed.
const leastPace = 10 * time.Minute

// An ending is the instant at which a limit runs out.
type ending struct {
	card *Card
	at   time.Time
	by   string
	over bool // the limit has already run out
}

// Outlook returns a forecast based on the usage so far, or nil if no forecast is possible.
func (s *Standing) Outlook(v *page.Visit) *Outlook {
	now := s.Quota.At
	var all []ending
	measured := false
	for i := range s.cards {
		c := &s.cards[i]
		at := slices.IndexFunc(s.Quota.Limits, func(l client.QuotaLimit) bool { return l.Name == c.Name })
		if !c.Shown || c.Of == 0 || at < 0 || c.Per != nil {
			continue
		}
		l := &s.Quota.Limits[at]
		if c.Left == 0 && l.Mode != "soft" {
			all = append(all, ending{card: c, at: resetOf(l), over: true})
			continue
		}
		p, ok := s.pace(v, l)
		measured = measured || ok
		if end, runsOut := p.ends(l, now); ok && runsOut && c.Left > 0 {
			all = append(all, ending{card: c, at: end, by: p.by})
		}
	}
	if len(all) == 0 {
		if !measured {
			return nil
		}
		return &Outlook{Parts: []phrase{{Text: "At your present pace, nothing will run out before it comes back."}}}
	}
	slices.SortStableFunc(all, func(a, b ending) int {
		if a.over != b.over {
			return map[bool]int{true: -1, false: 1}[a.over]
		}
		return a.at.Compare(b.at)
	})
	return sentence(all[:min(2, len(all))], now, v.Zone)
}

func resetOf(l *client.QuotaLimit) time.Time {
	if l.ResetAt == nil {
		return time.Time{}
	}
	return *l.ResetAt
}

// sentence describes at most two endings in words.
func sentence(all []ending, now time.Time, zone *time.Location) *Outlook {
	o := &Outlook{}
	say := func(text string, strong bool) { o.Parts = append(o.Parts, phrase{text, strong}) }
	var by []string
	for i, e := range all {
		name := e.card.Title
		switch {
		case e.over:
			say("There are no ", false)
			say(name, true)
			say(" left", false)
			if !e.at.IsZero() {
				say(" until ", false)
				say(words.When(e.at, now, zone), true)
			}
			say(". ", false)
		default:
			if i == 0 || all[i-1].over {
				say("At your present pace, ", false)
			} else {
				say("Then ", false)
			}
			say(name, true)
			verb := " will run out "
			if e.card.mode == "soft" {
				verb = " will pass " + words.Short(e.card.Of) + " "
			}
			say(verb, false)
			say(words.Around(e.at, now, zone), true)
			if e.card.mode == "soft" {
				say(" and go on", false)
			}
			say(". ", false)
			by = append(by, name+" by "+e.by)
		}
	}
	if last := &o.Parts[len(o.Parts)-1]; true {
		last.Text = strings.TrimSuffix(last.Text, " ")
	}
	if len(by) > 0 {
		o.By = "Measured: " + strings.Join(by, ", ") + "."
	}
	return o
}

// A speed is a number of units in a time span.
type speed struct {
	units, micros int64
	by            string
}

// paceBy is the time span in which the pace of a limit's meter is measured.
type paceBy int8

const (
	notPaced   paceBy = iota
	byWindow          // the current window, because each window starts from zero
	byLastHour        // the last hour, for sliding windows and token buckets
)

// pace returns the speed at which a limit's meter is used. It reports false if there is too little usage.
func (s *Standing) pace(v *page.Visit, l *client.QuotaLimit) (speed, bool) {
	now := s.Quota.At
	switch AlgorithmOf(l.Algorithm).pace {
	case notPaced:
	case byWindow:
		if l.WindowStart == nil {
			break
		}
		if since := now.Sub(*l.WindowStart); since >= leastPace && l.Used > 0 {
			return speed{l.Used, since.Microseconds(), "this window so far"}, true
		}
	case byLastHour:
		return lastHour(v, l.Meter, now)
	}
	return speed{}, false
}

// lastHour returns the pace of the running hour, or of the last two hours if the hour before was also used.
func lastHour(v *page.Visit, meter string, now time.Time) (speed, bool) {
	from := now.Truncate(time.Hour).Add(-time.Hour)
	used, err := v.API.Usage(v.Ctx(), v.Key, url.Values{"granularity": {"hour"}, "meter": {meter}, "from": {from.Format(time.RFC3339)}})
	if err != nil {
		v.Note("the pace", err)
		return speed{}, false
	}
	var units int64
	start := now
	for _, p := range used.Points {
		if p.Admitted > 0 && start.Equal(now) {
			start = p.Start
		}
		units += max(0, p.Admitted)
	}
	since := now.Sub(start)
	return speed{units, since.Microseconds(), "your last hour"}, since >= leastPace && units > 0
}

// ends returns the instant at which a limit runs out at a pace. It reports false if the limit's units return
// earlier.
func (p speed) ends(l *client.QuotaLimit, now time.Time) (time.Time, bool) {
	if p.units <= 0 || p.micros <= 0 || l.Window == nil {
		return time.Time{}, false
	}
	return AlgorithmOf(l.Algorithm).ends(p, l, now)
}

// lasts returns the instant at which units are used up. lost is the number of units that return in the pace's
// own time span.
func (p speed) lasts(units, lost int64, now time.Time) time.Time {
	micros := min(words.MulDiv(units, p.micros, max(1, p.units-lost)), int64(400*24*time.Hour/time.Microsecond))
	return now.Add(time.Duration(micros) * time.Microsecond)
}

func (p speed) whileRefilling(l *client.QuotaLimit, now time.Time) (time.Time, bool) {
	window, err := model.ParseDuration(*l.Window)
	back := words.MulDiv(p.micros, l.Limit, cmp.Or(window, 1))
	return p.lasts(l.Remaining, back, now), err == nil && back < p.units
}

func (p speed) whileSliding(l *client.QuotaLimit, now time.Time) (time.Time, bool) {
	window, err := model.ParseDuration(*l.Window)
	return p.lasts(l.Remaining, 0, now), err == nil && words.MulDiv(window, p.units, p.micros) > l.Limit
}

func (p speed) beforeReset(l *client.QuotaLimit, now time.Time) (time.Time, bool) {
	at := p.lasts(l.Remaining, 0, now)
	return at, l.ResetAt != nil && at.Before(*l.ResetAt)
}
