package plans

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names, reasons, descriptions, units, prefixes and address lines are texts for people. They are stored
// without the white space at both ends (strings.TrimSpace), and a required text must contain a visible
// character. Ids, keys, attributes, metadata and secrets are stored as they were sent.

// maxName is the greatest length of a name, in characters.
const maxName = 200

// brailleBlank is a symbol according to Unicode but is drawn as an empty space.
const brailleBlank = '\u2800'

// unseen contains the characters that are invisible by themselves. Other_Default_Ignorable_Code_Point
// adds the characters of Default_Ignorable_Code_Point that are in neither C nor M, such as U+3164.
var unseen = []*unicode.RangeTable{unicode.White_Space, unicode.C, unicode.M, unicode.Other_Default_Ignorable_Code_Point}

// IsSeen reports whether a character is visible by itself, which means that it is not in White_Space, C,
// M or Default_Ignorable_Code_Point and is not U+2800. Unassigned code points are in C.
func IsSeen(r rune) bool { return r != brailleBlank && !unicode.In(r, unseen...) }

// Says reports whether a text contains a visible character.
func Says(text string) bool { return strings.ContainsFunc(text, IsSeen) }

// PlainText reports whether s is UTF-8 without control characters. This also excludes NUL, which neither
// text nor jsonb can store.
func PlainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// SeenRule is the error text for a text that has characters but no visible character.
const SeenRule = "must have a character that is seen: spaces and invisible characters alone say nothing"

// name trims white space from both ends of a text for people and checks the text. The text must be valid
// UTF-8 of at most maxName characters, without control characters and with a visible character. A text
// that is not required may be left out.
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

// CheckReason trims white space from both ends of a suspension's reason, and returns an error unless the
// reason is a valid text of 1 to 200 characters.
func CheckReason(reason *string) error {
	var bad faults
	bad.name("reason", reason, true)
	return bad.err()
}
