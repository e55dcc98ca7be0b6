package page

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Brand is how the portal looks like its operator's own pages.
type Brand struct {
	Name     string
	Logo     []byte // SVG or PNG
	logoKind string // .svg or .png

	light, dark     string // the accent, as #rrggbb; empty: the sheet's own
	onLight, onDark string // text on it
}

// maxLogo bounds a logo, which every first visit loads.
const maxLogo = 64 << 10

// leastContrast is what WCAG 2 asks of text.
const leastContrast = 4.5

// The grounds on which the accent stands as text. They are those of app.css.
var (
	lightGrounds = []string{"#ffffff", "#faf9f7", "#f4f2ee"}
	darkGrounds  = []string{"#131211", "#1b1a18", "#232120"}
)

// SetLogo takes a logo of the brand, an SVG or PNG of at most 64 KiB.
func (b *Brand) SetLogo(body []byte) error {
	switch {
	case len(body) > maxLogo:
		return fmt.Errorf("has %d bytes; at most %d are taken", len(body), maxLogo)
	case bytes.HasPrefix(body, []byte("\x89PNG\r\n\x1a\n")):
		b.logoKind = ".png"
	case bytes.Contains(body[:min(len(body), 1024)], []byte("<svg")):
		b.logoKind = ".svg"
	default:
		return errors.New("must be an SVG or PNG file")
	}
	b.Logo = body
	return nil
}

// DisplayName is what the portal is called.
func (b *Brand) DisplayName() string { return cmp.Or(b.Name, "your account") }

// LogoName is the logo's asset, empty without one.
func (b *Brand) LogoName() string {
	if b.Logo == nil {
		return ""
	}
	return "logo" + b.logoKind
}

// SetAccent takes the accent's colour for light pages and for dark ones, as #rrggbb,#rrggbb. One
// colour is for both. A colour that cannot be read as text is refused.
func (b *Brand) SetAccent(text string) error {
	light, dark, two := strings.Cut(text, ",")
	if !two {
		dark = light
	}
	for _, c := range []struct {
		name, color string
		grounds     []string
		ink         []string // for text on the accent, the better one
		to, on      *string
	}{
		{"light", strings.TrimSpace(light), lightGrounds, []string{"#ffffff", "#1d1b18"}, &b.light, &b.onLight},
		{"dark", strings.TrimSpace(dark), darkGrounds, []string{"#0d1730", "#ffffff"}, &b.dark, &b.onDark},
	} {
		own, err := parseColor(c.color)
		if err != nil {
			return err
		}
		for _, ground := range c.grounds {
			if ratio := contrast(own, mustColor(ground)); ratio < leastContrast {
				return fmt.Errorf("%s has a contrast of %.1f:1 on %s pages (%s), and text needs %.1f:1: give a colour for light pages and one for dark ones, such as #2a56c6,#8cb0ff",
					c.color, ratio, c.name, ground, leastContrast)
			}
		}
		*c.to, *c.on = c.color, c.ink[0]
		if contrast(own, mustColor(c.ink[1])) > contrast(own, mustColor(c.ink[0])) {
			*c.on = c.ink[1]
		}
	}
	return nil
}

// css is what the brand adds to the style sheet.
func (b *Brand) css() string {
	if b.light == "" {
		return ""
	}
	return fmt.Sprintf("\n:root { --accent: light-dark(%s, %s); --on-accent: light-dark(%s, %s); }\n", b.light, b.dark, b.onLight, b.onDark)
}

type color [3]float64 // red, green, blue from 0 to 1

func parseColor(text string) (c color, err error) {
	digits, ok := strings.CutPrefix(text, "#")
	if n, bad := strconv.ParseUint(digits, 16, 32); ok && len(digits) == 6 && bad == nil {
		for i := range c {
			c[i] = float64(n>>(16-8*i)&0xff) / 255
		}
		return c, nil
	}
	return c, fmt.Errorf("%q is no colour such as #2a56c6", text)
}

func mustColor(text string) color {
	c, err := parseColor(text)
	if err != nil {
		panic("web: " + err.Error())
	}
	return c
}

// luminance is the relative luminance of WCAG 2.
func (c color) luminance() float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

// contrast is the contrast ratio of WCAG 2, from 1 to 21.
func contrast(a, b color) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}
