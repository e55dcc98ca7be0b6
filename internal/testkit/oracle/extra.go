package oracle

// What comes when no invoice of a period is to come any more makes an invoice of its own.

// over reports whether billing has ended, and all periods are closed.
func (l *Life) over() bool {
	for _, p := range l.periods {
		if !p.closed {
			return false
		}
	}
	return l.archived || l.Account.EndsAt != nil && *l.Account.EndsAt <= l.Clock.Now
}

// came notes that something came now. Only the first counts.
func (l *Life) came() {
	if now := l.Clock.Now; l.over() && l.owed == nil {
		l.owed = &now
	}
}

// cameTo notes that units came to a period whose invoice is final.
func (l *Life) cameTo(e *Entry) {
	for _, p := range l.periods {
		if i := p.invoice; e.Cost != 0 && p.holds(e.Hour) && i != nil && i.Status != "draft" && i.Status != "void" && p.priceOf(e.Meter) != nil {
			l.came()
		}
	}
}

// extra makes the draft of what came.
func (l *Life) extra() {
	i := &Invoice{Kind: "period", extra: true, period: l.last(), due: *l.owed + CloseDelay + CorrectionTime}
	if l.owed = nil; i.period == nil { // billing ended before it began
		t := l.Terms()
		i.period = &Period{life: l, End: *l.Account.EndsAt, Version: l.World.plans[t.Plan][t.joined-1]}
		if t.Pin > 0 {
			i.period.Version = l.World.plans[t.Plan][t.Pin-1]
		}
	}
	i.Start, i.End = i.period.End, i.period.End
	l.draft(i)
}
