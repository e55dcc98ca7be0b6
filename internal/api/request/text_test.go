package request

import (
	"strings"
	"testing"
)

// What people write is short, of one line, and says something where it must.
func TestCheckText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{ // where it may be left out, and where it is required
		"":                       {"", "is required"},
		" ":                      {"", "is required"},
		"\u00a0 ":                {"", "is required"},
		"why":                    {"", ""},
		strings.Repeat("x", 500): {"", ""},
		strings.Repeat("x", 501): {"must be UTF-8", "must be UTF-8"},
		"a\nb":                   {"must be UTF-8", "must be UTF-8"},
		"\xff":                   {"must be UTF-8", "must be UTF-8"},
	} {
		for i, required := range []bool{false, true} {
			if got := CheckText(text, required); !strings.HasPrefix(got, want[i]) || got == "" != (want[i] == "") {
				t.Errorf("%.10q, required %v: %q", text, required, got)
			}
		}
	}
}
