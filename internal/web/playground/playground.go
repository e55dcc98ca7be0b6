// Package playground owns the playground, the only page that needs no session. The playground plays traffic
// through limits and stores nothing.
package playground

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/quota/play"
	"quotad/internal/throttle"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

// The playground is public. The page's address contains the whole input of a play, and nothing is stored.

const (
	// playsPerMinute is the number of plays that one network address may request in a minute.
	playsPerMinute = 120
	// playsAtOnce is the number of pages that are played concurrently. Each page occupies one CPU.
	playsAtOnce = 2
	// playTime bounds the wait for a free slot and the play together, unless page.Options sets another time.
	playTime = 4 * time.Second
)

// A Ground is the state that all visitors of the playground share.
type Ground struct {
	visitors *throttle.Throttle
	places   chan struct{}
}

// New adds the playground to a site.
func New(site *page.Site) *Ground {
	g := &Ground{throttle.New(playsPerMinute, site.Options.Wall), make(chan struct{}, playsAtOnce)}
	site.Add("GET /playground", page.Anyone, g.page)
	site.Add("GET /playground/{$}", page.Anyone, func(*page.Visit) (*page.View, error) { return &page.View{To: "/playground"}, nil })
	return g
}

// playgroundData is the data of the playground page.
type playgroundData struct {
	Fields    map[string]string // the typed values
	Wrong     map[string]string // errors by field
	Presets   []parts.Choice
	Patterns  []parts.Choice
	Algorithm []parts.Choice
	Verdict   template.HTML
	Plays     []parts.ShownPlay
	Hits      bool // the page plays the typed list of hits
}

func (g *Ground) page(v *page.Visit) (*page.View, error) {
	asked := v.R.URL.Query()
	if asked.Has("hit") {
		return &page.View{To: "/playground?" + parts.OneMoreHit(asked).Encode()}, nil
	}
	if wait := g.visitors.Take(throttle.Address(v.R.RemoteAddr)); wait > 0 {
		v.W.Header().Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
		return nil, errManyPlays
	}
	s := parts.ReadSetup(asked)
	shown := &page.View{Sheet: "playground", Layout: "open", Title: "Playground"}
	data := dataOf(s)
	shown.Data = data
	if len(s.Wrong) > 0 {
		shown.Status = http.StatusUnprocessableEntity
		return shown, nil
	}
	ctx, cancel := context.WithTimeout(v.Ctx(), cmp.Or(v.Site.Options.PlayTime, playTime))
	defer cancel()
	plays, err := g.play(ctx, s, v.Site.Options.Why)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, errBusyPlays
	}
	data.Plays, data.Verdict = plays, verdict(s, plays)
	return shown, err
}

var (
	errManyPlays = &page.Message{
		Status: http.StatusTooManyRequests, Title: "That was a lot of playing",
		Text: "An address may play 120 times a minute. Wait a moment, then reload.", Again: true,
	}
	errBusyPlays = &page.Message{Status: http.StatusServiceUnavailable, Title: "Many are playing just now", Text: "Reload in a moment.", Again: true}
)

