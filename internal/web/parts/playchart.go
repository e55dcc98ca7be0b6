package parts

import (
	"cmp"
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"quotad/internal/quota/model"
	"quotad/internal/quota/play"
	"quotad/internal/web/words"
)

// The following types and functions show the charts and results of a play on any page.

// A ShownPlay is the result of a play as a page shows it.
type ShownPlay struct {
	ID, Name, Says string
	Chip           string // label beside the name
	Admitted       int64  // number of admitted hits
	Refused        int64
	Beyond         string // effect of a limit that refuses nothing
	Fullest        int64  // units of the fullest window
	FullestOf      string
	Over           string // high or bad, by how far the fullest window exceeds the limit
	Wait           string // longest wait
	Refusal        string // text of a refusal
	Last           string // result of the last hit
	Bins           string // admitted and refused hits in each part of the play, for the script
	Chart          template.HTML
}

// bins is the number of equal parts of a play for which hits are counted.
const bins = 120

// ShowLimit returns the result of one limit of a play. name is the limit's name for people.
func ShowLimit(id, name string, r *play.Result, l *play.Limit) ShownPlay {
	p := ShownPlay{
		ID: id, Name: name, Admitted: r.Admitted.Hits, Refused: r.Refused.Hits, Fullest: l.Fullest.Units, FullestOf: Each(l.Window),
		Wait: "–",
	}
	switch allowed := allowed(l.Limit); {
	case l.Window == 0:
	case l.Fullest.Units > model.AddUpTo(allowed, allowed/2):
		p.Over = "bad"
	case l.Fullest.Units > allowed:
		p.Over = "high"
	}
	if r.LongestWait > 0 {
		p.Wait = lasting(r.LongestWait)
	}
	if r.Hopeless > 0 {
		p.Wait = "never again"
	}
	admitted, refused := binned(r)
	if l.Mode != model.Hard { // other limits' refusals are shown with these limits
		p.Beyond, p.Wait, refused = words.Number(l.Refused)+" beyond it, and admitted", "", [bins]int64{}
	}
	if l.Mode == model.Shadow {
		p.Beyond = "would refuse " + words.Number(l.Refused)
	}
	var all strings.Builder
	for i := range admitted {
		fmt.Fprintf(&all, "%d.%d,", admitted[i], refused[i])
	}
	p.Bins = strings.TrimSuffix(all.String(), ",")
	p.Chart = chartOf(&p, r, l, admitted, refused)
	return p
}

// allowed returns the number that people understand as the limit: the most units that are admitted at once.
func allowed(l *model.Limit) int64 { return max(l.Limit, l.Burst) }

// binned counts the admitted and refused hits in each part of a play.
func binned(r *play.Result) (admitted, refused [bins]int64) {
	for i := range r.Hits {
		h := &r.Hits[i]
		part := min(bins-1, words.MulDiv(h.At, bins, max(1, r.Length)))
		if h.Admitted {
			admitted[part]++
		} else {
			refused[part]++
		}
	}
	return admitted, refused
}

// The heights of the parts of a play's chart from top to bottom, in pixels.
const (
	levelTop    = 16
	levelBottom = 96
	hitsTop     = 108
	hitsBottom  = 152
	chartHeight = hitsBottom + 24
)

// chartOf draws the units that count against a limit, and below them the admitted and refused hits.
func chartOf(p *ShownPlay, r *play.Result, l *play.Limit, admitted, refused [bins]int64) template.HTML {
	high := int64(1)
	top := l.Capacity() // height of the limit's line, in units
	for _, level := range l.Level {
		high = max(high, level)
	}
	high = model.AddUpTo(max(high, top), max(1, max(high, top)/9))
	var d words.Drawing
	d.Add(`<div class="chart play-chart"><svg class="axis" width="48" height="%d" aria-hidden="true">`, chartHeight)
	d.Add(`<text x="40" y="%s" text-anchor="end">%s</text><text x="40" y="%d" text-anchor="end">0</text><text x="40" y="%d" text-anchor="end">hits</text>`,
		down(top, high, 4), template.HTMLEscapeString(words.Short(top)), levelBottom+4, hitsBottom-2)
	d.Add(`</svg><svg class="plot" width="100%%" height="%d" role="img" aria-label="%s">`, chartHeight, template.HTMLEscapeString(p.title()))
	drawBand(&d, p, r, l)
	drawTime(&d, r.Length, l.Window)
	drawLevel(&d, l.Level, high)
	d.Add(`<line class="limit-line" x1="0" x2="100%%" y1="%[1]s" y2="%[1]s"/><line class="base" x1="0" x2="100%%" y1="%[2]d.5" y2="%[2]d.5"/>`,
		down(top, high, 0), levelBottom)
	drawHits(&d, admitted, refused)
	d.Add(`<line class="base" x1="0" x2="100%%" y1="%[1]d.5" y2="%[1]d.5"/><rect class="veil" x="100%%" width="0" y="0" height="%[2]d"/></svg></div>`,
		hitsBottom, hitsBottom)
	return d.HTML()
}

