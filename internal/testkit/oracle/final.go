package oracle

import (
	"cmp"
	"slices"
)

// A Paper is what a finalized invoice says. It never changes again.
type Paper struct {
	Lines    []Line
	Subtotal int64
	Taxes    []Tax
	Tax      int64
	Total    int64
	Credits  int64
	Due      int64
	Seller   string
	DueAt    *int64

	rates []TaxRate
	left  int64 // of the subtotal: what credit notes have left
}

// inclusive says on which side of the subtotal taxes lie.
func inclusive(rates []TaxRate) bool { return len(rates) > 0 && rates[0].Inclusive }

// paper adds lines up.
func paper(lines []Line, a Account) Paper {
	rates := a.Taxes
	p := Paper{Lines: lines, Seller: a.Seller, rates: rates}
	for n := range lines {
		p.Subtotal += lines[n].Minor
	}
	p.Taxes = taxesOn(p.Subtotal, rates)
	p.Tax = sumOf(p.Taxes)
	p.Total = p.Subtotal
	if !inclusive(rates) {
		p.Total += p.Tax
	}
	p.Due, p.left = max(0, p.Total), max(0, p.Subtotal)
	return p
}

// finalize puts an invoice on paper at an instant, and has credits pay it.
func (l *Life) finalize(i *Invoice, at int64) {
	i.Paper = paper(i.lines(), l.Account)
	zone := l.Terms().Zone
	due := instant(at+offset(at, zone)+int64(l.Account.DueDays)*day, zone)
	if due < at { // of no days, and the clocks show this time again
		due = at
	}
	i.Paper.DueAt = &due
	if i.Kind == "period" && !i.extra {
		for _, meter := range i.period.meters() {
			i.period.counted[meter] = l.count(i.period, meter)
		}
	}
	l.apply(i, at)
	i.Status = "finalized"
	if i.Paper.Due == 0 {
		i.Status = "paid"
	}
	if i.Paper.Total < 0 {
		l.carry(-i.Paper.Total)
	}
}

// Finalize finalizes a draft before it is due.
func (l *Life) Finalize(i *Invoice) {
	l.finalize(i, l.Clock.Now)
	l.expire()
}

// Invoices are all of the customer, as they were made.
func (l *Life) Invoices() []*Invoice { return l.invoices }

// Void takes a finalized invoice back, and may make a draft in its place. What it gave back as unused
// goes on to that, or to the next invoice.
func (l *Life) Void(i *Invoice, reissue bool) {
	i.Status = "void"
	l.unpay(i)
	for _, c := range i.corrections {
		c.release()
	}
	l.charges = append(slices.Clone(i.charges), l.charges...)
	slices.SortFunc(l.charges, func(a, b *Charge) int { return cmp.Compare(a.order, b.order) }) // the oldest first
	for _, line := range i.Paper.Lines {
		if line.back.what != nil && (!reissue || i.extra || line.back.by != i.period) { // the reissue has that of its own period anyway
			l.unused = append(l.unused, line.back)
		}
	}
	slices.SortStableFunc(l.unused, func(a, b Back) int { return cmp.Compare(a.by.Start, b.by.Start) })
	switch {
	case reissue:
		again := &Invoice{
			Kind: i.Kind, Start: i.Start, End: i.End, period: i.period, holds: i.holds, longer: i.longer, onward: i.onward, extra: i.extra,
			of: i, due: l.Clock.Now + CorrectionTime,
		}
		if i.Kind == "period" && !i.extra {
			i.period.invoice = again
		}
		l.draft(again)
	case i.extra: // what it had waits for what is new
	case i.Kind == "period":
		i.period.writtenOff = true
		l.came()
	default:
		l.came()
	}
	l.expire()
}

