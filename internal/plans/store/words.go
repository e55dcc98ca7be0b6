package store

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// maxWord is the length of the longest word, bytes: a tsvector holds none of more than 2,046. Longer ones
// are cut.
const maxWord = 2000

// isAccent reports whether a character is a combining mark of European alphabets. Marks of other
// alphabets are parts of their words.
func isAccent(r rune) bool { return r >= '\u0300' && r <= '\u036f' }

// wordsOf are the words of a name, or of what a name is searched by: in full case folding, so that ß is ss,
// and without accents. The dotless ı is i. A word is letters, digits and marks, or one symbol such as ☕.
// PostgreSQL does not fold: it knows the letters of its database's locale only.
func wordsOf(name string) []string {
	small := strings.ToLower(norm.NFD.String(name)) // Fold makes capital letters of Cherokee small, and small ones capital
	folded := norm.NFD.String(cases.Fold().String(small))
	words := []string{}
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
		}
		word.Reset()
	}
	for _, r := range folded {
		switch {
		case isAccent(r), unicode.IsMark(r) && word.Len() == 0:
		case unicode.In(r, unicode.L, unicode.N, unicode.M):
			if r == 'ı' {
				r = 'i'
			}
			if word.Len()+utf8.RuneLen(r) <= maxWord {
				word.WriteRune(r)
			}
		case unicode.Is(unicode.So, r):
			end()
			words = append(words, string(r))
		default:
			end()
		}
	}
	end()
	return words
}

// queryOf is the tsquery of the names that have for each word of text a word that begins with it. nil: text
// has no word, so no name is found. Words have no character that means something in a tsquery.
func queryOf(text string) *string {
	words := wordsOf(text)
	if len(words) == 0 {
		return nil
	}
	query := "'" + strings.Join(words, "':* & '") + "':*"
	return &query
}
