package model

import "slices"

// GiveBack takes a cost off the row of a target's counter, named by its attribute. The cost was
// charged at an instant, or Present, to those of the limits whose identities are in charged.
func (t *Target) GiveBack(attribute string, r *Row, charged []int64, at, cost int64) {
	r.State = giveBackState(t.limitsOf(attribute), r.State, r.At, charged, at, cost, r.Holds, t.moment(r.At))
}

// giveBackState returns the state of instant since without a cost that was charged to some
// of its limits, named by their identities then, at the instant charged; what the holds
// beside it were charged stays. Going on from there a bucket comes to where it would be if
// it was given back later, so since need not be moved. The bucket of a limit that the plan
// has no more goes, as it would with the next hit.
func giveBackState(limits []*Limit, state []int64, since int64, charged []int64, at, cost int64, beside []Hold, m moment) (next []int64) {
	m.at = since
	for i := 0; i+BucketLen <= len(state); {
		end, id := i+BucketLen, state[i]
		if id < 0 {
			end += int(state[i+2])
		}
		m.log = state[i+BucketLen : end]
		switch l := limitByID(limits, id, m); {
		case !slices.Contains(charged, id):
			next = append(next, state[i:end]...)
		case l == nil:
		case l.Algorithm == SlidingLog:
			next = l.logWithout(next, at, cost, beside, m)
		default:
			b := l.without(bucket{state[i+1], state[i+2]}, at, cost, beside, m)
			next = append(next, id, b.level, b.aux)
		}
		i = end
	}
	return next
}

// without is a bucket that stands at m.at without a cost that was charged at an instant, but
// with all that the holds beside it were charged. A token bucket does not know whose tokens
// came back by time, and what was taken and not given back is never more than it has issued.
func (l *Limit) without(b bucket, at, cost int64, beside []Hold, m moment) bucket {
	after := l.rules.giveBack(l, b, at, cost, m)
	if len(beside) == 0 || l.Algorithm == TokenBucket {
		return after
	}
	id, held, last := l.BucketID(m), int64(0), int64(0) // in the window that runs, and in the last
	for i := range beside {
		h := &beside[i]
		switch {
		case !h.charges(id) || !l.rules.counts(l, b, h.At, m):
		case l.Algorithm == SlidingWindow && h.At < windowStart(m.at, l.Window):
			last = AddUpTo(last, h.Cost)
		default:
			held = AddUpTo(held, h.Cost)
		}
	}
	if l.Algorithm == SlidingWindow {
		if at == Present { // the newest first, but not what is held
			less := min(cost, max(0, b.level-held))
			return bucket{b.level - less, b.aux - min(cost-less, max(0, b.aux-last))}
		}
		after.aux = max(after.aux, min(b.aux, last))
	}
	after.level = max(after.level, min(b.level, held))
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

// identities are those of limits at a moment, but for the shadows that were spared.
func identities(limits []*Limit, spared uint32, m moment) (ids []int64) {
	for i, l := range limits {
		if spared&(1<<i) == 0 {
			ids = append(ids, l.BucketID(m))
		}
	}
	return ids
}
