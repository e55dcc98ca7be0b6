package parts

import (
	"html/template"
	"slices"
	"strconv"
	"time"

	"quotad/client"
	"quotad/internal/calendar"
	"quotad/internal/web/words"
)

// usageChart is a bar chart over time, in which each bar shows admitted units with refused units on top.
type usageChart struct {
	title, table, step string
	points             []client.UsagePoint
	limit              int64 // limit of a bar, or 0 if there is none
	now                time.Time
	zone               *time.Location
}

// The heights of the parts of the chart from top to bottom, in pixels.
const (
	barsTop    = 12
	barsBottom = 208
	barsHeight = barsBottom + 26
)

// html draws the chart. Positions are integer thousandths of a percent of the width, so no position is rounded
// twice.
func (c *usageChart) html() template.HTML {
	if len(c.points) == 0 {
		return ""
	}
	high := max(1, c.limit)
	for _, p := range c.points {
		high = max(high, heightOf(&p))
	}
	high += max(1, high/16)
	y := func(v int64) int64 { return barsBottom - words.MulDiv(max(0, v), barsBottom-barsTop, high) }
	var d words.Drawing
	d.Add(`<div class="chart"><svg class="axis" width="48" height="%d" aria-hidden="true">`, barsHeight)
	levels := steps(high)
	for _, t := range levels {
		d.Add(`<text x="40" y="%d" text-anchor="end">%s</text>`, y(t)+4, template.HTMLEscapeString(axisNumber(t)))
	}
	d.Add(`</svg><svg class="plot" width="100%%" height="%d" role="img" aria-label="%s" data-chart="%s">`, barsHeight, template.HTMLEscapeString(c.title), c.table)
	for _, t := range levels {
		d.Add(`<line class="grid" x1="0" x2="100%%" y1="%[1]d.5" y2="%[1]d.5"/>`, y(t))
	}
	if c.points[0].UsageLevel != nil {
		c.line(&d, y)
	} else {
		c.bars(&d, y)
	}
	for _, t := range c.ticks() {
		class, anchor := "tick", "middle"
		if t.minor {
			class = "tick minor"
		}
		if t.bar == 0 {
			anchor = "start"
		}
		d.Add(`<text class="%s" x="%s" y="%d" text-anchor="%s">%s</text>`, class, c.at(int64(t.bar)), barsBottom+20, anchor, t.text)
	}
	if c.limit > 0 {
		d.Add(`<line class="limit-line" x1="0" x2="100%%" y1="%[1]d.5" y2="%[1]d.5"/>`, y(c.limit))
		c.labelLimit(&d, y(c.limit)-6)
	}
	d.Add(`<line class="base" x1="0" x2="100%%" y1="%[1]d.5" y2="%[1]d.5"/>`, barsBottom)
	d.Add(`<rect class="cursor" x="0" width="%s" y="4" height="%d" rx="3"/></svg></div>`, c.at(1), barsBottom-4)
	return d.HTML()
}

// heightOf returns the height of a point's bar, in units.
func heightOf(p *client.UsagePoint) int64 {
	if p.UsageLevel != nil {
		return p.Peak
	}
	return p.Admitted + p.Denied
}

// line draws the level of a level meter: for each point, a step at the last level and a thin bar up to the peak.
// The line ends with the current point.
func (c *usageChart) line(d *words.Drawing, y func(int64) int64) {
	n := int64(len(c.points))
	for i, p := range c.points {
		if p.Start.After(c.now) {
			return
		}
		x, width := thousandths(int64(i)*100_000/n), thousandths(100_000/n)
		if p.Peak > p.Last {
			d.Add(`<rect class="held peak" x="%s" width="%s" y="%d" height="%d"/>`, x, width, y(p.Peak), max(1, y(p.Last)-y(p.Peak)))
		}
		d.Add(`<rect class="held" x="%s" width="%s" y="%d" height="2"/>`, x, width, y(p.Last)-1)
		if i > 0 {
			from, to := y(c.points[i-1].Last), y(p.Last)
			d.Add(`<rect class="held" x="%s" width="2" y="%d" height="%d"/>`, x, min(from, to)-1, max(from, to)-min(from, to)+2)
		}
	}
}

// labelLimit labels the limit's line at an end of the line that no bar covers. If bars cover both ends, only the
// legend above the chart shows the limit.
func (c *usageChart) labelLimit(d *words.Drawing, y int64) {
	text := "limit " + words.Number(c.limit)
	below := min(len(c.points), 1+len(c.points)*len(text)*tickLetter/narrowPlot) // bars below the text on narrow pages
	free := func(points []client.UsagePoint) bool {
		return !slices.ContainsFunc(points, func(p client.UsagePoint) bool { return heightOf(&p) > c.limit })
	}
	x, anchor := "100%", "end"
	if !free(c.points[len(c.points)-below:]) {
		if x, anchor = "0", "start"; !free(c.points[:below]) {
			return
		}
	}
	d.Add(`<text class="limit-label" x="%s" y="%d" text-anchor="%s">%s</text>`, x, max(10, y), anchor, text)
}

// at returns the horizontal position after a number of bars, in percent.
func (c *usageChart) at(bars int64) string { return thousandths(bars * 100_000 / int64(len(c.points))) }

func thousandths(v int64) string {
	text := strconv.FormatInt(v%1000+1000, 10)[1:]
	return strconv.FormatInt(v/1000, 10) + "." + text + "%"
}

