package document

// head draws everything above the lines: the parties, the amount and the dates.
func (s *sheet) head() {
	p := s.paper
	y := margin
	s.pen("B", 10, muted)
	for _, l := range s.wrapped(p.From.Name, width) {
		s.put(margin, y, width, 5, "L", l)
		y += 5
	}
	y++
	s.pen("B", 20, ink)
	for _, l := range s.wrapped(p.Title, width) {
		s.put(margin, y, width, 10, "L", l)
		y += 10
	}
	s.pen("", 11.5, ink)
	s.put(margin, y+.5, width, 6, "L", printable(p.Headline))
	x := margin + s.GetStringWidth(printable(p.Headline)) + 4
	if p.Label != "" {
		x = s.label(x, y+.5, p.Label, p.Tone) + 2
	}
	if p.Test != "" {
		s.label(x, y+.5, p.Test, "bad")
	}
	s.SetY(y + 9)
	for _, n := range p.Notices {
		s.notice(n)
	}
	s.SetY(s.GetY() + 3)
	s.line(rule, .2)
	s.parties(s.GetY() + 5)
}

// label draws a word, such as the status, in a box at x, y. It returns the right edge of the box.
func (s *sheet) label(x, y float64, word, tone string) float64 {
	fill, c := soft, muted
	switch tone {
	case "bad":
		fill, c = alert, wrong
	case "good":
		fill, c = shade{228, 243, 233}, shade{29, 107, 58}
	case "accent":
		fill, c = shade{231, 236, 249}, shade{42, 86, 198}
	}
	s.pen("B", fine, c)
	w := s.GetStringWidth(word) + 5
	s.SetFillColor(fill[0], fill[1], fill[2])
	s.RoundedRect(x, y+.5, w, 5, 2.5, "1234", "F")
	s.put(x, y+.5, w, 5, "C", word)
	return x + w
}

func (s *sheet) notice(n notice) {
	const pad = 3.0
	fill := soft
	if n.Bad {
		fill = alert
	}
	s.pen("", text, ink)
	lines := s.wrapped(n.Text, width-2*pad)
	height := float64(len(lines))*leading + 2*pad
	s.room(height)
	y := s.GetY() + 1.5
	s.SetFillColor(fill[0], fill[1], fill[2])
	s.RoundedRect(margin, y, width, height, 2, "1234", "F")
	for i, l := range lines {
		s.put(margin+pad, y+pad+float64(i)*leading, width-2*pad, leading, "L", l)
	}
	s.SetY(y + height + 1.5)
}

// parties draws the seller, the buyer and the facts in three columns, from y on.
func (s *sheet) parties(y float64) {
	const between, wide = 6.0, 60.0
	column := (width - wide - 2*between) / 2
	end := max(s.party(margin, y, column, &s.paper.From), s.party(margin+column+between, y, column, &s.paper.To))
	end = max(end, s.facts(margin+2*(column+between), y, wide))
	s.SetY(end + 7)
}

// party draws a party in a column and returns the lower edge.
func (s *sheet) party(x, y, w float64, p *party) float64 {
	s.pen("", fine, muted)
	s.put(x, y, w, leading, "L", p.Heading)
	y += leading + .3
	s.pen("B", text, ink)
	for _, l := range s.wrapped(p.Name, w) {
		s.put(x, y, w, leading, "L", l)
		y += leading
	}
	s.pen("", text, ink)
	for _, words := range p.Lines {
		for _, l := range s.wrapped(words, w) {
			if y > bottom {
				return y
			}
			s.put(x, y, w, leading, "L", l)
			y += leading
		}
	}
	return y
}

func (s *sheet) facts(x, y, w float64) float64 {
	const name = 24.0
	for _, f := range s.paper.Facts {
		s.pen("", text, muted)
		s.put(x, y, name, leading, "L", f.Name)
		s.pen("", text, ink)
		for _, l := range s.wrapped(f.Value, w-name) {
			s.put(x+name, y, w-name, leading, "R", l)
			y += leading
		}
		y += .6
	}
	return y
}
