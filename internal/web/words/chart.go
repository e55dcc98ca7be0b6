package words

import (
	"fmt"
	"html/template"
	"strings"
)

// Charts are SVG that fits any width without script: positions across are in percent, those down
// in pixels, and colours come from classes, so that no style stands in them.

// Drawing collects an SVG.
type Drawing struct{ strings.Builder }

// Add writes SVG, as fmt.Fprintf does.
func (d *Drawing) Add(format string, args ...any) { fmt.Fprintf(&d.Builder, format, args...) }

// HTML is the drawing as a part of a page.
func (d *Drawing) HTML() template.HTML {
	return template.HTML(d.String()) //nolint:gosec // made of numbers, fixed text and escaped text
}

// Bar is how much of a limit is used.
func Bar(used, limit int64) template.HTML {
	level := ""
	shown := MulDiv(max(0, min(used, limit)), 1000, max(1, limit)) // thousandths
	switch {
	case used >= limit:
		level = " full"
	case shown >= 800:
		level = " high"
	}
	if used > 0 {
		shown = max(shown, 8) // so that a little can be seen
	}
	var d Drawing
	d.Add(`<svg class="bar" width="100%%" height="8" aria-hidden="true"><rect class="track" width="100%%" height="8" rx="4"/>`)
	if shown > 0 {
		d.Add(`<rect class="fill%s" width="%d.%d%%" height="8" rx="4"/>`, level, shown/10, shown%10)
	}
	d.Add(`</svg>`)
	return d.HTML()
}
