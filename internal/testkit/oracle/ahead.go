package oracle

// An Ahead is base that was charged in advance, by one line of one invoice.
type Ahead struct {
	of       *Period // by whose terms
	from, to int64
	heldBy   *Invoice // that has the line
}

// A Long is a base price for several intervals of its plan, [S,E). The periods in it share it.
type Long struct {
	version *Version // whose price it is
	S, E    int64
	begun   *Period // the first that is not a trial; nil: none yet
	to      int64   // what has been charged in advance: up to here
	aheads  []*Ahead
}

// A Back is that a period has ended before the end of what was charged.
type Back struct {
	by   *Period
	what *Ahead
}

// lay finds the base for several intervals that a period lies in, nil for none. It goes on from the
// period before, unless that was of another chain, plan or rhythm, the intervals are over, or a change
// that was to count at once ended them.
func (l *Life) lay(p *Period) *Long {
	if before := l.before(p); before != nil && before.long != nil {
		same := before.Plan == p.Plan && before.terms.Zone == p.terms.Zone && before.terms.Anchor == p.terms.Anchor
		if same && p.Start < before.long.E && !l.cutAt(p.Start) {
			return before.long
		}
	}
	if p.Version.BaseEvery <= 1 {
		return nil
	}
	fresh := &Long{version: p.Version, S: p.share.S}
	for n := 0; ; n++ { // the end is so many intervals after the start, counted from the anchor
		if b := p.rhythm(); b.Boundary(n) == fresh.S {
			fresh.E = b.Boundary(n + p.Version.BaseEvery)
			break
		} else if b.Boundary(-n) == fresh.S {
			fresh.E = b.Boundary(p.Version.BaseEvery - n)
			break
		}
	}
	return fresh
}

func (l *Life) cutAt(at int64) bool {
	for _, c := range l.cuts {
		if c.at == at {
			return true
		}
	}
	return false
}

// before is the period that ends where another one of its chain begins; nil: none.
func (l *Life) before(p *Period) *Period {
	for _, other := range l.periods {
		if other != p && other.chain == p.chain && other.End == p.Start {
			return other
		}
	}
	return nil
}

// commence begins to charge what a period lies in, unless an earlier one did.
func (l *Life) commence(p *Period) {
	if p.long != nil && p.long.begun == nil && !p.trial() {
		p.long.begun, p.long.to = p, l.knownEnd(p, p.long.E)
	}
}

// knownEnd is where billing, or else something, is known to end for a period that starts.
func (l *Life) knownEnd(p *Period, end int64) int64 {
	for _, at := range []*int64{l.Account.TrialEndsAt, l.Account.EndsAt} {
		if at != nil && *at > p.Start {
			end = min(end, *at)
		}
	}
	return end
}

// based says whose version the base price is.
func (p *Period) based() *Version {
	if p.long != nil {
		return p.long.version
	}
	return p.Version
}

func (p *Period) inAdvance() bool { return p.based().BaseIn == "advance" }

// ahead is the base in advance that begins with the period; nil: none does.
func (p *Period) ahead() *Ahead {
	switch {
	case !p.inAdvance(), p.long != nil && p.long.begun != p:
		return nil
	case p.long != nil:
		return &Ahead{of: p, from: p.Start, to: p.long.to}
	}
	return &Ahead{of: p, from: p.Start, to: p.Known}
}

// hold notes that a line is on an invoice.
func (a *Ahead) hold(i *Invoice) {
	if a == nil {
		return
	}
	if a.heldBy == nil {
		if long := a.of.long; long != nil {
			long.aheads = append(long.aheads, a)
		} else {
			a.of.charged = append(a.of.charged, a)
		}
	}
	a.heldBy = i
}

func (a *Ahead) line() Line {
	return Line{Kind: "base", From: a.from, To: a.to, Version: a.of.based().N, Minor: a.of.base(a.from, a.to), part: a.of.ofBase(a.from, a.to), advance: a}
}

// onward reports whether the base of a period goes on in the next one.
func (p *Period) onward(next *Period) bool {
	return next != nil && p.long != nil && p.long == next.long && p.long.begun != nil && p.long.begun != next
}

// longer is what a base that goes on after a period costs more, as its end is known to come later.
func (l *Life) longer(p *Period) *Ahead {
	end := p.long.E
	if at := l.Account.EndsAt; at != nil && *at > p.End {
		end = min(end, *at)
	}
	if end <= p.long.to {
		return nil
	}
	return &Ahead{of: p.long.begun, from: p.long.to, to: end}
}

// backs are what the end of a period leaves unused.
func (p *Period) backs() (all []Back) {
	aheads := p.charged
	if p.long != nil && !p.trial() {
		aheads = p.long.aheads
	}
	for _, a := range aheads {
		if a.to > p.End {
			all = append(all, Back{p, a})
		}
	}
	return all
}

// line gives back what was charged after the period's end: at most what an invoice holds of it that is
// not void, less notes.
func (b Back) line() Line {
	held := int64(0)
	if i := b.what.heldBy; i != nil && i.Status != "void" {
		for _, line := range i.said() {
			if line.advance == b.what {
				held = line.Minor - line.noted
			}
		}
	}
	from := max(b.by.End, b.what.from)
	return Line{
		Kind: "unused", From: from, To: b.what.to, Version: b.what.of.based().N, Minor: -min(b.what.of.base(from, b.what.to), held),
		part: b.what.of.ofBase(from, b.what.to), back: b,
	}
}
