package oracle

import (
	"cmp"
	"slices"
)

// Correction is what came after an invoice was finalized: so many units of a meter more.
type Correction struct {
	period   *Period
	of       *Invoice
	meter    string
	from, to int64 // what was counted before, and with it
	billed   int64 // what the line and all corrections before came to
	noted    int64 // what notes took of that
	minor    int64
}

// pending are the corrections that no invoice holds yet.
func (l *Life) pending() (all []*Correction) {
	for _, p := range l.periods {
		if p.invoice == nil || p.invoice.Status == "draft" || p.writtenOff {
			continue
		}
		for _, meter := range p.meters() {
			if l.World.isLevel(meter) {
				continue // no past hour changes
			}
			if c := l.correction(p, meter, l.count(p, meter)); c.to != c.from || c.minor != 0 {
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *Correction) int { return cmp.Compare(a.period.Start, b.period.Start) })
	return all
}

// correction makes of a period's line what its units come to, but no less than notes took of it.
func (l *Life) correction(p *Period, meter string, to int64) *Correction {
	line := p.invoice.usageLine(meter)
	corrected, noted := l.corrected(p.invoice, meter)
	c := &Correction{p, p.invoice, meter, p.counted[meter], to, line.Minor + corrected, line.noted + noted, 0}
	c.minor = max(p.usage(meter, to).Minor, c.noted) - c.billed
	return c
}

func (i *Invoice) usageLine(meter string) *Line {
	for n := range i.Paper.Lines {
		if line := &i.Paper.Lines[n]; line.Kind == "usage" && line.Meter == meter {
			return line
		}
	}
	panic("a price without a line")
}

// corrected is what the corrections so far of an invoice's meter come to, and what notes took of them.
func (l *Life) corrected(of *Invoice, meter string) (minor, noted int64) {
	for _, i := range l.invoices {
		if i.Status == "void" || i.Kind == "credit_note" {
			continue
		}
		for _, line := range i.said() {
			if line.Kind == "correction" && line.Of == of && line.Meter == meter {
				minor += line.Minor
				noted += line.noted
			}
		}
	}
	return minor, noted
}

func (c *Correction) line() Line {
	line := c.period.usage(c.meter, c.to)
	line.Kind, line.Quantity, line.Minor, line.Of, line.Before = "correction", c.to-c.from, c.minor, c.of, &Before{c.from, c.billed, c.noted}
	return line
}

// claim notes that an invoice counts it, and release that none does.
func (c *Correction) claim()   { c.period.counted[c.meter] += c.to - c.from }
func (c *Correction) release() { c.period.counted[c.meter] -= c.to - c.from }
