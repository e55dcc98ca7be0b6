package oracle

import (
	"fmt"
	"math/big"
	"slices"
)

// A Held is what was held of a level meter from an instant on.
type Held struct {
	At, Level int64
}

// IsLevel notes that a meter counts what is held.
func (w *World) IsLevel(meter string) { w.levels = append(w.levels, meter) }

func (w *World) isLevel(meter string) bool { return slices.Contains(w.levels, meter) }

// Hold notes what is held of a meter from now on.
func (l *Life) Hold(meter string, level int64) {
	if l.held == nil {
		l.held = map[string][]Held{}
	}
	l.held[meter] = append(l.held[meter], Held{l.Clock.Now, level})
}

// Level is what is held at an instant, after all changes at that instant.
func (l *Life) Level(meter string, at int64) (level int64) {
	for _, h := range l.held[meter] {
		if h.At <= at {
			level = h.Level
		}
	}
	return level
}

// changes are the instants in [a,b) at which what is held changed.
func (l *Life) changes(meter string, a, b int64) (at []int64) {
	for _, h := range l.held[meter] {
		if a <= h.At && h.At < b && !slices.Contains(at, h.At) {
			at = append(at, h.At)
		}
	}
	slices.Sort(at)
	return at
}

// Average is ∫level dt/(b−a), rounded to 6 digits, half away from zero.
func (l *Life) Average(meter string, a, b int64) *big.Rat {
	sum, from := new(big.Rat), a
	for _, at := range append(l.changes(meter, a, b), b) {
		sum.Add(sum, new(big.Rat).Mul(whole(l.Level(meter, from)), whole(at-from)))
		from = at
	}
	sum.Quo(sum, whole(b-a))
	millionths := round(sum.Mul(sum, whole(1_000_000)))
	return big.NewRat(millionths, 1_000_000)
}

// Peak is the most that was held at any instant of [a,b): what was held just before a counts only if
// nothing changed at a.
func (l *Life) Peak(meter string, a, b int64) (peak int64) {
	changes := l.changes(meter, a, b)
	if !slices.Contains(changes, a) {
		peak = l.Level(meter, a-1)
	}
	for _, at := range changes {
		peak = max(peak, l.Level(meter, at))
	}
	return peak
}

// Last is what was held just before an instant.
func (l *Life) Last(meter string, at int64) int64 { return l.Level(meter, at-1) }

// Values is what is held of a level meter, by the values of the attribute that its limits are per. An
// edit of the plan changes nothing of it. A write that is judged without the attribute gives all units
// to the empty value.
type Values struct {
	Total int64 // the meter's level
	per   string
	held  map[string]int64 // of the values but the empty one
}

// Held returns what a value of an attribute holds; per "" is the meter.
func (v *Values) Held(per, value string) int64 {
	switch {
	case per == "" || per != v.per && value == "":
		return v.Total
	case per != v.per:
		return 0
	case value != "":
		return v.held[value]
	}
	rest := v.Total
	for _, units := range v.held {
		rest -= units
	}
	return rest
}

// Add writes that a value of an attribute holds so many units more, below 0 fewer.
func (v *Values) Add(per, value string, units int64) {
	if per != v.per || v.held == nil {
		v.per, v.held = per, map[string]int64{}
	}
	if v.Total += units; per != "" && value != "" {
		v.held[value] += units
	}
}

// level is what a price bills of a period, with what is held now as held to its end.
func (p *Period) level(meter, by string) *big.Rat {
	switch by {
	case "", "average":
		return p.life.Average(meter, p.Start, p.End)
	case "peak":
		return whole(p.life.Peak(meter, p.Start, p.End))
	case "last":
		return whole(p.life.Last(meter, p.End))
	}
	panic("no sentence says which level is " + by)
}

// heldLine is the usage line of a level meter: R(q)·(b−a)/(E−S), rounded once, with R between the whole
// minimum and maximum and with the whole included units.
func (p *Period) heldLine(meter string) Line {
	price := p.priceOf(meter)
	q := p.level(meter, price.LevelBy)
	line := Line{Kind: "usage", Meter: meter, From: p.Start, To: p.End, Version: p.Version.N, Quantity: round(q), Included: price.Included}
	line.By, line.Exact, line.part = price.LevelBy, q.FloatString(6), &p.share
	if line.By == "" {
		line.By = "average"
	}
	if p.trial() {
		return line
	}
	n := new(big.Rat).Sub(q, whole(price.Included))
	if n.Sign() < 0 {
		n = new(big.Rat)
	}
	major, tiers := price.exact(n)
	minor := new(big.Rat).Mul(major, tenTo(p.life.Exponent))
	if least := price.MinimumMinor; least != nil && minor.Cmp(whole(*least)) < 0 {
		minor, line.Applied = whole(*least), "minimum"
	}
	if most := price.MaximumMinor; most != nil && minor.Cmp(whole(*most)) > 0 {
		minor, line.Applied = whole(*most), "maximum"
	}
	minor.Mul(minor, whole(p.share.B-p.share.A))
	minor.Quo(minor, whole(p.share.E-p.share.S))
	line.Minor, line.Tiers, line.Priced = round(minor), tiers, p.priced(meter)
	return line
}

// ShownLevel is the level that a line bills.
type ShownLevel struct{ By, Exact string }

func (l *ShownLevel) String() string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf(" %s level %s", l.By, l.Exact)
}
