package quota

// group is hits that a lane decides together.
type group struct {
	hitGroup
	now int64 // the instant to judge at, or later, by the customer's clock, µs

	known knownRow // the row as it was last seen, if knows
	knows bool
	read  bool     // the row was read in this batch
	after knownRow // what the swap leaves
	done  bool     // the database did it
	space []int64  // memory for the state of after
}

// gathering makes groups of hits. What it makes is used again for the next batch.
type gathering struct {
	groups []*group
	spare  []*group // all that were ever made
	byKey  map[groupKey]*group
}

// mostSpare is how many hits a group may have room for that is used again, but the first.
const mostSpare = 64

// group is a new one.
func (a *gathering) group(t *Target, now int64) *group {
	n := len(a.groups)
	if n == len(a.spare) {
		a.spare = append(a.spare, new(group))
	}
	g := a.spare[n]
	if n > 0 && cap(g.hits) > mostSpare { // one customer's hits may be all of a batch, but not of each place's
		g.hits, g.series = nil, series{}
	}
	g.target, g.now = t, now
	a.groups = append(a.groups, g)
	return g
}

// renew makes a group a new one in the memory that it has.
func (g *group) renew() {
	*g = group{hitGroup: hitGroup{hits: g.hits[:0], series: g.series.empty()}, known: g.known.empty(), space: g.space[:0]}
}

// drop lets go of the hits of the last batch: a place that is not needed again would keep one
// alive, and with it all that was sent together with it.
func (a *gathering) drop() {
	for _, g := range a.groups {
		clear(g.hits)
		g.renew()
	}
	a.groups = a.groups[:0]
}

// gather makes groups of hits, in order of arrival, to be judged at now, or at what their
// customers' test clocks show. They are valid until it is called again.
func (a *gathering) gather(hits []*hit, now int64) []*group {
	if a.byKey == nil {
		a.byKey = make(map[groupKey]*group, len(hits))
	}
	clear(a.byKey)
	a.drop()
	for _, h := range hits {
		key := h.target.groupKey()
		g := a.byKey[key]
		if g == nil {
			g = a.group(h.target, h.target.Instant(now))
			a.byKey[key] = g
		}
		g.hits = append(g.hits, h)
	}
	return a.groups
}
