package store

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// maxWord is the length of the longest word, bytes, because a tsvector rejects words of more than 2,046
// bytes. Longer words are cut.
const maxWord = 2000

// isAccent reports whether a character is a combining mark of European alphabets. Marks of other
// alphabets are parts of their words.
func isAccent(r rune) bool { return r >= '\u0300' && r <= '\u036f' }

// wordsOf returns the words of a name or of a search text, in full case folding (so ß becomes ss) and
// without accents. The dotless ı becomes i. A word consists of letters, digits and marks, or is one
// symbol such as ☕. PostgreSQL cannot fold the words, because it knows only the letters of its database's
// locale.
func wordsOf(name string) []string {
	small := strings.ToLower(norm.NFD.String(name)) // Fold swaps the capital and small letters of Cherokee
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

// queryOf returns the tsquery that finds names with a matching word for each word of text. A word matches
// if it begins with the word of text. The result is nil if text has no word, so no name is found. Words
// contain no character with a meaning in a tsquery.
func queryOf(text string) *string {
	words := wordsOf(text)
	if len(words) == 0 {
		return nil
	}
	query := "'" + strings.Join(words, "':* & '") + "':*"
	return &query
}
