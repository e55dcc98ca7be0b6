package document

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"sync"
	"unicode"

	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
)

// fontFiles contains the fonts, which scripts/assets.sh cuts from Noto. The script lists the letters of each
// font.
//
//go:embed fonts/*.ttf.gz
var fontFiles embed.FS

// face is a font that PDFs may embed. A PDF contains only the letters that it uses.
type face struct {
	family string
	within *unicode.RangeTable // letters for which the font is unpacked; nil for the first font
	bytes  func() []byte       // the TrueType file
	has    func() *letterSet
}

// letterSet is the set of letters in a font. It covers Unicode's first plane, because fpdf writes no other
// letters.
type letterSet [1 << 16 / 64]uint64

func (s *letterSet) add(r rune) { s[r/64] |= 1 << (r % 64) }

func (s *letterSet) has(r rune) bool { return r>>16 == 0 && s[r/64]&(1<<(r%64)) != 0 }

// faces contains the fonts in the order in which they are searched for a letter. The first font has two
// weights and writes nearly all of a document. The other fonts write letters that the first font lacks.
//
// Scripts whose letters change with their neighbors, such as Arabic and Devanagari, are unsupported, because
// fpdf places letters one by one.
var faces = []*face{
	newFace(family, nil, func() []byte { return goregular.TTF }),
	newFace("latin", table(0x20, 0x2ff, 0x370, 0x482, 0x48a, 0x58f, 0x1d00, 0x1dbf, 0x1e00, 0x1fff, 0x2010, 0x2027, 0x2030, 0x205e, 0x2070, 0x20cf,
		0x2100, 0x218f, 0x2c60, 0x2c7f, 0xa640, 0xa66e, 0xa720, 0xa7ff, 0xfb00, 0xfb06), unpacked("latin")),
	newFace("hebrew", table(0x5be, 0x5be, 0x5d0, 0x5f4), unpacked("hebrew")),
	newFace("thai", table(0xe01, 0xe5b), unpacked("thai")),
	newFace("hangul", table(0x3131, 0x318e, 0xac00, 0xd7a3), unpacked("hangul")),
	newFace("han", table(0x3000, 0x30ff, 0x4e00, 0x9fff, 0xff00, 0xffef), unpacked("han")),
}

// table returns a table of letter ranges. spans contains the first and the last letter of each range, in
// turn.
func table(spans ...uint16) *unicode.RangeTable {
	t := new(unicode.RangeTable)
	for i := 0; i < len(spans); i += 2 {
		t.R16 = append(t.R16, unicode.Range16{Lo: spans[i], Hi: spans[i+1], Stride: 1})
	}
	return t
}

func newFace(family string, within *unicode.RangeTable, read func() []byte) *face {
	f := &face{family: family, within: within, bytes: sync.OnceValue(read)}
	f.has = sync.OnceValue(func() *letterSet {
		has := new(letterSet)
		font, err := sfnt.Parse(f.bytes())
		if err != nil {
			return has // a test checks that the file is a font
		}
		var b sfnt.Buffer
		for r := ' '; r < 1<<16; r++ {
			if glyph, err := font.GlyphIndex(&b, r); err == nil && glyph != 0 {
				has.add(r)
			}
		}
		return has
	})
	return f
}

// unpacked returns a function that unpacks an embedded font.
func unpacked(name string) func() []byte {
	return func() []byte {
		packed, err := fontFiles.ReadFile("fonts/" + name + ".ttf.gz")
		if err != nil {
			return nil // a test checks that the file exists
		}
		r, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil
		}
		font, err := io.ReadAll(r)
		if err != nil {
			return nil
		}
		return font
	}
}

// faceOf returns the font that writes a letter, or nil if no font contains the letter.
func faceOf(r rune) *face {
	if faces[0].has().has(r) {
		return faces[0]
	}
	for _, f := range faces[1:] {
		if unicode.Is(f.within, r) && f.has().has(r) {
			return f
		}
	}
	return nil
}
