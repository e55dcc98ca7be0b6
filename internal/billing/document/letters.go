package document

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

const box = '□'

// printable converts text for the PDF's fonts. It composes accents with their letters, converts any space to
// a plain space, and replaces missing letters with a box.
func printable(words string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r): // direction marks, soft hyphens
			return -1
		case faceOf(r) != nil:
			return r
		}
		return box
	}, norm.NFC.String(words))
}

// Unprintable returns the letters that a PDF replaces with a box, each letter once, in their order.
func Unprintable(words string) (letters []rune) {
	for _, r := range norm.NFC.String(words) {
		if !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && faceOf(r) == nil && !slices.Contains(letters, r) {
			letters = append(letters, r)
		}
	}
	return letters
}

// run is a sequence of letters in one font.
type run struct {
	*face
	words string
}

// runs splits a printable text into parts of one font each. A space uses the font of the letter before it.
func runs(words string) (all []run) {
	for _, r := range words {
		f := faceOf(r)
		if f == nil {
			f = faces[0] // the text is not from printable
		}
		n := len(all) - 1
		switch {
		case n >= 0 && (all[n].face == f || r == ' ' && all[n].has().has(r)):
			all[n].words += string(r)
		default:
			all = append(all, run{f, string(r)})
		}
	}
	return all
}

// plain reports whether the first font can write a whole text from left to right.
func plain(words string) bool {
	for _, r := range words {
		if r >= 0x80 && !faces[0].has().has(r) {
			return false
		}
	}
	return true
}

// visual returns a line with its letters in visual order, from left to right. The first letter with a
// direction determines the direction of the line.
func visual(line string) string {
	if !strings.ContainsFunc(line, func(r rune) bool { return unicode.Is(unicode.Hebrew, r) }) {
		return line
	}
	var p bidi.Paragraph
	if _, err := p.SetString(line); err != nil {
		return line
	}
	order, err := p.Order()
	if err != nil {
		return line
	}
	var out, backward []string // backward contains the right-to-left parts
	flush := func() {
		slices.Reverse(backward)
		out, backward = append(out, backward...), nil
	}
	for i := range order.NumRuns() {
		part := order.Run(i)
		words := part.String()
		switch {
		case part.Direction() == bidi.RightToLeft:
			backward = append(backward, bidi.ReverseString(words))
		case order.Direction() == bidi.RightToLeft:
			backward = append(backward, words)
		case len(backward) > 0 && i+1 < order.NumRuns() && !strings.ContainsFunc(words, unicode.IsLetter):
			backward = append(backward, words) // a number within right-to-left text
		default:
			flush()
			out = append(out, words)
		}
	}
	flush()
	return strings.Join(out, "")
}
