package document

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"

	"quotad/internal/billing"
)

// Measures of an A4 page in mm. Letter sizes are in points.
const (
	margin   = 20.0
	width    = 210 - 2*margin
	bottom   = 297 - 24.0 // lower limit of rows
	footAt   = 297 - 15.0
	numberW  = 10.0
	quantity = 32.0
	amountW  = 34.0
	describe = width - numberW - quantity - amountW
	tierSum  = 90.0 // right edge of a tier's amount, relative to describeAt
	leading  = 4.8  // line height of size text
	small    = 4.2
	gap      = 1.6 // space above and below the text of a row
	family   = "go"
	text     = 9.5
	fine     = 8.0
)

type shade [3]int

var (
	ink   = shade{29, 27, 24}
	muted = shade{102, 98, 91}
	rule  = shade{214, 209, 200}
	firm  = shade{141, 135, 125}
	wrong = shade{180, 35, 24}
	soft  = shade{244, 242, 238}
	alert = shade{252, 235, 232}
)

// sheet draws a paper on pages.
type sheet struct {
	*fpdf.Fpdf
	paper *paper
	table bool // a table is being drawn, so a new page begins with the table's head
	added map[*face]bool
	bold  string // the style of the pen
}

// PDF renders an invoice on A4 pages. Dates are in the timezone zone, or in UTC if zone is nil. The PDF's
// creation date is the finalization of the invoice, or the creation of a draft. A box replaces each letter
// that no font contains, see Unprintable.
func PDF(inv *billing.Invoice, zone *time.Location) ([]byte, error) {
	p := newPaper(inv, zone)
	s := &sheet{Fpdf: fpdf.New("P", "mm", "A4", ""), paper: p, added: make(map[*face]bool)}
	made := inv.MadeAt
	if inv.FinalizedAt != nil {
		made = *inv.FinalizedAt
	}
	s.SetCreationDate(time.UnixMicro(made).UTC())
	s.SetModificationDate(time.UnixMicro(made).UTC())
	s.SetCatalogSort(true)
	s.SetTitle(printable(p.Title), true)
	s.SetAuthor(printable(p.From.Name), true)
	s.SetProducer("quotad", true)
	s.SetLang("en")
	s.AddUTF8FontFromBytes(family, "", goregular.TTF)
	s.AddUTF8FontFromBytes(family, "B", gobold.TTF)
	s.SetMargins(margin, margin, margin)
	s.SetCellMargin(0)
	s.SetAutoPageBreak(false, 0)

	s.newPage()
	s.head()
	s.lines()
	s.totals()
	s.blocks()
	s.foot()
	s.footers()
	var b bytes.Buffer
	if err := s.Output(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (s *sheet) newPage() {
	s.AddPage()
	if s.table {
		s.tableHead()
	}
}

// room begins a new page if less than height is left on the current page.
func (s *sheet) room(height float64) {
	if s.GetY()+height > bottom {
		s.newPage()
	}
}

func (s *sheet) pen(bold string, size float64, c shade) {
	s.bold = bold
	s.SetFont(family, bold, size)
	s.SetTextColor(c[0], c[1], c[2])
}

// put writes one line of text at x, y in a box of width w and height h.
func (s *sheet) put(x, y, w, h float64, align, words string) {
	s.SetXY(x, y)
	if plain(words) {
		s.CellFormat(w, h, words, "", 0, align+"M", false, 0, "")
		return
	}
	words = visual(words)
	switch have := s.width(words); align {
	case "R":
		s.SetX(x + w - have)
	case "C":
		s.SetX(x + (w-have)/2)
	}
	for _, r := range runs(words) {
		s.use(r.face)
		s.CellFormat(s.GetStringWidth(r.words), h, r.words, "", 0, "LM", false, 0, "")
	}
	s.use(faces[0])
}

// use selects a font. Only the first font has a bold weight.
func (s *sheet) use(f *face) {
	style := s.bold
	if f != faces[0] {
		if style = ""; !s.added[f] {
			s.AddUTF8FontFromBytes(f.family, style, f.bytes())
			s.added[f] = true
		}
	}
	s.SetFont(f.family, style, 0)
}

// width returns the width of a printable text on one line, in the current style.
func (s *sheet) width(words string) (w float64) {
	if plain(words) {
		return s.GetStringWidth(words)
	}
	for _, r := range runs(words) {
		s.use(r.face)
		w += s.GetStringWidth(r.words)
	}
	s.use(faces[0])
	return w
}

// wrapped breaks words into lines of a width, in the current font.
func (s *sheet) wrapped(words string, w float64) []string {
	if words == "" {
		return nil
	}
	if words = printable(words); plain(words) {
		return s.SplitText(words, w)
	}
	return s.split(words, w)
}

// split is SplitText for several fonts. A line may end at a space, next to a Chinese or Japanese letter, or
// within a word that is too long.
func (s *sheet) split(words string, w float64) (lines []string) {
	var line []rune
	fits, end := 0.0, 0 // the width of line, and where it may be broken
	for _, r := range words {
		if free := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana); free || r == ' ' {
			end = len(line)
		}
		for each := s.width(string(r)); fits+each > w && len(line) > 0; {
			if end == 0 {
				end = len(line)
			}
			lines = append(lines, strings.TrimSpace(string(line[:end])))
			line = []rune(strings.TrimLeft(string(line[end:]), " "))
			fits, end = s.width(string(line)), 0
		}
		if r == ' ' && len(line) == 0 {
			continue
		}
		line = append(line, r)
		fits += s.width(string(r))
		if unicode.Is(unicode.Han, r) {
			end = len(line)
		}
	}
	return append(lines, strings.TrimSpace(string(line)))
}

func (s *sheet) line(c shade, thick float64) {
	s.SetDrawColor(c[0], c[1], c[2])
	s.SetLineWidth(thick)
	s.Line(margin, s.GetY(), margin+width, s.GetY())
}

// footers writes the footer of each page. It runs last, because a footer contains the number of pages.
func (s *sheet) footers() {
	const pageW = 30.0
	words := s.paper.Title
	for _, mark := range []string{s.paper.Label, s.paper.Test} {
		if mark != "" {
			words += " · " + mark
		}
	}
	pages := s.PageCount()
	for page := 1; page <= pages; page++ {
		s.SetPage(page)
		s.pen("", fine, muted)
		s.put(margin, footAt, width-pageW, small, "L", s.fit(words, width-pageW))
		s.put(margin+width-pageW, footAt, pageW, small, "R", "Page "+strconv.Itoa(page)+" of "+strconv.Itoa(pages))
	}
}

// fit cuts words to the length of one line.
func (s *sheet) fit(words string, w float64) string {
	lines := s.wrapped(words, w)
	if len(lines) < 2 {
		return printable(words)
	}
	return s.wrapped(lines[0], w-3)[0] + "…"
}