// title describes the chart in words.
func (p *ShownPlay) title() string {
	said := fmt.Sprintf("%s: %s hits admitted, %s", p.Name, words.Number(p.Admitted), cmp.Or(p.Beyond, words.Number(p.Refused)+" refused"))
	if p.FullestOf != "" {
		said += fmt.Sprintf(", %s units admitted in the fullest %s", words.Number(p.Fullest), p.FullestOf)
	}
	return said
}

// down returns the vertical position of a level in pixels, moved down by the number of pixels in by.
func down(level, high, by int64) string {
	tenths := 10*(levelBottom+by) - words.MulDiv(level, 10*(levelBottom-levelTop), max(1, high))
	return fmt.Sprintf("%d.%d", tenths/10, tenths%10)
}

// across returns the horizontal position of an instant, in percent.
func across(at, length int64) string {
	parts := words.MulDiv(max(0, min(at, length)), 10_000, max(1, length))
	return fmt.Sprintf("%d.%02d%%", parts/100, parts%100)
}

// drawBand marks the fullest window.
func drawBand(d *words.Drawing, p *ShownPlay, r *play.Result, l *play.Limit) {
	if l.Fullest.Units == 0 || l.Window == 0 || l.Window >= r.Length {
		return
	}
	from := max(0, min(l.Fullest.From, r.Length-l.Window))
	class := p.Over
	if class != "" {
		class = " " + class
	}
	d.Add(`<rect class="band%s" x="%s" width="%s" y="%d" height="%d"/>`, class, across(from, r.Length), across(l.Window, r.Length), levelTop, hitsBottom-levelTop)
	middle := from + l.Window/2
	at, anchor := across(middle, r.Length), "middle"
	switch share := words.MulDiv(middle, 100, r.Length); {
	case share < 15:
		at, anchor = across(from, r.Length), "start"
	case share > 85:
		at, anchor = across(from+l.Window, r.Length), "end"
	}
	d.Add(`<text class="band-label%s" x="%s" y="11" text-anchor="%s">%s in %s</text>`, class, at, anchor,
		template.HTMLEscapeString(words.Short(l.Fullest.Units)), lasting(l.Window))
}

// drawTime draws a line at the start of each window, and labels some of the lines with their time.
func drawTime(d *words.Drawing, length, window int64) {
	if window == 0 || window > length || length/window > play.MaxWindows {
		window = max(1, length/4)
	}
	each := (length/window + 5) / 6 // number of windows between two labels
	for n := int64(0); n*window <= length; n++ {
		at := n * window
		if n > 0 && at < length {
			d.Add(`<line class="grid" x1="%[1]s" x2="%[1]s" y1="%d" y2="%d"/>`, across(at, length), levelTop, hitsBottom)
		}
		if n%max(1, each) > 0 {
			continue
		}
		anchor, class := "middle", "tick"
		switch {
		case n == 0:
			anchor = "start"
		case length-at < max(1, each)*window:
			anchor = "end"
		case n/max(1, each)%2 == 1:
			class = "tick minor"
		}
		d.Add(`<text class="%s" x="%s" y="%d" text-anchor="%s">%s</text>`, class, across(at, length), chartHeight-6, anchor, into(at, length))
	}
}

