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
}

// pending are the corrections that no invoice holds yet.
func (l *Life) pending() (all []*Correction) {
	for _, p := range l.periods {
		if p.invoice == nil || p.invoice.Status == "draft" || p.writtenOff {
			continue
		}
		for _, meter := range p.meters() {
			c := &Correction{p, p.invoice, meter, p.counted[meter], l.count(p, meter)}
			if c.to != c.from {
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *Correction) int { return cmp.Compare(a.period.Start, b.period.Start) })
	return all
}

func (c *Correction) line() Line {
	now := c.period.usage(c.meter, c.to)
	return Line{
		Kind: "correction", Meter: c.meter, From: c.period.Start, To: c.period.End, Version: c.period.Version.N, Quantity: c.to - c.from,
		Priced: now.Priced, Minor: now.Minor - c.period.usage(c.meter, c.from).Minor, Of: c.of,
	}
}

// claim notes that an invoice counts it, and release that none does.
func (c *Correction) claim()   { c.period.counted[c.meter] += c.to - c.from }
func (c *Correction) release() { c.period.counted[c.meter] -= c.to - c.from }
