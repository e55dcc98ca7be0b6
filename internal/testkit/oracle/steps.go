package oracle

import (
	"cmp"
	"slices"
)

// What is due when: a draft after the period's end, its finalization after that.
const (
	CloseDelay     = 10 * second
	CorrectionTime = hour
)

// Tick does all that is due by the clock, in the order of its instants.
func (l *Life) Tick() {
	l.grow()
	for {
		due, do := l.next()
		if do == nil || due > l.Clock.Now {
			break
		}
		do()
	}
	l.expire()
}

// next is the step that is due first, and when; nil: none.
func (l *Life) next() (first int64, do func()) {
	consider := func(due int64, step func()) {
		if do == nil || due < first {
			first, do = due, step
		}
	}
	for _, p := range l.periods {
		if !p.opened && p.Start <= l.Clock.Now {
			consider(max(p.Start, l.startsPut)+CloseDelay, func() { l.opening(p) })
		}
		if !p.closed && p.End <= l.Clock.Now {
			consider(max(p.End, l.startsPut)+CloseDelay, func() { l.close(p) })
		}
	}
	inOrder := slices.Clone(l.invoices) // of one instant the earlier period's first
	slices.SortStableFunc(inOrder, func(a, b *Invoice) int { return cmp.Compare(a.instant(), b.instant()) })
	for _, i := range inOrder {
		if i.Status == "draft" {
			consider(i.due, func() { l.finalize(i, i.due) })
		}
	}
	if l.owed != nil && l.over() {
		consider(*l.owed+CloseDelay, l.extra)
	}
	return first, do
}

// opening makes the invoice of a chain's first base in advance.
func (l *Life) opening(p *Period) {
	p.opened = true
	l.late(p)
	ahead := p.ahead()
	if ahead == nil || ahead.line().Minor == 0 {
		return
	}
	i := &Invoice{Kind: "opening", Start: p.Start, End: p.Known, period: p, holds: ahead}
	i.due = max(p.Start, l.startsPut) + CloseDelay + CorrectionTime
	l.draft(i)
}

// close makes the invoice of a period.
func (l *Life) close(p *Period) {
	p.closed = true
	i := &Invoice{Kind: "period", Start: p.Start, End: p.End, period: p}
	i.due = max(p.End, l.startsPut) + CloseDelay + CorrectionTime
	if next := l.after(p); next != nil {
		l.late(next)
		i.holds = next.ahead()
		if i.onward = p.onward(next); i.onward {
			if i.longer = l.longer(p); i.longer != nil {
				p.long.to = i.longer.to
			}
		}
	}
	if l.draft(i) {
		p.invoice = i
	}
}

// late: the end of a period that lay in the past when it was drawn is what is known when its base
// is charged.
func (l *Life) late(p *Period) {
	if p.Start < l.startsPut {
		p.Known = l.knownEnd(p, p.share.E)
		if p.long != nil && p.long.begun == p {
			p.long.to = l.knownEnd(p, p.long.E)
		}
	}
}

// draft makes a draft with all charges and corrections that wait, unless nothing is on it.
func (l *Life) draft(i *Invoice) bool {
	i.life, i.Status = l, "draft"
	i.charges, i.corrections, i.unused = l.charges, l.pending(), l.unused
	if len(i.lines()) == 0 {
		return false
	}
	l.charges, l.unused = nil, nil
	for _, c := range i.corrections {
		c.claim()
	}
	i.holds.hold(i)
	i.longer.hold(i)
	l.invoices = append(l.invoices, i)
	return true
}
