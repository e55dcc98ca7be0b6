package document

import (
	"strings"
	"sync"
	"unicode"

	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/text/unicode/norm"
)

const box = '□'

// letters says which the PDF's font has. Its two weights have the same ones.
var letters = sync.OnceValue(func() map[rune]bool {
	has := map[rune]bool{}
	font, err := sfnt.Parse(goregular.TTF)
	if err != nil {
		return has // a test sees to it that it is a font
	}
	var b sfnt.Buffer
	for r := ' '; r <= unicode.MaxRune && r < 1<<16; r++ {
		if glyph, err := font.GlyphIndex(&b, r); err == nil && glyph != 0 {
			has[r] = true
		}
	}
	return has
})

// printable is text as the PDF's font can write it: accents joined to their letters, any space as
// a space, and a box for a letter that it lacks.
func printable(words string) string {
	has := letters()
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r): // marks of direction, soft hyphens
			return -1
		case has[r]:
			return r
		}
		return box
	}, norm.NFC.String(words))
}
