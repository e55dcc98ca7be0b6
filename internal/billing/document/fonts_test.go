package document

import (
	"slices"
	"strings"
	"testing"
)

// Each font is one, and has the letters that it is for. What no font has is told.
func TestFontsHaveTheirLetters(t *testing.T) {
	for family, words := range map[string]string{
		family: "Straße Ακμή Привет 5 € − …", "latin": "Nguyễn Thị Ánh", "hebrew": "חברת אקמי בע״מ", "thai": "บริษัท น้ำตาล จำกัด",
		"hangul": "주식회사 서울", "han": "東京都千代田区 株式会社アクメ 北京科技有限公司 （カナ）",
	} {
		for _, r := range runs(printable(words)) {
			if r.family != family && r.family != faces[0].family && (family != "latin" || r.family != "latin") {
				t.Errorf("%q of %q is written by %s", r.words, words, r.family)
			}
		}
		if got := Unprintable(words); got != nil {
			t.Errorf("%q: %q cannot be printed", words, got)
		}
		if !slices.ContainsFunc(runs(printable(words)), func(r run) bool { return r.family == family }) {
			t.Errorf("%q is not written by %s", words, family)
		}
	}
	want := []rune{0x1f44d, 0x645, 0x631, 0x62d, 0x628, 0x627, 0x928, 0x92e} // an emoji, Arabic, Devanagari
	if got := Unprintable("Acme " + string(want) + " a\u200db " + string(want[:2])); !slices.Equal(got, want) {
		t.Errorf("unprintable: %q", got)
	}
	for _, f := range faces[1:] {
		for _, span := range f.within.R16 {
			n := 0
			for r := rune(span.Lo); r <= rune(span.Hi); r++ {
				if f.has().has(r) {
					n++
				}
			}
			if n == 0 {
				t.Errorf("%s has nothing between %x and %x", f.family, span.Lo, span.Hi)
			}
		}
	}
}

func TestLinesStandFromLeftToRight(t *testing.T) {
	for line, want := range map[string]string{
		"Acme":               "Acme",
		"אבג":                "גבא",
		"אבג 24 דהו":         "והד 24 גבא",
		"ABC אבג XYZ":        "ABC גבא XYZ",
		"ABC אבג 24 דהו XYZ": "ABC והד 24 גבא XYZ",
		"אבג ABC דהו":        "והד ABC גבא",
		"PO אבג":             "PO גבא",
	} {
		if got := visual(line); strings.Join(strings.Fields(got), " ") != want {
			t.Errorf("%q stands as %q, want %q", line, got, want)
		}
	}
}