// Referred says why an invoice cannot be void, "" if it can: a correction or a credit note refers to
// it, a final invoice gave back a part of its base in advance, or, without a reissue, notes took what
// only its corrections made of a line.
func (l *Life) Referred(i *Invoice, reissue bool) string {
	for _, other := range l.invoices {
		if other.Status != "void" && slices.ContainsFunc(other.said(), func(line Line) bool { return line.Of == i }) {
			return "corrected or noted"
		}
	}
	for _, line := range i.Paper.Lines {
		if line.advance != nil && l.givenBack(line.advance) > 0 {
			return "unused"
		}
		if line.Kind == "correction" && line.Minor > 0 && !reissue && l.leftOf(line.Of, line.Of.usageLine(line.Meter)) < line.Minor {
			return "notes of corrections"
		}
	}
	return ""
}

// Entangled are the invoices of which others correct or give back something, or that do so.
func (l *Life) Entangled() (all []*Invoice) {
	for _, i := range l.invoices {
		for _, line := range i.said() {
			if i.Kind != "credit_note" && (line.Of != nil || line.back.what != nil || line.advance != nil && l.givenBack(line.advance) > 0) {
				if all = append(all, i); line.Of != nil {
					all = append(all, line.Of)
				}
				break
			}
		}
	}
	return all
}

// givenBack is what final invoices gave back of base in advance.
func (l *Life) givenBack(a *Ahead) (minor int64) {
	for _, i := range l.invoices {
		if i.Status == "draft" || i.Status == "void" {
			continue
		}
		for _, line := range i.Paper.Lines {
			if line.back.what == a {
				minor -= line.Minor
			}
		}
	}
	return minor
}

// leftOf is what is left of a line on paper: L + C − U − N.
func (l *Life) leftOf(i *Invoice, line *Line) int64 {
	left := line.Minor - line.noted
	switch {
	case line.Kind == "usage":
		corrected, noted := l.corrected(i, line.Meter)
		left += corrected - noted
	case line.Kind == "correction":
		left = min(left, l.leftOf(line.Of, line.Of.usageLine(line.Meter)))
	case line.advance != nil:
		left -= l.givenBack(line.advance)
	}
	return left
}

// A NoteLine credits a part of a line; N from 1.
type NoteLine struct {
	N     int
	Minor int64
}

// Left is what may be credited of a line, when a note credits some minor units beside it.
func (l *Life) Left(i *Invoice, n int, beside int64) int64 {
	line := &i.Paper.Lines[n-1]
	if line.Minor <= 0 {
		return 0
	}
	return min(l.leftOf(i, line), i.Paper.left-beside)
}

// Note credits lines of an invoice.
func (l *Life) Note(i *Invoice, asked []NoteLine, toCredits bool) {
	lines, before := []Line{}, i.Paper.Subtotal-i.Paper.left
	for _, a := range asked {
		of := &i.Paper.Lines[a.N-1]
		of.noted += a.Minor
		i.Paper.left -= a.Minor
		lines = append(lines, Line{Kind: of.Kind, Meter: of.Meter, From: of.From, To: of.To, Version: of.Version, Minor: -a.Minor, Of: i})
	}
	note := &Invoice{Kind: "credit_note", Status: "paid", Start: i.Start, End: i.End, life: l, period: i.period, of: i}
	note.Paper = paper(lines, Account{Taxes: i.Paper.rates, Seller: i.Paper.Seller})
	then, now := taxesOn(before, i.Paper.rates), taxesOn(before-note.Paper.Subtotal, i.Paper.rates)
	for n := range then {
		note.Paper.Taxes[n].TaxMinor = then[n].TaxMinor - now[n].TaxMinor
		note.Paper.Taxes[n].BaseMinor = then[n].BaseMinor - now[n].BaseMinor
	}
	note.Paper.Tax = sumOf(note.Paper.Taxes)
	if note.Paper.Total = note.Paper.Subtotal; !inclusive(i.Paper.rates) {
		note.Paper.Total += note.Paper.Tax
	}
	l.invoices = append(l.invoices, note)
	l.credit(i, -note.Paper.Total, toCredits)
}
