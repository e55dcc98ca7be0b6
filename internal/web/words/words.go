// Package words formats numbers, money, instants and the API's texts for people, and draws small charts. It is
// pure.
package words

import (
	"cmp"
	"fmt"
	"html/template"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	invoices "quotad/internal/billing/document"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// The following functions format numbers, money and instants for people.

// Number formats an integer with its digits in groups of three.
func Number(n int64) string { return rating.Grouped(strconv.FormatInt(n, 10)) }

// Money formats minor units of a currency as on invoices.
func Money(minor int64, currency string) string { return invoices.Money(minor, currency) }

// Decimal formats a decimal number without trailing zeros, such as "1,234.5".
func Decimal(s string) string { return rating.Short(s) }

// Price formats a unit price, a decimal of any length, with at least the currency's number of digits.
func Price(decimal, currency string) string {
	digits, _ := plans.Exponent(currency)
	whole, fraction, _ := strings.Cut(decimal, ".")
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) < digits && fraction != "" || len(fraction) < digits && whole != "0" {
		fraction += strings.Repeat("0", digits-len(fraction))
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return rating.Money(whole, currency)
}

// PerUnit formats a unit price as a price for one unit, or for a thousand or a million units if the price of one
// is too small to read.
func PerUnit(decimal, currency string) string {
	words := " each"
	for _, w := range []string{" a thousand", " a million"} {
		whole, fraction, _ := strings.Cut(decimal, ".")
		if strings.Trim(whole, "0") != "" || !strings.HasPrefix(fraction, "000") {
			break
		}
		fraction += "000"
		decimal, words = cmp.Or(strings.TrimLeft(fraction[:3], "0"), "0")+"."+fraction[3:], w
	}
	return Price(decimal, currency) + words
}

// Short formats a large number in a form such as "2.5 million" if that form is exact.
func Short(n int64) string {
	for _, s := range []struct {
		size int64
		name string
	}{{1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}} {
		if n >= s.size && n%(s.size/10) == 0 {
			text := strconv.FormatInt(n/s.size, 10)
			if tenth := n % s.size / (s.size / 10); tenth > 0 {
				text += "." + strconv.FormatInt(tenth, 10)
			}
			return rating.Grouped(text) + " " + s.name
		}
	}
	return Number(n)
}

// Plural returns a unit's name in the singular or plural form for n units.
func Plural(n int64, unit string) string {
	if n == 1 || unit == "" || strings.HasSuffix(unit, "s") {
		return unit
	}
	if last, _ := utf8.DecodeLastRuneInString(unit); !unicode.IsLetter(last) || last > unicode.MaxASCII {
		return unit
	}
	for _, hissing := range []string{"ch", "sh", "x", "z"} {
		if strings.HasSuffix(unit, hissing) {
			return unit + "es"
		}
	}
	if strings.HasSuffix(unit, "y") && !strings.ContainsAny(unit[max(0, len(unit)-2):len(unit)-1], "aeiou") {
		return strings.TrimSuffix(unit, "y") + "ies"
	}
	return unit + "s"
}

// Until formats a remaining time as the script's countdown does.
func Until(d time.Duration) string {
	s := max(0, int64((d+time.Second-1)/time.Second))
	switch days, hours := s/86400, s/3600; {
	case days > 0:
		return fmt.Sprintf("%d d %d h", days, s%86400/3600)
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, s%3600/60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// When formats an instant in the customer's zone, as short as is unambiguous at now.
func When(at, now time.Time, zone *time.Location) string {
	at, now = at.In(zone), now.In(zone)
	clock := at.Format("15:04")
	switch days := DaysBetween(now, at); {
	case days == 0:
		return clock
	case days == 1:
		return "tomorrow, " + clock
	case days == -1:
		return "yesterday, " + clock
	case at.Year() == now.Year():
		return at.Format("2 Jan, ") + clock
	}
	return at.Format("2 Jan 2006, ") + clock
}

// DaysBetween returns the number of midnights from a to b. Both must be in the same zone.
func DaysBetween(a, b time.Time) int {
	day := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	return int(day(b).Sub(day(a)) / (24 * time.Hour))
}

// Around formats an estimated instant: rounded to 5 minutes if the instant is today, to the hour if it is
// tomorrow, and otherwise to the day.
func Around(at, now time.Time, zone *time.Location) string {
	at, now = at.In(zone), now.In(zone)
	switch days := DaysBetween(now, at); {
	case days == 0:
		return "today around " + at.Round(5*time.Minute).Format("15:04")
	case days == 1:
		return "tomorrow around " + at.Round(time.Hour).Format("15:04")
	case at.Year() == now.Year():
		return "around " + at.Format("2 January")
	}
	return "around " + at.Format("2 January 2006")
}

// Span formats the time span [from, to), in days if both ends are midnight.
func Span(from, to time.Time, zone *time.Location) string {
	from, to = from.In(zone), to.In(zone)
	midnight := func(t time.Time) bool {
		hour, minute, second := t.Clock()
		return hour+minute+second == 0 && t.Nanosecond() == 0
	}
	if !from.Before(to) { // the invoice has no period
		return from.Format("2 January 2006")
	}
	if !midnight(from) || !midnight(to) {
		return from.Format("2 Jan 2006, 15:04") + " – " + to.Format("2 Jan 2006, 15:04")
	}
	last := to.AddDate(0, 0, -1)
	switch {
	case from.Equal(last):
		return last.Format("2 January 2006")
	case from.Year() == last.Year() && from.Month() == last.Month():
		return from.Format("2") + " – " + last.Format("2 January 2006")
	case from.Year() == last.Year():
		return from.Format("2 Jan") + " – " + last.Format("2 Jan 2006")
	}
	return from.Format("2 Jan 2006") + " – " + last.Format("2 Jan 2006")
}

// ZoneText returns the name of a zone and its offset at an instant.
func ZoneText(at time.Time, zone *time.Location) string {
	_, offset := at.In(zone).Zone()
	if zone == time.UTC || zone.String() == "UTC" {
		return "UTC"
	}
	sign := "+"
	if offset < 0 {
		sign, offset = rating.Minus, -offset
	}
	text := fmt.Sprintf("%s (UTC%s%d", zone, sign, offset/3600)
	if minutes := offset % 3600 / 60; minutes > 0 {
		text += fmt.Sprintf(":%02d", minutes)
	}
	return text + ")"
}

// Lasted formats a duration in days, hours, minutes or seconds, in the largest unit of which it contains at
// least two.
func Lasted(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if d >= 2*u.of {
			return fmt.Sprintf("%d %s", d/u.of, Plural(2, u.name))
		}
	}
	n := max(0, int64(d/time.Second))
	return fmt.Sprintf("%d %s", n, Plural(n, "second"))
}

// Sized formats a number of bytes in units of powers of a thousand, rounded down.
func Sized(n int64) string {
	const units = "kMGTPE"
	size := int64(1)
	at := -1
	for n/size >= 1000 && at < len(units)-1 {
		size *= 1000
		at++
	}
	if at < 0 {
		return Number(n) + " B"
	}
	text := strconv.FormatInt(n/size, 10)
	if n/size < 10 {
		text += "." + strconv.FormatInt(n%size/(size/10), 10)
	}
	return text + " " + units[at:at+1] + "B"
}

// ShareOf returns n/all in percent, with one digit after the point, rounded down. If all is 0, it returns a
// dash.
func ShareOf(n, all int64) string {
	if all == 0 {
		return "–"
	}
	tenths := MulDiv(n, 1000, all)
	return fmt.Sprintf("%d.%d %%", tenths/10, tenths%10)
}

// MulDiv returns a·b/c, rounded down, for non-negative numbers. The result stops at 2⁶³−1.
func MulDiv(a, b, c int64) int64 {
	if c == 0 {
		return 1<<63 - 1
	}
	q := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
	if q.Quo(q, big.NewInt(c)); !q.IsInt64() {
		return 1<<63 - 1
	}
	return q.Int64()
}

// Charts are SVG images that fit any width without a script. Horizontal positions are in percent and vertical
// positions in pixels. Colours come from CSS classes, so the SVG contains no styles.

// Drawing collects the elements of an SVG image.
type Drawing struct{ strings.Builder }

// Add appends SVG, formatted like fmt.Fprintf.
func (d *Drawing) Add(format string, args ...any) { fmt.Fprintf(&d.Builder, format, args...) }

// HTML returns the image as a part of a page.
func (d *Drawing) HTML() template.HTML {
	return template.HTML(d.String()) //nolint:gosec // made of numbers, fixed text and escaped text
}

// Bar returns a bar that shows the used part of a limit.
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
		shown = max(shown, 8) // keeps small values visible
	}
	var d Drawing
	d.Add(`<svg class="bar" width="100%%" height="8" aria-hidden="true"><rect class="track" width="100%%" height="8" rx="4"/>`)
	if shown > 0 {
		d.Add(`<rect class="fill%s" width="%d.%d%%" height="8" rx="4"/>`, level, shown/10, shown%10)
	}
	d.Add(`</svg>`)
	return d.HTML()
}
