package request

import (
	"strings"
	"testing"
)

// What people must write is short, of one line, and says something. White space at both ends is taken off.
func TestCheckText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ wrong, kept string }{
		"":                             {"is required", ""},
		" ":                            {"must have a character that is seen", ""},
		"\u00a0 ":                      {"must have a character that is seen", ""},
		"\u200b":                       {"must have a character that is seen", "\u200b"},
		"why":                          {"", "why"},
		" \u2003why not\n":             {"", "why not"},
		strings.Repeat("x", 500) + " ": {"", strings.Repeat("x", 500)},
		strings.Repeat("x", 501):       {"must be UTF-8", strings.Repeat("x", 501)},
		"a\nb":                         {"must be UTF-8", "a\nb"},
		"\xff":                         {"must be UTF-8", "\xff"},
	} {
		kept := text
		if got := CheckText(&kept); !strings.HasPrefix(got, want.wrong) || got == "" != (want.wrong == "") || kept != want.kept {
			t.Errorf("%.10q: %q, kept %.10q", text, got, kept)
		}
	}
}

// What something is known by elsewhere may be left out, and is kept as it was sent.
func TestCheckReference(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{"": true, " R-1 ": true, "a\nb": false, "\xff": false, strings.Repeat("x", 501): false} {
		if got := CheckReference(text); got == "" != good {
			t.Errorf("%.10q: %q", text, got)
		}
	}
}
