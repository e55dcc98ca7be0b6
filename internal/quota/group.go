package quota

// hitGroup is hits on the same counters, in order of arrival.
type hitGroup struct {
	target *Target
	hits   []*hit
	series // what became of them
}

// own is the key of the customer's own counter.
func (g *hitGroup) own() CounterKey { return g.target.Counters[0].Key }

// decide decides the group's hits at an instant, on rows that are as series has them. It sets the
// hits' results: who calls it rings when the charge is durable.
func (g *hitGroup) decide(rows []row, instant int64, buf []int64) {
	g.costs = g.costs[:0]
	for _, h := range g.hits {
		g.costs = append(g.costs, h.cost)
	}
	g.series.decide(g.target, rows, instant, buf, func(i int, d Decision) { g.hits[i].result = Result{Decision: d} })
}

// finish ends all hits: with an error, or with what decide said.
func (g *hitGroup) finish(err error) {
	for _, h := range g.hits {
		if err != nil {
			h.result = Result{Err: err}
		}
		h.ring()
	}
}
