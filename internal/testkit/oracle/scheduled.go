package oracle

// A Scheduled is another plan that counts from an instant on.
type Scheduled struct {
	Plan string
	Pin  int // 0: none
	At   int64

	base   bool // it waits for the end of the base, not of the period
	joined int
}

// Schedule lets a plan count from the end of the running period on, or of the intervals of its base.
// It reports false, and does nothing, where that is refused.
func (l *Life) Schedule(plan string, pin int, when string) bool {
	p := l.open()
	if p == nil || l.archived {
		return false
	}
	s := &Scheduled{Plan: plan, Pin: pin, joined: l.World.Newest(plan).N, base: when == "base_end" || when == "" && l.awaited().long != nil}
	at := l.endFor(s)
	if ends := l.Account.EndsAt; ends != nil && *ends <= at || at-l.Clock.Now < 2*second {
		return false
	}
	s.At = at
	l.scheduled = s
	l.World.next()
	return true
}

// DropScheduled takes it away, and reports whether there was one.
func (l *Life) DropScheduled() bool {
	was := l.scheduled != nil
	l.scheduled = nil
	return was
}

// Waits is the change that waits; nil: none. The version is the one that would count now.
func (l *Life) Waits() (s *Scheduled, version int) {
	if s = l.scheduled; s == nil {
		return nil, 0
	}
	return s, l.inForce(Terms{Plan: s.Plan, Pin: s.Pin, joined: s.joined})
}

// Plan is the plan and version by which hits are judged now.
func (l *Life) Plan() (string, *Version) {
	t := l.Terms()
	return t.Plan, l.World.plans[t.Plan][l.inForce(t)-1]
}

func (l *Life) inForce(t Terms) int {
	if t.Pin > 0 {
		return t.Pin
	}
	return max(t.joined, l.World.forAll(t.Plan, l.World.order+1))
}

// endFor is where a change counts, as things are.
func (l *Life) endFor(s *Scheduled) int64 {
	p := l.awaited()
	if !s.base || p.long == nil {
		return p.End
	}
	if p != l.open() {
		return p.long.E
	}
	if next := l.following(p); next.long != p.long {
		return p.End
	}
	return p.long.E
}

// awaited is the period whose end is waited for: the open one, or the one after a cut that lies just after
// what was used now.
func (l *Life) awaited() *Period {
	p := l.open()
	if l.cutAt(p.End) {
		return l.following(p)
	}
	return p
}

// following is the period after another one, without the change that waits.
func (l *Life) following(p *Period) *Period {
	was := l.scheduled
	l.scheduled = nil
	next := &Period{Start: p.End, life: l, born: l.World.order + 1, chain: p.chain}
	l.price(next)
	l.scheduled = was
	return next
}

// moveScheduled moves the change along after a write, or drops it.
func (l *Life) moveScheduled() {
	s := l.scheduled
	if s == nil {
		return
	}
	if l.open() == nil {
		l.scheduled = nil
		return
	}
	s.At = l.endFor(s)
	if ends := l.Account.EndsAt; ends != nil && *ends <= s.At {
		l.scheduled = nil
	}
}

// arrive lets the change count once a period begins at its instant.
func (l *Life) arrive(start int64) {
	s := l.scheduled
	if s == nil || start < s.At {
		return
	}
	l.terms = append(l.terms, s.over(l.Terms()))
	l.scheduled = nil
	l.Arrived++
}

// over is what the customer is on once the change counts.
func (s *Scheduled) over(t Terms) Terms {
	t.Plan, t.Pin, t.joined, t.from = s.Plan, s.Pin, s.joined, s.At
	return t
}
