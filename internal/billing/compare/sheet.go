package compare

import (
	"slices"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Sheet is a comparison of a draft with what is in force, over any number of customers. Make it
// with New, and Add the customers one after the other.
type Sheet struct {
	From, To  int64 // what is compared, µs
	Customers int   // that were added
	Asked     int64 // units that hits asked for
	Recorded  int64 // of these, units that were refused then, retries and all
	InForce   Side
	Draft     Side
	Limits    []Row // those of the draft in its order, then those that only a plan in force has

	draft *Plan
}

// Side is what a plan would have done.
type Side struct {
	Refused   Range // units
	Billed    Range // minor units
	Customers Range // that had a refusal
	TooLarge  bool  // a customer's amount is too large to be billed, and Billed lacks it
}

// Row compares one limit.
type Row struct {
	Meter, Name    string
	InForce, Draft *Cell // nil: the plan does not have it
}

// Cell is how one limit fared.
type Cell struct {
	How       How
	Refused   Range // units
	Customers Range // that it refused any
}

// New begins a comparison of [from, to), µs.
func New(draft *Plan, from, to int64) *Sheet {
	s := &Sheet{From: from, To: to, draft: draft}
	for i := range draft.plan.Limits {
		s.Limits = append(s.Limits, Row{Meter: draft.plan.Limits[i].Meter, Name: draft.plan.Limits[i].Name})
	}
	return s
}

// Warmup is how long before the span, in µs, hours have to be given for windows that reach into
// it. It is at most 31 days: what a longer window held before is left out on both sides.
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

// reach is how long a charge may count in a limit that is played, µs.
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

// Add plays a customer's usage on both plans. usage has each meter that either of them names.
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

// add adds a customer's outcome to a cell. Customers may be on versions of a plan that differ in
// how a limit can be played: the less exact way counts.
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

// anyOf counts one for what may be above 0.
func anyOf(r Range) Range { return Range{min(r.Least, 1), min(r.Most, 1)} }
