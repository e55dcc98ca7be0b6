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

// A Brand contains the name, logo and colours that make the portal look like its operator's own pages.
type Brand struct {
	Name     string
	Logo     []byte // SVG or PNG
	logoKind string // .svg or .png

	light, dark     string // accents, as #rrggbb; if empty, the style sheet's accents apply
	onLight, onDark string // colours of text on the accent
}

// maxLogo bounds the size of a logo in bytes, because every first visit loads the logo.
const maxLogo = 64 << 10

// leastContrast is the minimum contrast of text that WCAG 2 requires.
const leastContrast = 4.5

// The background colours behind text in the accent colour. app.css contains the same colours.
var (
	lightGrounds = []string{"#ffffff", "#faf9f7", "#f4f2ee"}
	darkGrounds  = []string{"#131211", "#1b1a18", "#232120"}
)

// SetLogo sets the brand's logo, an SVG or PNG file of at most 64 KiB.
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

// DisplayName returns the brand's name, or a general name if the brand has none.
func (b *Brand) DisplayName() string { return cmp.Or(b.Name, "your account") }

// LogoName returns the name of the logo's asset, or an empty string without a logo.
func (b *Brand) LogoName() string {
	if b.Logo == nil {
		return ""
	}
	return "logo" + b.logoKind
}

// SetAccent sets the accent colours for light and for dark pages, written as #rrggbb,#rrggbb. A single colour
// applies to both. SetAccent rejects a colour whose contrast is too low for text.
func (b *Brand) SetAccent(text string) error {
	light, dark, two := strings.Cut(text, ",")
	if !two {
		dark = light
	}
	for _, c := range []struct {
		name, color string
		grounds     []string
		ink         []string // candidates for text on the accent; the higher contrast wins
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

// css returns the brand's addition to the style sheet.
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

// luminance returns the relative luminance as defined by WCAG 2.
func (c color) luminance() float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

// contrast returns the contrast ratio of WCAG 2, from 1 to 21.
func contrast(a, b color) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}
