package compare

import (
	"quotad/internal/calendar"
	"quotad/internal/quota/model"
	"quotad/internal/quota/play"
)

// Hour is an hour of a customer's meter. Denied has the units that were refused, retries and all.
type Hour struct{ Start, Admitted, Denied int64 }

// Asked is what hits asked for in the hour, units.
func (h *Hour) Asked() int64 { return model.AddUpTo(max(0, h.Admitted), max(0, h.Denied)) }

// steps is how many parts the units of an hour are played in, where limits need it.
const steps = 4

// variant is one way in which the hours of a meter may have gone: at the best of times, or at the
// worst.
type variant struct {
	limits  []*limit
	stream  *play.Stream // through those that are played; nil: none is
	places  []int        // of the stream's limits, in limits
	steps   int64
	worst   bool
	refused []int64 // by each of limits, units
}

// limit is a limit, and how it is played for a customer.
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

// hour plays hours[i], and returns the units that are admitted. Refusals count only if counts.
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
