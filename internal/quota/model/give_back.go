package model

import "slices"

// GiveBack subtracts a cost from the row of a target's counter, which is identified by its attribute. The cost was
// charged at an instant, or Present, to the limits whose identities are in charged.
func (t *Target) GiveBack(attribute string, r *Row, charged []int64, at, cost int64) {
	over := []Hold{{At: at, Cost: cost, Limits: charged}}
	r.State = giveBackState(t.limitsOf(attribute), r.State, r.At, over, r.Holds, t.moment(r.At))
	r.Departed = lowerDeparted(r.Departed, over, r.Holds)
}

// giveBackState returns the state of instant since without the costs in over. Units of the remaining holds in
// beside stay charged. For each element of over, giveBackState uses the instant of the charge, the cost, and the
// identities of the charged limits at that instant. An element at Present must be the only one.
//
// The state's instant need not be moved. A bucket reaches the same state whether the costs are returned at since
// or later. Among the buckets of limits that the plan no longer has, giveBackState lowers only buckets whose units
// are not replenished by time.
func giveBackState(limits []*Limit, state []int64, since int64, over []Hold, beside *Holds, m moment) (next []int64) {
	m.at, m.holds = since, beside
	for i := 0; i+BucketLen <= len(state); {
		end, id := chunkEnd(state, i), state[i]
		m.log = state[i+BucketLen : end]
		charged := chargedTo{id: id}
		switch l := limitByID(limits, id, m); {
		case id == capID: // MoveCap changes the bucket when units are booked
			next = append(next, state[i:end]...)
		case !slices.ContainsFunc(over, func(h Hold) bool { return charged.by(&h) }):
			next = append(next, state[i:end]...)
		case l == nil:
			next = append(next, lower(state[i:end], over, beside)...)
		case l.kept == inLog:
			next = l.logWithout(next, over, beside, m)
		default:
			b := l.without(bucket{state[i+1], state[i+2]}, over, m)
			next = l.append(next, b, m)
		}
		i = end
	}
	return next
}

// without returns a bucket as of m.at without costs that were charged to it. Units of the holds in m stay charged.
// A token bucket does not know which hit used the tokens that time replenished, and its tokens in use never exceed
// the tokens that it has issued.
func (l *Limit) without(b bucket, over []Hold, m moment) bucket {
	after, charged := b, chargedTo{id: l.BucketID(m)}
	for i := range over {
		if charged.by(&over[i]) {
			after = l.rules.giveBack(l, after, over[i].At, over[i].Cost, m)
		}
	}
	if m.holds == nil || l.refills {
		return after
	}
	inNow, inLast := l.held(b, m)
	now, last := inNow.units(m.holds.Len()), inLast.units(m.holds.Len())
	if l.twoWindows {
		if cost := over[0].Cost; over[0].At == Present { // the newest units first, except for units that are held
			less := min(cost, max(0, b.level-now))
			return bucket{b.level - less, b.aux - min(cost-less, max(0, b.aux-last))}
		}
		after.aux = max(after.aux, min(b.aux, last))
	}
	after.level = max(after.level, min(b.level, now))
	return after
}

func limitByID(limits []*Limit, id int64, m moment) *Limit {
	for _, l := range limits {
		if l.BucketID(m) == id {
			return l
		}
	}
	return nil
}

// identities returns the identities of limits at a moment. It leaves out spared shadow limits and a cap, because
// refunds change a cap when they are booked.
func identities(limits []*Limit, spared uint32, m moment) (ids []int64) {
	for i, l := range limits {
		if spared&(1<<i) == 0 && !l.IsCap() {
			ids = append(ids, l.BucketID(m))
		}
	}
	return ids
}
