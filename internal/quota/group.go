package quota

import "slices"

// group is hits on the same counters, in order of arrival. It decides them by the Go model:
// there is no other arithmetic.
type group struct {
	target *Target
	hits   []*hit
	now    int64 // the instant to judge at, or later, by the customer's clock, µs

	// What decide did.
	admitted int   // hits
	cost     int64 // of those
	refused  bool  // one hit at least
	sums     []int64

	// Of a swap.
	known knownRow // the row as it was last seen, if knows
	knows bool
	read  bool     // the row was read in this batch
	after knownRow // what the swap leaves
	done  bool     // the database did it
	space []int64  // memory for the state of after
}

// own is the key of the customer's own counter.
func (g *group) own() CounterKey { return g.target.Counters[0].Key }

// decide decides the group's hits at an instant, as if they came one after the other. The
// rows, one a counter of the target, are those in front; decide leaves those behind in
// their place. It sets the hits' results: who calls it rings when the charge is durable.
// The first row's new state may take the memory of buf.
func (g *group) decide(rows []row, instant int64, buf []int64) {
	g.admitted, g.cost, g.refused = 0, 0, false
	for rest := g.hits; len(rest) > 0; {
		n := g.admit(rest, rows, instant, buf)
		if n == 0 {
			n = g.refuse(rest, rows, instant)
		} else {
			buf = nil
		}
		rest = rest[n:]
	}
}

// admit charges the longest run of hits, from the first on, that the limits admit, and
// returns its length. Each hit sees the buckets and versions as they were behind it.
func (g *group) admit(hits []*hit, rows []row, instant int64, buf []int64) (run int) {
	g.sums = g.sums[:0]
	sum := int64(0)
	for _, h := range hits {
		sum += h.cost
		g.sums = append(g.sums, sum)
	}
	if run = g.target.longestRun(rows, g.sums, instant); run == 0 {
		return 0
	}
	last := run - 1
	spared := g.target.charge(rows, g.sums[last], instant, buf)
	for i := range rows {
		rows[i].version += int64(run)
	}
	g.admitted, g.cost = g.admitted+run, g.cost+g.sums[last]
	after := judge(g.target, rows, instant, 0)
	after.charged, after.spared = true, spared
	for i, h := range hits[:last] {
		d := after
		d.Cost = h.cost
		d.buckets, d.versions = slices.Clone(after.buckets), slices.Clone(after.versions) // nil, mostly
		d.charge(g.sums[i] - g.sums[last])
		d.version -= int64(last - i)
		for v := range d.versions {
			d.versions[v] -= int64(last - i)
		}
		h.result = Result{Decision: d}
	}
	after.Cost = hits[last].cost
	hits[last].result = Result{Decision: after}
	return run
}

// refuse refuses the hits, from the first on, that do not fit, and returns how many.
func (g *group) refuse(hits []*hit, rows []row, instant int64) (n int) {
	d := judge(g.target, rows, instant, 0)
	d.Allowed = false
	for room := d.room(); n < len(hits) && hits[n].cost > room; n++ {
		d.Cost = hits[n].cost
		hits[n].result = Result{Decision: d}
	}
	if n == 0 {
		panic("quota: the model charges no hit and refuses none")
	}
	g.refused = true
	return n
}

// finish ends all hits: with an error, or with what decide said.
func (g *group) finish(err error) {
	for _, h := range g.hits {
		if err != nil {
			h.result = Result{Err: err}
		}
		h.ring()
	}
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
		g.hits, g.sums = nil, nil
	}
	g.target, g.now = t, now
	a.groups = append(a.groups, g)
	return g
}

// renew makes a group a new one in the memory that it has.
func (g *group) renew() {
	*g = group{hits: g.hits[:0], sums: g.sums[:0], known: g.known.empty(), space: g.space[:0]}
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
