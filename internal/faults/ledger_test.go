package faults

import (
	"fmt"
	"sync"
)

// account is what limits of a customer's meter count: all of it, or that of one region.
type account struct {
	customer int
	meter    string
	region   string // only if one is meant
	one      bool
}

// units of an account: net is what was admitted, committed and not given back; held is
// what open reservations hold.
type units struct{ net, held int64 }

func (l *limit) used(u units) int64 {
	if l.algorithm == "concurrency" {
		return u.held
	}
	return u.net + u.held
}

// accounting adds up what clients were told.
type accounting struct {
	mu sync.Mutex
	// stands is what definitive answers say.
	stands map[account]units
	// floor is what must be there at least, at any time: charges count from their answer on,
	// what is given back from when it is asked for the first time.
	floor map[account]units
	// moved: time has passed, so that some limits have room again.
	moved bool
	// passed lists the limits that were found passed, each once.
	passed map[string]bool
}

func newAccounting() *accounting {
	return &accounting{stands: make(map[account]units), floor: make(map[account]units), passed: make(map[string]bool)}
}

// place is where a hit or reservation is charged.
type place struct {
	customer      int
	meter, region string
}

func (p place) accounts() [2]account {
	return [2]account{{customer: p.customer, meter: p.meter}, {p.customer, p.meter, p.region, true}}
}

// book adds units that a definitive answer tells of.
func (l *accounting) book(p place, u units) { l.add(l.stands, p, u) }

// expect adds to the floor, and holds it against the limits.
func (l *accounting) expect(p place, u units) { l.add(l.floor, p, u) }

// charged is both.
func (l *accounting) charged(p place, u units) {
	l.book(p, u)
	l.expect(p, u)
}

func (l *accounting) add(to map[account]units, p place, u units) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range p.accounts() {
		sum := to[a]
		sum.net += u.net
		sum.held += u.held
		to[a] = sum
	}
	for i := range limits {
		m := &limits[i]
		for _, a := range p.accounts() {
			if m.meter == p.meter && m.per == a.one && (!l.moved || m.outlasts()) && m.used(l.floor[a]) > m.of(p.customer) {
				l.passed[fmt.Sprintf("%s of %s (%s): at least %d units of %d", m.name, keyOf(p.customer), a.region, m.used(l.floor[a]), m.of(p.customer))] = true
			}
		}
	}
}

// should is what an account must have in the end.
func (l *accounting) should(a account) units {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stands[a]
}

// expire lets go of all that is held: time has passed, and nothing is under way.
func (l *accounting) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved = true
	for a, u := range l.stands {
		l.stands[a], l.floor[a] = units{net: u.net}, units{net: u.net}
	}
}
