package document

import (
	"bytes"
	"strconv"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"

	"quotad/internal/billing"
)

// Measures in mm, of a page of A4. Sizes of letters are in points.
const (
	margin   = 20.0
	width    = 210 - 2*margin
	bottom   = 297 - 24.0 // rows end above it
	footAt   = 297 - 15.0
	numberW  = 10.0
	quantity = 32.0
	amountW  = 34.0
	describe = width - numberW - quantity - amountW
	tierSum  = 90.0 // where a tier's amount ends, from describeAt on
	leading  = 4.8  // of text of size text
	small    = 4.2
	gap      = 1.6 // above and below what a row says
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
	table bool // the lines are being drawn, so a new page begins with the table's head
}

// PDF is an invoice on pages of A4. Its dates are those of zone, of UTC where that is nil. The
// creation date within is when the invoice was finalized, of a draft when it was made. Letters
// beyond Latin, Greek and Cyrillic are shown as boxes.
func PDF(inv *billing.Invoice, zone *time.Location) ([]byte, error) {
	p := newPaper(inv, zone)
	s := &sheet{Fpdf: fpdf.New("P", "mm", "A4", ""), paper: p}
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

// room begins a new page where less than height is left on this one.
func (s *sheet) room(height float64) {
	if s.GetY()+height > bottom {
		s.newPage()
	}
}

func (s *sheet) pen(bold string, size float64, c shade) {
	s.SetFont(family, bold, size)
	s.SetTextColor(c[0], c[1], c[2])
}

// put writes one line of text at x, y in a box of width w and height h.
func (s *sheet) put(x, y, w, h float64, align, words string) {
	s.SetXY(x, y)
	s.CellFormat(w, h, words, "", 0, align+"M", false, 0, "")
}

// wrapped are the lines that words fill in a width, by the font that is set.
func (s *sheet) wrapped(words string, w float64) []string {
	if words == "" {
		return nil
	}
	return s.SplitText(printable(words), w)
}

func (s *sheet) line(c shade, thick float64) {
	s.SetDrawColor(c[0], c[1], c[2])
	s.SetLineWidth(thick)
	s.Line(margin, s.GetY(), margin+width, s.GetY())
}

// footers writes what stands below each page. It comes last, since it says how many there are.
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

// fit cuts words to what fits on one line.
func (s *sheet) fit(words string, w float64) string {
	lines := s.wrapped(words, w)
	if len(lines) < 2 {
		return printable(words)
	}
	return s.SplitText(lines[0], w-3)[0] + "…"
}