// play waits for a free slot and plays the traffic separately through each algorithm.
func (g *Ground) play(ctx context.Context, s *parts.Setup, why func(*model.Decision) string) ([]parts.ShownPlay, error) {
	select {
	case g.places <- struct{}{}:
		defer func() { <-g.places }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	hits, err := s.Traffic.Hits()
	if err != nil {
		return nil, err
	}
	var all []parts.ShownPlay
	for i, l := range s.Limits {
		r, err := play.Play(ctx, []*model.Limit{l}, play.Periods(parts.PlayInterval), hits, s.Traffic.Length())
		if err != nil {
			return nil, err
		}
		said := parts.AlgorithmOf(play.Algorithms[i])
		p := parts.ShowLimit("play-"+play.Algorithms[i], words.AlgorithmName(play.Algorithms[i]), r, &r.Limits[0])
		p.Says = said.Says(l)
		if play.Algorithms[i] == s.Algorithm {
			p.Chip = "your choice"
		}
		if r.Refusal != nil {
			p.Refusal = why(r.Refusal)
		}
		if n := len(r.Hits); n > 0 && s.Traffic.Pattern == play.Own {
			p.Last = lastHit(&r.Hits[n-1])
		}
		all = append(all, p)
	}
	return all, nil
}

// lastHit describes the result of the last hit. It shows both instants to the millisecond, because the sum of a
// rounded instant and a rounded wait would be another instant.
func lastHit(h *play.Outcome) string {
	at := "The hit at " + parts.Exactly(h.At)
	switch {
	case h.Admitted:
		return at + " is admitted."
	case h.Wait == model.Never:
		return at + " is refused, and no wait helps."
	}
	return at + " is refused, and would pass at " + parts.Exactly(model.AddUpTo(h.At, h.Wait)) + "."
}

// verdict returns a comparison of the algorithms in a sentence or two.
func verdict(s *parts.Setup, plays []parts.ShownPlay) template.HTML {
	window, limit := parts.Each(s.Limits[0].Window), words.Number(s.Limits[0].Limit)
	if window[0] > '9' {
		window = "one " + window
	}
	b := func(n int64) string { return "<b>" + words.Number(n) + "</b>" }
	if len(plays) != len(play.Algorithms) {
		return ""
	}
	fixed, sliding, log, bucket := &plays[0], &plays[1], &plays[2], &plays[3]
	refused := fixed.Refused + sliding.Refused + log.Refused + bucket.Refused
	var text string
	switch {
	case fixed.Admitted+fixed.Refused == 0:
		text = "No hit comes. Press Hit, or choose some traffic."
	case refused == 0:
		text = fmt.Sprintf("All %s hits pass, whatever the algorithm: this traffic stays below the limit.", b(fixed.Admitted))
	case fixed.Over != "":
		text = fmt.Sprintf("With this traffic the fixed window lets %s units through within %s, where %s were meant. The sliding window holds it at %s, the exact log at %s, and the token bucket at %s.",
			b(fixed.Fullest), template.HTMLEscapeString(window), limit, b(sliding.Fullest), b(log.Fullest), b(bucket.Fullest))
	default:
		text = fmt.Sprintf("Of %s hits the fixed window refuses %s, the sliding window %s, the exact log %s and the token bucket %s.",
			words.Number(fixed.Admitted+fixed.Refused), b(fixed.Refused), b(sliding.Refused), b(log.Refused), b(bucket.Refused))
	}
	return template.HTML(text) //nolint:gosec // made of numbers and fixed text
}

// dataOf returns the data of the page without its plays.
func dataOf(s *parts.Setup) *playgroundData {
	d := &playgroundData{Fields: s.Fields, Wrong: s.Wrong, Hits: s.Traffic.Pattern == play.Own}
	for _, p := range play.Presets() {
		address := presetAddress(&p)
		d.Presets = append(d.Presets, parts.Choice{Value: p.Key, Text: p.Name, URL: "/playground?" + address.Encode(), On: isOf(s, address)})
	}
	d.Patterns = s.Patterns()
	for _, name := range play.Algorithms {
		d.Algorithm = append(d.Algorithm, parts.Choice{Value: name, Text: words.AlgorithmName(name), On: name == s.Algorithm})
	}
	return d
}

// presetAddress returns the query of a preset's address.
func presetAddress(p *play.Preset) url.Values {
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	v := url.Values{
		"limit": {text(p.Spec.Limit)}, "window": {p.Spec.Window}, "capacity": {""}, "algorithm": {p.Spec.Algorithm},
		"pattern": {p.Traffic.Pattern}, "windows": {text(p.Traffic.Windows)}, "steady": {text(p.Traffic.Steady)},
		"burst": {text(p.Traffic.Burst)}, "cost": {text(p.Traffic.Cost)},
	}
	if p.Spec.Burst != nil {
		v.Set("capacity", text(*p.Spec.Burst))
	}
	return v
}

// isOf reports whether a setup equals the setup of an address.
func isOf(s *parts.Setup, address url.Values) bool {
	for name := range address {
		if s.Fields[name] != address.Get(name) {
			return false
		}
	}
	return true
}
