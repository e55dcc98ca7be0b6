package oracle

// A Period is a billing period [Start, End).
type Period struct {
	Start, End int64
	Known      int64 // the end that was known when it started
	Version    *Version
	Plan       string

	life   *Life
	share  Share // of the whole period that it is cut from
	own    map[string]*Price
	terms  Terms
	chain  int
	first  bool // of its chain
	born   int  // what was written before this change prices it
	opened bool // the opening invoice was made, or there is none
	closed bool

	invoice    *Invoice // of the period, void or not; nil: none
	writtenOff bool
	long       *Long            // the base for several intervals that it lies in; nil: it has one of its own
	charged    []*Ahead         // of one of its own
	counted    map[string]int64 // what invoices have counted, by meter
}

func (p *Period) holds(at int64) bool { return p.Start <= at && at < p.End }

// trial reports whether the period is rated 0.
func (p *Period) trial() bool {
	t := p.life.Account.TrialEndsAt
	return t != nil && p.End <= *t
}

// open is the running period; nil: none.
func (l *Life) open() *Period {
	for _, p := range l.periods {
		if p.holds(l.Clock.Now) {
			return p
		}
	}
	return nil
}

func (l *Life) last() *Period {
	if len(l.periods) == 0 {
		return nil
	}
	return l.periods[len(l.periods)-1]
}

// after is the period that begins where another one ends; nil: none.
func (l *Life) after(p *Period) *Period {
	for _, next := range l.periods {
		if next.chain == p.chain && next.Start == p.End {
			return next
		}
	}
	return nil
}

// begin begins a period; what was written before change born counts in it.
func (l *Life) begin(start int64, born int, first bool) {
	if l.archived || l.Account.EndsAt != nil && *l.Account.EndsAt <= start {
		return
	}
	l.arrive(start)
	for _, c := range l.cuts {
		if c.at == start {
			born = c.order
		}
	}
	l.owed = nil
	p := &Period{Start: start, life: l, chain: l.chain, first: first, born: born, counted: map[string]int64{}}
	l.price(p)
	l.commence(p)
	p.opened = !first
	l.periods = append(l.periods, p)
}

// price sets what prices a period, and what that says of its end.
func (l *Life) price(p *Period) {
	p.terms = l.terms[0]
	for _, t := range l.terms {
		if t.order < p.born && t.from <= p.Start {
			p.terms = t
		}
	}
	if s := l.scheduled; s != nil && s.At <= p.Start {
		p.terms = s.over(p.terms)
	}
	n := p.terms.Pin
	if n == 0 {
		n = max(p.terms.joined, l.World.forAll(p.terms.Plan, p.born))
	}
	p.Plan, p.Version = p.terms.Plan, l.World.plans[p.terms.Plan][n-1]
	p.own = l.ownBefore(p.born)
	p.share.S, p.share.E = p.rhythm().Around(p.Start)
	l.bound(p)
	p.Known = l.knownEnd(p, p.share.E)
	p.long = l.lay(p)
}

// rhythm is what the boundaries of the period are counted from.
func (p *Period) rhythm() Rhythm {
	return Rhythm{p.terms.Anchor, p.terms.Zone, p.Version.Interval, p.Version.IntervalCount}
}

// bound sets where a period ends: at the next boundary, whatever its cause.
func (l *Life) bound(p *Period) {
	p.End = p.until(l.Account.TrialEndsAt, l.Account.EndsAt)
	for _, c := range l.cuts {
		p.End = min(p.End, p.until(&c.at))
	}
	p.share.A, p.share.B = p.Start, p.End
}

// until is the end of the whole period, or the first of some instants that lies before.
func (p *Period) until(ends ...*int64) int64 {
	end := p.share.E
	for _, at := range ends {
		if at != nil && *at > p.Start {
			end = min(end, *at)
		}
	}
	return end
}

// grow begins the periods that the clock has reached.
func (l *Life) grow() {
	if l.last() == nil && l.Clock.Now >= l.Account.StartsAt {
		l.begin(l.Account.StartsAt, l.Clock.passed(l.Account.StartsAt), true)
	}
	for {
		p := l.last()
		if p == nil || p.End > l.Clock.Now {
			return
		}
		l.begin(p.End, l.Clock.passed(p.End), false)
		if l.last() == p {
			return // billing has ended
		}
	}
}

// redraw draws all periods again, as none is closed yet.
func (l *Life) redraw() {
	l.periods = nil
	l.grow()
}

// A cut is a boundary that a change made. What was written before counts in the period that
// begins there.
type cut struct {
	at    int64
	order int
}

// cut ends the open period now, if a period that begins now is on other terms than it. At the
// period's start those replace them.
func (l *Life) cut() {
	p := l.open()
	if p == nil {
		return
	}
	born, at := l.World.order+1, l.present()
	then := &Period{Start: at, life: l, born: born, chain: l.chain}
	if l.price(then); then.sameTerms(p) {
		return
	}
	l.cuts = append(l.cuts, cut{at, born})
	if p.Start == at {
		p.born = born
		l.price(p)
		l.commence(p)
		return
	}
	if l.bound(p); at == l.Clock.Now {
		l.begin(at, born, false)
	}
}

func (p *Period) sameTerms(other *Period) bool {
	same := p.Version == other.Version && p.terms.Zone == other.terms.Zone && p.terms.Anchor == other.terms.Anchor && len(p.own) == len(other.own)
	if base := other.based(); base != p.Version { // a newer version has another base, which waits
		same = same && base.BasePriceMinor == p.Version.BasePriceMinor && max(1, base.BaseEvery) == max(1, p.Version.BaseEvery) && base.BaseIn == p.Version.BaseIn
	}
	for meter, price := range p.own {
		same = same && other.own[meter] == price
	}
	return same
}

// Archive ends the last period now.
func (l *Life) Archive() {
	p := l.open()
	l.archived, l.scheduled = true, nil
	switch {
	case p == nil && len(l.periods) > 0:
	case p == nil, p.Start == l.present(): // none will have begun
		l.periods = l.periods[:max(0, len(l.periods)-1)]
		if now := l.Clock.Now; len(l.periods) == 0 {
			l.Account.EndsAt = &now
		}
		l.came()
	default:
		l.cuts = append(l.cuts, cut{l.present(), l.World.order})
		l.bound(p)
	}
}

// PutAccount replaces the account.
func (l *Life) PutAccount(a Account) {
	before := l.Account
	l.Account = a
	defer l.moveScheduled()
	l.World.next()
	if a.StartsAt != before.StartsAt {
		l.startsPut = l.Clock.Now
		l.redraw()
		return
	}
	if !l.anyClosed() && !sameInstant(a.TrialEndsAt, before.TrialEndsAt) {
		l.redraw()
		return
	}
	p := l.last()
	switch {
	case p == nil:
	case p.End > l.Clock.Now:
		l.bound(p)
	case before.EndsAt != nil && *before.EndsAt <= l.Clock.Now && (a.EndsAt == nil || *a.EndsAt > l.Clock.Now):
		l.chain++
		l.begin(l.present(), l.World.order+1, true)
	}
}

func (l *Life) anyClosed() bool {
	for _, p := range l.periods {
		if p.closed {
			return true
		}
	}
	return false
}

func sameInstant(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
