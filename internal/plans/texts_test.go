package plans

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

// A character is seen if it is of none of the named properties. Each of these is of one, or of none.
func TestSeen(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, " ": false, "\u00a0": false, "\u1680": false, "\u2028": false, "\u3000": false, // White_Space
		"\u200b": false, "\u200d": false, "\u2060": false, "\ufeff": false, "\u00ad": false, "\U000e0041": false, // Cf
		"\ue000": false, "\U000f0000": false, "\u0378": false, "\ufdd0": false, // Co, Cn
		"\u0301": false, "\u0903": false, "\u20dd": false, "\ufe0f": false, "\u034f": false, "\u180b": false, // M
		"\u115f": false, "\u1160": false, "\u3164": false, "\uffa0": false, "\u17b4": false, "\u2065": false, "\U000e0fff": false, // Default_Ignorable_Code_Point
		"\u2800": false, " \u2800\u3164\u200b": false,
		"a": true, "ß": true, "1": true, "-": true, "$": true, "·": true, "漢": true, "🦊": true, "\u2801": true, "\u200b.\u200b": true, "e\u0301": true,
	} {
		if got := Says(text); got != want {
			t.Errorf("%+q: %t", text, got)
		}
	}
}

// The standard library has Default_Ignorable_Code_Point in parts only. None of what Unicode puts together
// from these parts is seen.
func TestIgnorableIsNotSeen(t *testing.T) {
	t.Parallel()
	n := 0
	for r := range rune(unicode.MaxRune) {
		ignorable := unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Cf, unicode.Variation_Selector)
		if !utf8.ValidRune(r) || !ignorable {
			continue
		}
		if n++; IsSeen(r) {
			t.Errorf("%U is seen", r)
		}
	}
	if n < 4000 {
		t.Errorf("only %d characters were looked at", n)
	}
}
