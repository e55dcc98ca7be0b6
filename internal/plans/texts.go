package plans

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names, reasons, descriptions, units, prefixes and lines of addresses are texts for people. They are
// stored without the white space at both ends (strings.TrimSpace). Where one must say something, it has a
// character that is seen. Ids, keys, attributes, metadata and secrets are stored as they were sent.

// maxName is the length of the longest name, in characters.
const maxName = 200

// brailleBlank is a symbol to Unicode, and is drawn as nothing.
const brailleBlank = '\u2800'

// unseen are the characters that nobody sees by themselves. Other_Default_Ignorable_Code_Point has those
// of Default_Ignorable_Code_Point that are neither C nor M, such as U+3164.
var unseen = []*unicode.RangeTable{unicode.White_Space, unicode.C, unicode.M, unicode.Other_Default_Ignorable_Code_Point}

// IsSeen reports whether a character is seen by itself: it is not of White_Space, C, M,
// Default_Ignorable_Code_Point or U+2800. A code point that has no character yet is of C.
func IsSeen(r rune) bool { return r != brailleBlank && !unicode.In(r, unseen...) }

// Says reports whether a text has a character that is seen.
func Says(text string) bool { return strings.ContainsFunc(text, IsSeen) }

// PlainText reports whether s is UTF-8 without control characters. That keeps NUL out, too, which
// neither text nor jsonb can hold.
func PlainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// SeenRule is what is said of a text that has characters, and none that is seen.
const SeenRule = "must have a character that is seen: spaces and invisible characters alone say nothing"

// name takes the white space off both ends of a text for people, and checks the text. It must be valid
// UTF-8 of at most maxName characters, without control characters, and say something. One that is not
// required may be left out.
func (f *faults) name(field string, value *string, required bool) {
	sent := *value
	*value = strings.TrimSpace(sent)
	switch {
	case sent == "" && !required:
	case sent == "":
		f.add(field, "is required: 1 to %d characters", maxName)
	case !PlainText(*value):
		f.add(field, "must be valid UTF-8 without control characters")
	case utf8.RuneCountInString(*value) > maxName:
		f.add(field, "must have at most %d characters", maxName)
	case !Says(*value):
		f.add(field, SeenRule)
	}
}

// CheckReason takes the white space off both ends of the reason of a suspension, and says what is wrong
// with it: it is a text of 1 to 200 characters.
func CheckReason(reason *string) error {
	var bad faults
	bad.name("reason", reason, true)
	return bad.err()
}
