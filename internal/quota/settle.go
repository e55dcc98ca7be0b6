package quota

import (
	"fmt"
	"slices"
)

// settle hands out what a charging statement said of one group: run and instant, and the
// rows of its counters. It returns the hits to be judged again, in the order in which the
// next run takes them all: first those that fit one behind the other, then those that
// will not fit behind these. spared are the shadows that the run was not charged to.
func (g *group) settle(run, instant int64, spared uint32, rows []row) (again []*hit) {
	switch run {
	case runMissing, runHourOver, runWindowEnd:
		for _, h := range g.hits {
			h.tries++
			h.insert, h.book = run == runMissing, run == runHourOver
			h.notBefore = max(h.notBefore, instant)
		}
		return g.hits
	case runHeld:
		g.held = true
		return nil
	case runStale:
		var newest int64
		for _, r := range rows {
			newest = max(newest, r.change)
		}
		fail(g.hits, &StaleError{Change: newest})
		return nil
	}
	if run < 0 || int(run) > len(g.hits) {
		fail(g.hits, fmt.Errorf("%w: a run of %d for %d hits", ErrOutcomeUnknown, run, len(g.hits)))
		return nil
	}
	after := judge(g.target, rows, max(g.now, instant), 0)
	g.admit(int(run), spared, after)
	room := after.room()
	left := room
	var behind []*hit
	for i, h := range g.hits[run:] {
		h.insert, h.book = false, false
		if run == 0 && i == 0 && h.cost <= room {
			h.tries++ // the function refused what the model admits: a fault, not to be tried for ever
		}
		switch {
		case h.cost > room:
			d := after
			d.Cost, d.Allowed = h.cost, false
			h.finish(Result{Decision: d})
		case h.cost <= left:
			left -= h.cost
			again = append(again, h)
		default: // fits now, but not behind those: the next state will refuse it
			behind = append(behind, h)
		}
	}
	return append(again, behind...)
}

// admit hands out the run: each hit sees the buckets and versions as they were behind it.
func (g *group) admit(run int, spared uint32, after Decision) {
	if run == 0 {
		return
	}
	after.charged, after.spared = true, spared
	last := run - 1
	for i, h := range g.hits[:last] {
		d := after
		d.Cost = h.cost
		d.buckets, d.versions = slices.Clone(after.buckets), slices.Clone(after.versions) // nil, mostly
		d.charge(g.sums[i] - g.sums[last])
		d.version -= int64(last - i)
		for v := range d.versions {
			d.versions[v] -= int64(last - i)
		}
		h.finish(Result{Decision: d})
	}
	after.Cost = g.hits[last].cost
	g.hits[last].finish(Result{Decision: after})
}

// sparedAtFirst are the bits of the shadows that would refuse the group's first hit where
// nothing was charged yet, and so its run.
func (g *group) sparedAtFirst() (bits uint32) {
	d := judge(g.target, make([]row, len(g.target.Counters)), g.now, g.hits[0].cost)
	for i, b := range d.stands() {
		if l := g.target.limit(i); l.Mode == Shadow && d.Cost > l.rules.room(l, b, d.moment(i)) {
			bits |= 1 << i
		}
	}
	return bits
}