func (c *usageChart) bars(d *words.Drawing, y func(int64) int64) {
	n := int64(len(c.points))
	slot := 100_000 / n
	for i, p := range c.points {
		x := thousandths(int64(i)*100_000/n + slot*15/100)
		width := thousandths(slot * 70 / 100)
		class := "admitted"
		if i == len(c.points)-1 && !p.Start.After(c.now) && c.ends(p.Start).After(c.now) {
			class += " running"
		}
		top := y(p.Admitted)
		if p.Admitted > 0 {
			top = min(top, barsBottom-1)
			d.Add(`<rect class="%s" x="%s" width="%s" y="%d" height="%d" rx="1.5"/>`, class, x, width, top, barsBottom-top)
		}
		if p.Denied > 0 {
			up := min(y(p.Admitted+p.Denied), top-2)
			d.Add(`<rect class="refused" x="%s" width="%s" y="%d" height="%d" rx="1.5"/>`, x, width, up, max(2, top-up-1))
		}
	}
}

// ends returns the end of a bar's time span.
func (c *usageChart) ends(start time.Time) time.Time {
	switch c.step {
	case "hour":
		return start.Add(time.Hour)
	case "day":
		return after(calendar.Day, start, c.zone)
	}
	return after(calendar.Month, start, c.zone)
}

// A tick is a label below the start of a bar.
type tick struct {
	bar   int
	text  string
	minor bool // shown only on wide pages
}

// The widths of the chart on the narrowest page and on the narrowest page that shows minor ticks, and the
// maximum width of a letter, in tenths of a pixel.
const (
	narrowPlot, broadPlot = 2100, 6000
	tickLetter            = 63
)

// span returns the horizontal extent of a tick. The first tick begins at the left edge of its bar.
func (t *tick) span(bars, plot int) (left, right int) {
	left, right = t.bar*plot/bars, tickLetter*(len(t.text)+1) // includes a gap of one letter
	if t.bar > 0 {
		left -= right / 2
	}
	return left, left + right
}

// ticks returns the ticks that fit without overlap. More important ticks are placed first.
func (c *usageChart) ticks() (all []tick) {
	bars := len(c.points)
	taken := func(t *tick, plot int) bool {
		left, right := t.span(bars, plot)
		return right > plot && t.bar > 0 || slices.ContainsFunc(all, func(other tick) bool {
			from, to := other.span(bars, plot)
			return left < to && from < right
		})
	}
	for rank := range rankMinor + 1 {
		plot := narrowPlot
		if rank == rankMinor {
			plot = broadPlot
		}
		for i := range bars {
			t := tick{bar: i, minor: rank == rankMinor}
			of := 0
			if t.text, of = c.label(i); t.text != "" && of <= rank && !taken(&t, plot) {
				all = append(all, t)
			}
		}
	}
	return all
}

// The importance of labels. Minor labels are hidden on narrow pages.
const (
	rankFirst = iota
	rankSecond
	rankMinor
)

// label returns the candidate label for the start of a bar, with its rank. The rank decides which labels are
// drawn when not all of them fit.
func (c *usageChart) label(i int) (text string, rank int) {
	at := c.points[i].Start.In(c.zone)
	n := len(c.points)
	every := func(step, steps int) int {
		switch {
		case i%step != 0:
			return rankMinor + 1
		case i%(step*steps) != 0:
			return rankMinor
		}
		return rankSecond
	}
	switch c.step {
	case "hour":
		return hourLabel(at, n)
	case "day":
		return at.Format("2 Jan"), every(max(1, n/6), 2)
	}
	if at.Month() == time.January {
		return at.Format("2006"), rankFirst
	}
	return at.Format("Jan"), every(max(1, n/12), 3)
}

func hourLabel(at time.Time, n int) (string, int) {
	switch {
	case at.Hour() == 0 && n <= 24*4:
		return at.Format("Mon 2 Jan"), rankFirst
	case at.Hour() == 0 && n <= 24*8:
		return at.Format("Mon 2"), rankFirst
	case at.Hour() == 0:
		return at.Format("2 Jan"), rankFirst
	case n <= 24*3 && at.Hour() == 12:
		return at.Format("15:04"), rankSecond
	case n <= 24*3 && at.Hour()%6 == 0:
		return at.Format("15:04"), rankMinor
	}
	return "", rankMinor
}

// steps returns about four round numbers from 0 to at most high.
func steps(high int64) (list []int64) {
	step := int64(1)
	for high/step > 4 {
		switch {
		case high/(step*2) <= 4:
			step *= 2
		case high/(step*5) <= 4:
			step *= 5
		default:
			step *= 10
		}
	}
	for v := int64(0); v <= high; v += step {
		list = append(list, v)
	}
	return list
}

// axisNumber formats a number for an axis in few letters.
func axisNumber(n int64) string {
	for _, s := range []struct {
		size int64
		name string
	}{{1e12, " T"}, {1e9, " G"}, {1e6, " M"}} {
		if n >= s.size && n%(s.size/10) == 0 {
			text := strconv.FormatInt(n/s.size, 10)
			if tenth := n % s.size / (s.size / 10); tenth > 0 {
				text += "." + strconv.FormatInt(tenth, 10)
			}
			return text + s.name
		}
	}
	return words.Number(n)
}
