package compare

import (
	"slices"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Sheet is the comparison of a draft with the plans in force, for any number of customers. Create a Sheet with
// New, and call Add for each customer.
type Sheet struct {
	From, To  int64 // the compared span, µs
	Customers int   // the number of added customers
	Asked     int64 // the units that hits requested
	Recorded  int64 // the units of Asked that were refused at the time, including retries
	InForce   Side
	Draft     Side
	Limits    []Row // first the draft's limits in its order, then limits that only plans in force have

	draft *Plan
}

// Side is the total result of a plan.
type Side struct {
	Refused   Range // units
	Billed    Range // minor units
	Customers Range // the number of customers with refused units
	TooLarge  bool  // whether a customer's amount is too large to be billed, and missing in Billed
}

// Row compares the results of one limit.
type Row struct {
	Meter, Name    string
	InForce, Draft *Cell // nil if the plan does not have the limit
}

// Cell is the result of one limit under a plan.
type Cell struct {
	How       How
	Refused   Range // units
	Customers Range // the number of customers with units that the limit refused
}

// New returns an empty comparison of [from, to), µs.
func New(draft *Plan, from, to int64) *Sheet {
	s := &Sheet{From: from, To: to, draft: draft}
	for i := range draft.plan.Limits {
		s.Limits = append(s.Limits, Row{Meter: draft.plan.Limits[i].Meter, Name: draft.plan.Limits[i].Name})
	}
	return s
}

// Warmup returns the time before the span, in µs, whose hours Add needs for windows that overlap the start of
// the span. It is at most 31 days, so the earlier content of longer windows is left out on both sides.
func Warmup(all ...*plans.Plan) (longest int64) {
	for _, p := range all {
		for i := range p.Limits {
			if l, bad := model.Compile(p.Limits[i].Spec); len(bad) == 0 {
				longest = max(longest, reach(l))
			}
		}
	}
	return min(longest, 31*day)
}

const day = int64(86400e6)

// reach returns the time, µs, for which a charge may count in a simulated limit.
func reach(l *model.Limit) int64 {
	switch {
	case l.Mode != model.Hard || l.Per != "" || l.Window%hour != 0:
		return 0
	case l.WindowText == "calendar_day":
		return 2 * day
	case l.WindowText == "calendar_week":
		return 8 * day
	case l.Calendar:
		return 31 * day
	case l.Window == 0:
		return 0
	}
	return countsFor(l, 1)
}

// Add simulates a customer's usage under both plans. usage contains every meter that one of the plans names.
func (s *Sheet) Add(c *Customer, usage []Used) {
	s.Customers++
	for _, u := range usage {
		for _, h := range u.Hours {
			if h.Start >= s.From && h.Start < s.To {
				s.Asked, s.Recorded = model.AddUpTo(s.Asked, h.Asked()), model.AddUpTo(s.Recorded, max(0, h.Denied))
			}
		}
	}
	force := &side{plan: c.InForce, customer: c, from: s.From, to: s.To}
	for _, o := range force.play(usage) {
		s.row(o).InForce = add(s.row(o).InForce, o)
	}
	s.InForce.add(force)
	other := *c
	other.Periods.Interval = s.draft.plan.BillingInterval()
	draft := &side{plan: s.draft, customer: &other, from: s.From, to: s.To}
	for _, o := range draft.play(usage) {
		s.row(o).Draft = add(s.row(o).Draft, o)
	}
	s.Draft.add(draft)
}

func (s *Sheet) row(o outcome) *Row {
	i := slices.IndexFunc(s.Limits, func(r Row) bool { return r.Meter == o.meter && r.Name == o.limit })
	if i < 0 {
		s.Limits, i = append(s.Limits, Row{Meter: o.meter, Name: o.limit}), len(s.Limits)
	}
	return &s.Limits[i]
}

// add adds a customer's outcome to a cell. Customers may be on versions of a plan with different methods for a
// limit, so the cell shows the least exact method.
func add(c *Cell, o outcome) *Cell {
	if c == nil {
		c = &Cell{How: o.how}
	}
	if rank(o.how) > rank(c.How) {
		c.How = o.how
	}
	c.Refused.sum(o.refused)
	c.Customers.sum(anyOf(o.refused))
	return c
}

func rank(h How) int { return slices.Index([]How{Admits, ByHour, Spread, Bounds, Unknown}, h) }

func (s *Side) add(of *side) {
	s.Refused.sum(of.refused)
	s.Customers.sum(anyOf(of.refused))
	if of.unbilled {
		s.TooLarge = true
		return
	}
	s.Billed.sum(of.billed)
}

func (r *Range) sum(other Range) {
	r.Least, r.Most = model.AddUpTo(r.Least, other.Least), model.AddUpTo(r.Most, other.Most)
}

// anyOf returns 1 for each bound above 0, and 0 for each other bound.
func anyOf(r Range) Range { return Range{min(r.Least, 1), min(r.Most, 1)} }
