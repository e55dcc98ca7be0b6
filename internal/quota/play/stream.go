package play

import (
	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

// Stream is a meter of a customer that nobody has used yet. Instants are µs since the Unix epoch.
type Stream struct {
	target *model.Target
	rows   []model.Row // one a counter, as after the last charge
}

// NewStream returns a stream through limits of one meter. Limits of concurrency judge reservations only,
// and are left out. A limit per an attribute counts as one of hits that do not have the attribute.
func NewStream(limits []*model.Limit, periods calendar.Periods) *Stream {
	target := model.NewTarget(1, 1, 1, limits, periods, nil).For(nil)
	return &Stream{target, make([]model.Row, len(target.Counters))}
}

// Admit charges as many of the units that come at an instant, one after the other, as all hard limits
// have room for. refused is what each limit alone would have refused, in their order; nil: all units came in.
// A counter's time never runs backwards: an earlier instant is that of the last charge.
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
