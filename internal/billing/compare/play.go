package compare

import (
	"quotad/internal/calendar"
	"quotad/internal/quota/model"
	"quotad/internal/quota/play"
)

// Hour is the usage of a customer's meter in an hour. Denied is the number of refused units, including retries.
type Hour struct{ Start, Admitted, Denied int64 }

// Asked returns the units that hits requested in the hour.
func (h *Hour) Asked() int64 { return model.AddUpTo(max(0, h.Admitted), max(0, h.Denied)) }

// steps is the number of parts into which the units of an hour are divided, if a limit needs that.
const steps = 4

// variant is a simulation of a meter's hours, with hits either at the best or at the worst times.
type variant struct {
	limits  []*limit
	stream  *play.Stream // through the simulated limits; nil if there are none
	places  []int        // the indexes in limits of the stream's limits
	steps   int64
	worst   bool
	refused []int64 // the refused units of each limit
}

// limit is a limit with the method of its simulation for a customer.
type limit struct {
	*model.Limit
	how How
}

func newVariant(limits []*limit, periods calendar.Periods, worst bool) *variant {
	c := &variant{limits: limits, steps: 1, worst: worst, refused: make([]int64, len(limits))}
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
		c.stream = play.NewStream(played, periods)
	}
	return c
}

// hour simulates hours[i], and returns the admitted units. Refusals are counted only if counts is true.
func (c *variant) hour(hours []Hour, i int, counts bool) (admitted int64) {
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
	if c.stream == nil {
		return fits
	}
	for step := range c.steps {
		units := fits/c.steps + (step+1)*(fits%c.steps)/c.steps - step*(fits%c.steps)/c.steps
		came, refused := c.stream.Admit(h.Start+step*(hour/c.steps), units)
		admitted += came
		for i := range refused {
			if counts {
				c.refused[c.places[i]] = model.AddUpTo(c.refused[c.places[i]], refused[i])
			}
		}
	}
	return admitted
}