// drawLevel draws the level in a separate coordinate system, which is stretched to the chart's width.
func drawLevel(d *words.Drawing, level []int64, high int64) {
	d.Add(`<svg x="0" y="%d" width="100%%" height="%d" viewBox="0 0 %d 1000" preserveAspectRatio="none">`, levelTop, levelBottom-levelTop, 10*play.Samples)
	var line strings.Builder
	y := int64(1000)
	for i, units := range level {
		y = 1000 - words.MulDiv(units, 1000, max(1, high))
		fmt.Fprintf(&line, "%c%d %d", "ML"[min(i, 1)], 10*i, y)
	}
	if len(level) > 0 {
		fmt.Fprintf(&line, "L%d %d", 10*play.Samples, y)
		d.Add(`<path class="level-area" d="%sL%d 1000L0 1000Z"/><path class="level" d="%s"/>`, line.String(), 10*play.Samples, line.String())
	}
	d.Add(`</svg>`)
}

// drawHits draws the hits of each part of a play, with refused hits on top.
func drawHits(d *words.Drawing, admitted, refused [bins]int64) {
	most := int64(1)
	for i := range bins {
		most = max(most, admitted[i]+refused[i])
	}
	const height = 10 * (hitsBottom - hitsTop)
	tenths := func(n int64) string { return fmt.Sprintf("%d.%d", n/10, n%10) }
	for i := range bins {
		x, width := across(int64(8*i+1), 8*bins), across(6, 8*bins)
		up := int64(10 * hitsBottom)
		for _, part := range []struct {
			class string
			hits  int64
		}{{"admitted", admitted[i]}, {"refused", refused[i]}} {
			if part.hits == 0 {
				continue
			}
			tall := max(10, part.hits*height/most)
			up -= tall
			d.Add(`<rect class="%s" x="%s" width="%s" y="%s" height="%s"/>`, part.class, x, width, tenths(up), tenths(tall))
		}
	}
}

// spans lists the time spans that have a word of their own.
var spans = []struct {
	us         int64
	sign, word string
}{
	{86400e6, "d", "day"}, {3600e6, "h", "hour"}, {60e6, "min", "minute"}, {1e6, "s", "second"}, {1e3, "ms", "millisecond"}, {1, "µs", "microsecond"},
}

// Each returns a window as the word in "the fullest minute". It returns an empty string if the window is 0.
func Each(window int64) string {
	for _, s := range spans {
		if window == s.us {
			return s.word
		}
	}
	if window == 0 {
		return ""
	}
	return lasting(window)
}

// lasting formats a duration, rounded up, in its two largest units.
func lasting(us int64) string {
	for i, s := range spans {
		if us < s.us && s.us > 1 {
			continue
		}
		if i+1 == len(spans) || s.us <= 1e6 {
			whole := (us + s.us - 1) / s.us
			return strconv.FormatInt(whole, 10) + " " + s.sign
		}
		small := spans[i+1]
		rest := (us + small.us - 1) / small.us * small.us
		text := strconv.FormatInt(rest/s.us, 10) + " " + s.sign
		if rest %= s.us; rest > 0 {
			text += " " + strconv.FormatInt(rest/small.us, 10) + " " + small.sign
		}
		return text
	}
	return "0 s"
}

// Exactly formats an instant of a play to the millisecond, rounded up.
func Exactly(us int64) string {
	ms := (us + 999) / 1000
	switch minutes, seconds := ms/60_000, ms/1000%60; {
	case minutes == 0:
		return fmt.Sprintf("%d.%03d s", seconds, ms%1000)
	case minutes < 60:
		return fmt.Sprintf("%d:%02d.%03d min", minutes, seconds, ms%1000)
	default:
		return fmt.Sprintf("%d:%02d:%02d.%03d h", minutes/60, minutes%60, seconds, ms%1000)
	}
}

// into formats an instant of a play for the chart's time axis.
func into(at, length int64) string {
	const second, minute, hour, day = int64(1e6), int64(60e6), int64(3600e6), int64(86400e6)
	switch {
	case length < 10*second:
		return fmt.Sprintf("%d.%d s", at/second, at%second/(second/10))
	case length < 2*minute:
		return fmt.Sprintf("%d s", at/second)
	case length <= 2*hour:
		return fmt.Sprintf("%d:%02d", at/minute, at%minute/second)
	case length < 3*day:
		return fmt.Sprintf("%d:%02d h", at/hour, at%hour/minute)
	}
	return fmt.Sprintf("%d d", at/day)
}
