package oracle

// A Standing is what the quota endpoint says of a priced meter in the running period.
type Standing struct {
	Start, End      int64
	Used            int64
	Included        int64
	Overage         int64
	Minor           int64
	Version         int
	Priced, Running bool
}

// Standing is how a meter stands now.
func (l *Life) Standing(meter string) (s Standing) {
	p := l.open()
	if p == nil {
		return s
	}
	s = Standing{Start: p.Start, End: p.End, Used: l.count(p, meter), Version: p.Version.N, Running: true}
	if l.World.isLevel(meter) {
		s.Used = l.Level(meter, l.Clock.Now)
	}
	if p.priceOf(meter) == nil {
		return s
	}
	line := p.usage(meter, s.Used)
	s.Priced, s.Included, s.Minor = true, line.Included, line.Minor
	s.Overage = max(0, line.Quantity-s.Included)
	return s
}

// Running are the bounds of the running period; ok is false where none runs.
func (l *Life) Running() (start, end int64, ok bool) {
	p := l.open()
	if p == nil {
		return 0, 0, false
	}
	return p.Start, p.End, true
}

// Upcoming is the invoice of the running period as if it ended at its end, with the usage so far
// and the credits as they stand; nil where none runs.
func (l *Life) Upcoming() *Shown {
	p := l.open()
	if p == nil {
		return nil
	}
	i := &Invoice{Kind: "period", Status: "draft", Start: p.Start, End: p.End, life: l, period: p, charges: l.charges, corrections: l.pending(), unused: l.unused}
	next := &Period{Start: p.End, life: l, born: l.World.order + 1, chain: p.chain}
	if l.price(next); l.Account.EndsAt == nil || *l.Account.EndsAt > p.End {
		if next.long != nil && next.long.begun == nil { // it is not to begin yet
			long := *next.long
			next.long = &long
			l.commence(next)
		}
		i.holds = next.ahead()
		if i.onward = p.onward(next); i.onward {
			i.longer = l.longer(p)
		}
	}
	i.Paper = paper(i.lines(), l.Account)
	stands := []int64{}
	for _, c := range l.credits {
		stands = append(stands, c.Left)
	}
	l.apply(i, l.Clock.Now)
	for n, c := range l.credits {
		c.Left = stands[n]
	}
	shown := i.Show()
	shown.Status, shown.CreditsMinor, shown.AmountDueMinor = "upcoming", i.Paper.Credits, i.Paper.Due
	return &shown
}

// Preview is the line that an adjustment would make: the usage line while its invoice may change,
// else the correction. It is nil where it would make none.
func (l *Life) Preview(meter string, cost, at int64) *ShownLine {
	for _, p := range l.periods {
		if !p.holds(l.hourAt(at)) || p.priceOf(meter) == nil || p.writtenOff {
			continue
		}
		count := l.count(p, meter) + cost
		if !p.closed || p.invoice != nil && p.invoice.Status == "draft" {
			line := show(p.usage(meter, count))
			return &line
		}
		if p.invoice != nil {
			line := show(l.correction(p, meter, count).line())
			return &line
		}
	}
	return nil
}

// ToEdge is how many units a meter lacks of the next quantity at which its price turns: the end
// of the included units, of a tier or of a package; 0 where there is none.
func (l *Life) ToEdge(meter string) int64 {
	p := l.open()
	if p == nil || p.priceOf(meter) == nil {
		return 0
	}
	price, used := p.priceOf(meter), l.count(p, meter)
	included := p.share.Units(price.Included)
	edges := []int64{included}
	for _, t := range price.Tiers {
		if t.UpTo != nil {
			edges = append(edges, included+*t.UpTo)
		}
	}
	if size := price.PackageSize; size != nil && used >= included {
		edges = append(edges, used+*size-(used-included)%*size)
	}
	for _, edge := range edges {
		if edge > used {
			return edge - used
		}
	}
	return 0
}
