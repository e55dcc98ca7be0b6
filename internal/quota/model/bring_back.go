package model

// BringBack sets the row of a target's counter back to an instant, µs, that is earlier than its last charge,
// because the clock was ahead at that charge. The counter is identified by its attribute. All counted units
// continue to count, in the windows of that instant, so that no charged unit is lost. Units that the running hour
// booked stay in their hour. Holds stay unchanged, and each hold ends at the expiry that its reservation returned.
// Departed buckets stay unchanged, too. Settle runs before this, and a bucket that returns later is set back then.
func (t *Target) BringBack(attribute string, r *Row, at int64) {
	limits, since, m := t.limitsOf(attribute), t.moment(r.At), t.moment(at)
	var next []int64
	for i := 0; i+BucketLen <= len(r.State); {
		end, id := chunkEnd(r.State, i), r.State[i]
		m.log = r.State[i+BucketLen : end]
		switch l := limitByID(limits, id, since); {
		case l == nil:
			next = append(next, r.State[i:end]...)
		case l.kept == inLog:
			next = l.logBrought(next, m)
		default:
			b := l.rules.bringBack(l, bucket{r.State[i+1], r.State[i+2]}, r.At, m)
			next = l.append(next, b, m)
		}
		i = end
	}
	r.State, r.At = next, at
}
