package play

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"quotad/internal/quota/model"
)

// The bounds of one play.
const (
	MaxHits    = 10_000
	MaxWindows = 60
)

// ErrTooManyHits reports that the traffic has more than MaxHits hits.
var ErrTooManyHits = errors.New("the traffic has more than 10,000 hits")

// Hit is one hit of a play.
type Hit struct {
	At   int64 // µs since the start
	Cost int64 // units
}

// The patterns of traffic.
const (
	Steady = "steady" // evenly spread, and nothing else
	Bursts = "bursts" // and bursts, each much shorter than a window
	Edge   = "edge"   // and a burst on each side of a window's edge
	Own    = "own"    // a list of hits
)

// Patterns lists the names of all patterns.
var Patterns = []string{Steady, Bursts, Edge, Own}

// Traffic specifies when hits arrive. The length of all patterns depends on a window, so that the same numbers
// make sense for a second and for a day.
type Traffic struct {
	Pattern string
	Window  int64 // µs
	Windows int64 // how many of them the play lasts, 1 to MaxWindows
	Steady  int64 // hits in a window, evenly spread; 0 to MaxHits
	Burst   int64 // hits of a burst; 0 to MaxHits
	Cost    int64 // of each hit, units; of Own the list says it
	List    []Hit // of Own
}

// Length returns the duration of the play, µs.
func (t *Traffic) Length() int64 { return t.Window * t.Windows }

// Check returns the faults of the traffic. Their fields are those of the JSON form.
func (t *Traffic) Check() (bad model.FieldErrors) {
	within := func(field string, n, least, most int64) {
		if n < least || n > most {
			bad = append(bad, model.FieldError{Field: field, Detail: fmt.Sprintf("must be between %d and %d", least, most)})
		}
	}
	if !slices.Contains(Patterns, t.Pattern) {
		bad = append(bad, model.FieldError{Field: "pattern", Detail: "must be steady, bursts, edge or own"})
	}
	within("windows", t.Windows, 1, MaxWindows)
	if t.Window < 1 || t.Window > model.MaxWindow {
		bad = append(bad, model.FieldError{Field: "window", Detail: `must be a duration such as "1m"`})
	} else if t.Windows > 0 && t.Windows <= MaxWindows && t.Length() > model.MaxWindow {
		bad = append(bad, model.FieldError{Field: "windows", Detail: "make the play longer than ten years: ask for fewer"})
	}
	within("steady", t.Steady, 0, MaxHits)
	within("burst", t.Burst, 0, MaxHits)
	within("cost", t.Cost, 1, model.MaxNumber)
	if len(t.List) > MaxHits {
		bad = append(bad, model.FieldError{Field: "hits", Detail: fmt.Sprintf("must be at most %d", MaxHits)})
	}
	for i, h := range t.List[:min(len(t.List), MaxHits)] {
		within(fmt.Sprintf("hits[%d].cost", i), h.Cost, 1, model.MaxNumber)
		if h.At < 0 || h.At >= max(1, t.Length()) {
			bad = append(bad, model.FieldError{Field: fmt.Sprintf("hits[%d].at", i), Detail: "must be within the play: from 0 to before its end"})
		}
	}
	return bad
}

// Hits returns the hits of the traffic in their order. It leaves out hits after the end of the play. The traffic
// must have been checked. Error: ErrTooManyHits.
func (t *Traffic) Hits() ([]Hit, error) {
	if t.Pattern == Own {
		hits := slices.Clone(t.List)
		slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(a.At, b.At) })
		return hits, nil
	}
	b := builder{cost: t.Cost, end: t.Length()}
	b.spread(t.Steady*t.Windows, 0, t.Length())
	switch t.Pattern {
	case Bursts:
		for from := t.Window / 3; from < t.Length() && !b.full(); from += max(1, t.Window/4*3) {
			b.spread(t.Burst, from, from+t.Window/20)
		}
	case Edge:
		near := t.Window / 15 * 2
		b.spread(t.Burst, t.Window-near, t.Window)
		b.spread(t.Burst, t.Window, t.Window+near)
		b.spread(t.Burst/3*2, t.Window/2*5, t.Window/2*5+near/2)
	}
	if b.full() {
		return nil, ErrTooManyHits
	}
	slices.SortStableFunc(b.hits, func(a, b Hit) int { return cmp.Compare(a.At, b.At) })
	return b.hits, nil
}

// builder collects hits, at most one more than a play may have.
type builder struct {
	hits      []Hit
	cost, end int64
}

func (b *builder) full() bool { return len(b.hits) > MaxHits }

// spread adds n evenly spaced hits in [from, to), each in the middle of its part.
func (b *builder) spread(n, from, to int64) {
	if n == 0 {
		return
	}
	step, rest := (to-from)/n, (to-from)%n
	for i := int64(0); i < n && !b.full(); i++ {
		// i·rest stays far below 64 bits, because both factors are below the number of hits, which is bounded.
		if at := from + i*step + i*rest/n + step/2; at < b.end {
			b.hits = append(b.hits, Hit{At: at, Cost: b.cost})
		}
	}
}
