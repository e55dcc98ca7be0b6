package model

// This file describes the charge of a decision, and replays a stored decision.

// Charged contains the limits of one counter that were charged.
type Charged struct {
	Attribute string
	Limits    []int64 // identities
}

// ChargedBy returns the identities of the limits that a decision charged, by counter.
func (d *Decision) ChargedBy() []Charged {
	t, all := d.Target, make([]Charged, len(d.Target.Counters))
	for i := range t.Counters {
		m := t.moment(d.At)
		all[i] = Charged{t.Counters[i].Key.Attribute, identities(t.Counters[i].Limits, d.spared>>t.firstLimit(i), m)}
	}
	return all
}

// Views returns the decision's views of all limits.
func (d *Decision) Views() []View {
	views := make([]View, d.NumViews())
	for i := range views {
		views[i] = d.View(i)
	}
	return views
}

// Charged returns the admitted decision with the state of the rows after its charge.
func (d Decision) Charged(rows []Row) Decision {
	after := Judge(d.Target, rows, d.At, d.Cost)
	after.Allowed, after.charged, after.spared, after.Ahead = true, true, d.spared, d.Ahead
	return after
}

// ChargeTo charges an admitted decision's cost to the rows on which it was judged. Charged then computes the
// response from those rows.
func (d *Decision) ChargeTo(rows []Row) { d.spared = d.Target.Charge(rows, d.Cost, d.At, nil) }

// Committed returns a decision of cost 0 as the response to a commit of the given units.
func (d Decision) Committed(cost int64) Decision {
	d.Cost, d.charged = cost, true
	return d
}

// Replayed returns the stored response of an operation that was admitted with a cost at an instant.
func Replayed(t *Target, at, cost int64, answer []View) Decision {
	return Decision{Target: t, Allowed: true, Cost: cost, At: at, Replayed: true, answer: answer}
}
