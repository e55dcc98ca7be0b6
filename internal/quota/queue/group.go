package queue

import "quotad/internal/quota/model"

// Group is hits on the same counters, in order of arrival.
type Group struct {
	Target       *model.Target
	Hits         []*Hit
	model.Series // what became of them
}

// Own is the key of the customer's own counter.
func (g *Group) Own() model.CounterKey { return g.Target.Counters[0].Key }

// Decide decides the group's hits at an instant, on rows as Series.Decide takes them. It sets the
// hits' results, and tells no caller: the lane or ledger calls Finish when the charge is durable.
func (g *Group) Decide(rows []model.Row, instant int64, buf []int64) {
	g.Costs = g.Costs[:0]
	for _, h := range g.Hits {
		g.Costs = append(g.Costs, h.Cost)
	}
	g.Series.Decide(g.Target, rows, instant, buf, func(i int, d model.Decision) { g.Hits[i].Result = Result{Decision: d} })
}

// Finish ends all hits: with an error, or with what decide said.
func (g *Group) Finish(err error) {
	for _, h := range g.Hits {
		if err != nil {
			h.Result = Result{Err: err}
		}
		h.Ring()
	}
}
