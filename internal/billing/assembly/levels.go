package assembly

import (
	"errors"
	"strings"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// LevelBy returns the kind of level by which the period bills a meter, see plans.Price.LevelBy. The result is
// "" for a flow meter and for a meter without a price.
func (t *Terms) LevelBy(meter string) string {
	price, err := t.price(meter)
	if price == nil || err != nil {
		return ""
	}
	return price.LevelBy()
}

// HeldLine returns the usage line of a level meter for the levels held in the period, see UsageLine.
func (t *Terms) HeldLine(meter plans.Meter, held rating.Held) (line billing.Line, ok bool, err error) {
	price, err := t.price(meter.Key)
	if price == nil || err != nil {
		return billing.Line{}, false, err
	}
	return t.LevelLine(meter, price.Level(held, t.Period.End-t.Period.Start))
}

// LevelLine returns the usage line of a level meter for a level, see UsageLine.
func (t *Terms) LevelLine(meter plans.Meter, level rating.Level) (line billing.Line, ok bool, err error) {
	price, err := t.price(meter.Key)
	if price == nil || err != nil {
		return billing.Line{}, false, err
	}
	rated, err := price.RateLevel(level, t.own())
	if err != nil && !errors.Is(err, rating.ErrTooLarge) {
		return billing.Line{}, false, err
	}
	line = t.line(billing.LineUsage, named(meter)+": "+heldText(price.LevelBy(), level, meter.Unit), t.Period.Start, t.Period.End)
	line.Meter, line.Quantity, line.Included, line.Part = meter.Key, level.Quantity(), rated.Included, partOf(t.own())
	line.Level = billing.LineLevel{By: price.LevelBy(), Exact: level.String()}
	if t.Period.Trial {
		line.Description += ", trial"
		return line, true, nil
	}
	rate(&line, price, &rated)
	return line, true, err
}

// heldText formats a level for people: "3.5 × seat on the average".
func heldText(by string, level rating.Level, unit string) string {
	return strings.Replace(counted(0, unit), "0", level.Text(), 1) + map[string]string{
		plans.ByAverage: " on the average", plans.ByPeak: " at most", plans.ByLast: " at the end",
	}[by]
}
