package apidoc

import (
	"fmt"
	"testing"
)

func TestBlocksOfADescription(t *testing.T) {
	for markdown, want := range map[string]string{
		"":                                "[]",
		"One.":                            "[{false [[{One. false}]]}]",
		"One\ntwo.":                       "[{false [[{One two. false}]]}]",
		"One.\n\nTwo.":                    "[{false [[{One. false}]]} {false [[{Two. false}]]}]",
		"One:\n- a\n- b":                  "[{false [[{One: false}]]} {true [[{a false}] [{b false}]]}]",
		"One.\n\n- a\n- b\n\nTwo.\n\n- c": "[{false [[{One. false}]]} {true [[{a false}] [{b false}]]} {false [[{Two. false}]]} {true [[{c false}]]}]",
		"A `b` and `c`.":                  "[{false [[{A  false} {b true} { and  false} {c true} {. false}]]}]",
		"- `<b>`":                         "[{true [[{<b> true}]]}]",
	} {
		if got := fmt.Sprint(blocks(markdown)); got != want {
			t.Errorf("%q: %s, not %s", markdown, got, want)
		}
	}
}
