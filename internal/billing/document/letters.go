package document

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

const box = '□'

// printable is text as the PDF's fonts can write it: accents joined to their letters, any space as
// a space, and a box for a letter that they lack.
func printable(words string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r): // marks of direction, soft hyphens
			return -1
		case faceOf(r) != nil:
			return r
		}
		return box
	}, norm.NFC.String(words))
}

// Unprintable are the letters of a text that a PDF shows a box for, each once, in their order.
func Unprintable(words string) (letters []rune) {
	for _, r := range norm.NFC.String(words) {
		if !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && faceOf(r) == nil && !slices.Contains(letters, r) {
			letters = append(letters, r)
		}
	}
	return letters
}

// run is letters that one font writes.
type run struct {
	*face
	words string
}

// runs are the parts of a printable text, each of one font. Spaces are of the font before.
func runs(words string) (all []run) {
	for _, r := range words {
		f := faceOf(r)
		if f == nil {
			f = faces[0] // nobody made it printable
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

// plain reports whether the first font writes all of a text, from left to right.
func plain(words string) bool {
	for _, r := range words {
		if r >= 0x80 && !faces[0].has().has(r) {
			return false
		}
	}
	return true
}

// visual is a line in the order in which its letters stand, from left to right. Its direction is that
// of its first letter that has one.
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
	var out, backward []string // backward: parts that stand from right to left
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
			backward = append(backward, words) // a number within
		default:
			flush()
			out = append(out, words)
		}
	}
	flush()
	return strings.Join(out, "")
}
