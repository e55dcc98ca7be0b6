package lane

import (
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// Group is hits that a lane decides together.
type Group struct {
	queue.Group
	now int64 // the instant to judge at, by the customer's clock, µs; a row's later instant wins

	known model.Known // the row as this node last saw it; only where knows is true
	knows bool
	read  bool        // the row was read in this batch
	stale error       // why the target is not what the hits are judged by
	after model.Known // the row as the charge leaves it
	done  bool        // the database has written after
	space []int64     // memory for the state of after
}

// gathering makes groups of hits. What it makes is used again for the next batch.
type gathering struct {
	groups []*Group
	spare  []*Group // all that were ever made
	byKey  map[model.GroupKey]*Group
}

// mostSpare is how many hits a group may have room for that is used again, but the first.
const mostSpare = 64

// group is a new one.
func (a *gathering) group(t *model.Target, now int64) *Group {
	n := len(a.groups)
	if n == len(a.spare) {
		a.spare = append(a.spare, new(Group))
	}
	g := a.spare[n]
	if n > 0 && cap(g.Hits) > mostSpare { // one customer's hits may be all of a batch, but not of each place's
		g.Hits, g.Series = nil, model.Series{}
	}
	g.Target, g.now = t, now
	a.groups = append(a.groups, g)
	return g
}

// renew makes a group a new one in the memory that it has.
func (g *Group) renew() {
	*g = Group{Group: queue.Group{Hits: g.Hits[:0], Series: g.Empty()}, known: g.known.Empty(), space: g.space[:0]}
}

// drop lets go of the last batch's hits. Otherwise a group that the next batch does not need
// would keep its hits in memory, and all hits that one caller sent together with them.
func (a *gathering) drop() {
	for _, g := range a.groups {
		clear(g.Hits)
		g.renew()
	}
	a.groups = a.groups[:0]
}

// gather makes groups of hits, in order of arrival. A group is judged at now, or at the instant
// that its customer's test clock shows. The groups are valid until the next gather.
func (a *gathering) gather(hits []*queue.Hit, now int64) []*Group {
	if a.byKey == nil {
		a.byKey = make(map[model.GroupKey]*Group, len(hits))
	}
	clear(a.byKey)
	a.drop()
	for _, h := range hits {
		key := h.Target.Group()
		g := a.byKey[key]
		if g == nil {
			g = a.group(h.Target, h.Target.Instant(now))
			a.byKey[key] = g
		}
		g.Hits = append(g.Hits, h)
	}
	return a.groups
}
