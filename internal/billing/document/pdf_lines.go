package document

const (
	describeAt = margin + numberW
	quantityAt = describeAt + describe
	amountAt   = quantityAt + quantity
)

func (s *sheet) tableHead() {
	y := s.GetY()
	s.pen("", fine, muted)
	s.put(margin, y, numberW, leading, "L", "No.")
	s.put(describeAt, y, describe, leading, "L", "Description")
	s.put(quantityAt, y, quantity-3, leading, "R", "Quantity")
	s.put(amountAt, y, amountW, leading, "R", "Amount, "+s.paper.Currency)
	s.SetY(y + leading + gap)
	s.line(firm, .25)
}

// lines draws the table of lines. A page break never cuts a row.
func (s *sheet) lines() {
	s.room(30)
	s.tableHead()
	s.table = true
	for i := range s.paper.Rows {
		s.row(&s.paper.Rows[i])
	}
	if len(s.paper.Rows) == 0 {
		s.pen("", text, muted)
		s.put(describeAt, s.GetY()+gap, describe, leading, "L", "No lines")
		s.SetY(s.GetY() + leading + gap)
	}
	s.table = false
}

func (s *sheet) row(r *row) {
	s.pen("", text, ink)
	words := s.wrapped(r.Description, describe-4)
	s.pen("", fine, muted)
	var details []string
	for _, d := range r.Details {
		details = append(details, s.wrapped(d, describe-4)...)
	}
	// The tiers of a row may continue on the next page, but the first tier stays with the row.
	height := 2*gap + float64(len(words))*leading + float64(len(details))*small
	if len(r.Tiers) > 0 {
		height += float64(len(s.tierWords(r.Tiers[0]))) * small
	}
	s.room(height)
	y := s.GetY() + gap
	s.pen("", text, muted)
	s.put(margin, y, numberW, leading, "L", count(int64(r.N)))
	s.pen("", text, ink)
	s.figure(quantityAt, y, quantity-3, r.Quantity)
	s.figure(amountAt-3, y, amountW+3, r.Amount)
	for _, l := range words {
		s.put(describeAt, y, describe, leading, "L", l)
		y += leading
	}
	s.pen("", fine, muted)
	for _, l := range details {
		s.put(describeAt, y, describe, small, "L", l)
		y += small
	}
	s.SetY(y)
	for _, t := range r.Tiers {
		s.tier(t)
	}
	s.SetY(s.GetY() + gap)
	s.line(rule, .2)
}

// figure writes a right-aligned number in a column, in smaller letters if the number is very long.
func (s *sheet) figure(x, y, w float64, words string) {
	if have := s.width(words); have > w {
		s.SetFontSize(text * w / have)
	}
	s.put(x, y, w, leading, "R", words)
	s.SetFontSize(text)
}

// tierWords returns the lines of a tier's text, beside its amount. The pen must be the fine one.
func (s *sheet) tierWords(t tierRow) []string {
	return s.wrapped(t.Range+": "+t.Units, tierSum-s.GetStringWidth(t.Amount)-4)
}

// tier draws one tier below its line.
func (s *sheet) tier(t tierRow) {
	s.pen("", fine, muted)
	words := s.tierWords(t)
	s.room(float64(len(words))*small + gap)
	s.pen("", fine, muted) // a new page uses another pen
	y := s.GetY()
	s.put(describeAt, y, tierSum, small, "R", t.Amount)
	for i, l := range words {
		s.put(describeAt, y+float64(i)*small, tierSum, small, "L", l)
	}
	s.SetY(y + float64(len(words))*small)
}

// totals draws the sums below the lines, on one page if they fit.
func (s *sheet) totals() {
	const wide, each = 104.0, 6.0
	x := margin + width - wide
	s.room(min(float64(len(s.paper.Totals))*each+8, bottom-margin))
	s.SetY(s.GetY() + 3)
	s.SetDrawColor(firm[0], firm[1], firm[2])
	for _, t := range s.paper.Totals {
		s.pen("", text, muted)
		names := s.wrapped(t.Name, wide-amountW)
		s.room(float64(len(names))*leading + 2)
		y, size, bold, c := s.GetY(), text, "", muted
		if t.Strong || t.Last {
			bold, c = "B", ink
		}
		if t.Last {
			y += 1.5
			s.Line(x, y, margin+width, y)
			y, size = y+2, 12.5
			names = []string{t.Name}
		}
		s.pen(bold, size, c)
		for i, l := range names {
			s.put(x, y+float64(i)*leading, wide-amountW, leading, "L", l)
		}
		s.pen(bold, size, ink)
		s.put(x, y, wide, leading, "R", t.Amount)
		y += float64(len(names)) * leading
		s.pen("", fine, muted)
		for _, l := range s.wrapped(t.Note, wide-amountW) {
			s.put(x, y, wide-amountW, small, "L", l)
			y += small
		}
		s.SetY(y - leading + each)
	}
}

// blocks draws the texts below the totals.
func (s *sheet) blocks() {
	for _, b := range s.paper.Blocks {
		s.room(6 + 2*leading)
		s.SetY(s.GetY() + 5)
		s.pen("", fine, muted)
		s.put(margin, s.GetY(), width, leading, "L", b.Heading)
		s.SetY(s.GetY() + leading)
		s.texts(b.Lines, text, leading, ink)
	}
}

// texts draws lines below each other, from the current position on.
func (s *sheet) texts(lines []string, size, height float64, c shade) {
	for _, words := range lines {
		s.pen("", size, c)
		for _, l := range s.wrapped(words, width) {
			s.room(height)
			s.pen("", size, c) // a new page may have used another pen
			y := s.GetY()
			s.put(margin, y, width, height, "L", l)
			s.SetY(y + height)
		}
	}
}

func (s *sheet) foot() {
	s.room(small + 6)
	s.SetY(s.GetY() + 6)
	s.texts(append(s.paper.Footer, s.paper.Foot), fine, small, muted)
}
