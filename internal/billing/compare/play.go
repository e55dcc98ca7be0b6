package compare

import (
	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

// Hour is an hour of a customer's meter. Denied has the units that were refused, retries and all.
type Hour struct{ Start, Admitted, Denied int64 }

// Asked is what hits asked for in the hour, units.
func (h *Hour) Asked() int64 { return model.AddUpTo(max(0, h.Admitted), max(0, h.Denied)) }

// steps is how many parts the units of an hour are played in, where limits need it.
const steps = 4

// course is one way in which the hours of a meter may have gone: at the best of times, or at the
// worst.
type course struct {
	limits  []*limit
	target  *model.Target // of those that are played; nil: none is
	places  []int         // of the target's limits, in limits
	rows    []model.Row
	steps   int64
	worst   bool
	refused []int64 // by each of limits, units
}

// limit is a limit, and how it is played for a customer.
type limit struct {
	*model.Limit
	how How
}

func newCourse(limits []*limit, periods calendar.Periods, worst bool) *course {
	c := &course{limits: limits, steps: 1, worst: worst, refused: make([]int64, len(limits))}
	var played []*model.Limit
	for i, l := range limits {
		if l.how == Spread {
			c.steps = steps
		}
		if l.how == Spread || l.how == ByHour {
			played, c.places = append(played, l.Limit), append(c.places, i)
		}
	}
	if len(played) > 0 {
		c.target = model.NewTarget(1, 1, 1, played, periods, nil)
		c.rows = make([]model.Row, len(c.target.Counters))
	}
	return c
}

// hour plays hours[i], and returns the units that are admitted. Refusals count only if counts.
func (c *course) hour(hours []Hour, i int, counts bool) (admitted int64) {
	h := &hours[i]
	asked := h.Asked()
	fits := asked
	for n, l := range c.limits {
		if l.how != Bounds {
			continue
		}
		most := mostIn(l.Limit, h.Start)
		if c.worst {
			most = leastOf(l.Limit, hours, i)
		}
		if counts {
			c.refused[n] = model.AddUpTo(c.refused[n], asked-min(asked, most))
		}
		fits = min(fits, most)
	}
	if c.target == nil {
		return fits
	}
	for step := range c.steps {
		units := fits/c.steps + (step+1)*(fits%c.steps)/c.steps - step*(fits%c.steps)/c.steps
		admitted += c.step(h.Start+step*(hour/c.steps), units, counts)
	}
	return admitted
}

// step plays units that come at one instant, one after the other.
func (c *course) step(at, units int64, counts bool) (admitted int64) {
	if units == 0 {
		return 0
	}
	d := model.Judge(c.target, c.rows, at, 0)
	admitted = min(units, d.Headroom())
	if admitted < units && counts {
		for i, place := range c.places {
			c.refused[place] = model.AddUpTo(c.refused[place], units-min(units, d.View(i).Remaining))
		}
	}
	if admitted > 0 {
		c.target.Charge(c.rows, admitted, max(at, d.At), nil)
	}
	return admitted
}
