package model

// What a decision says of the charge that it made, and when it is given again.

// Charged are the limits of one counter that were charged.
type Charged struct {
	Attribute string
	Limits    []int64 // identities
}

// ChargedBy are the identities of the limits that a decision charged, by counter.
func (d *Decision) ChargedBy() []Charged {
	t, all := d.Target, make([]Charged, len(d.Target.Counters))
	for i := range t.Counters {
		m := t.moment(d.At)
		all[i] = Charged{t.Counters[i].Key.Attribute, identities(t.Counters[i].Limits, d.spared>>t.firstLimit(i), m)}
	}
	return all
}

// Views are what a decision says of all limits.
func (d *Decision) Views() []View {
	views := make([]View, d.NumViews())
	for i := range views {
		views[i] = d.View(i)
	}
	return views
}

// Charged is an admitted decision as it stands on what its charge left.
func (d Decision) Charged(rows []Row) Decision {
	after := Judge(d.Target, rows, d.At, d.Cost)
	after.Allowed, after.charged, after.spared, after.Ahead = true, true, d.spared, d.Ahead
	return after
}

// ChargeTo charges an admitted decision's cost to the rows that it was judged on. Charged then
// makes the answer of those rows.
func (d *Decision) ChargeTo(rows []Row) { d.spared = d.Target.Charge(rows, d.Cost, d.At, nil) }

// Committed is a decision of no cost as the answer to the commit of so many units.
func (d Decision) Committed(cost int64) Decision {
	d.Cost, d.charged = cost, true
	return d
}

// Replayed is the answer again that an operation had at an instant, admitted with a cost.
func Replayed(t *Target, at, cost int64, answer []View) Decision {
	return Decision{Target: t, Allowed: true, Cost: cost, At: at, Replayed: true, answer: answer}
}
