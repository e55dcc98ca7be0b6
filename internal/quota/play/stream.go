package play

import (
	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

// Stream is a meter of a customer without earlier usage. Instants are µs since the Unix epoch.
type Stream struct {
	target *model.Target
	rows   []model.Row // one a counter, as after the last charge
}

// NewStream returns a stream through the limits of one meter. Concurrency limits apply to reservations only and
// are left out. A limit per attribute counts like the limit of hits without the attribute.
func NewStream(limits []*model.Limit, periods calendar.Periods) *Stream {
	target := model.NewTarget(1, 1, 1, limits, periods, nil).For(nil)
	return &Stream{target, make([]model.Row, len(target.Counters))}
}

// Admit charges the units of an instant one after the other, as many as all hard limits admit. refused contains
// the units that each limit alone would have refused, in the order of the limits, or is nil if all units were
// admitted. A counter's time never runs backwards, so an earlier instant counts as the instant of the last
// charge.
func (s *Stream) Admit(at, units int64) (admitted int64, refused []int64) {
	d := model.Judge(s.target, s.rows, at, 0)
	if admitted = min(units, d.Headroom()); admitted > 0 {
		s.target.Charge(s.rows, admitted, d.At, nil)
	}
	if admitted == units {
		return admitted, nil
	}
	for i := range d.NumViews() {
		refused = append(refused, units-min(units, d.View(i).Remaining))
	}
	return admitted, refused
}
