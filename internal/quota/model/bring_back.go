package model

// BringBack brings the row of a target's counter, named by its attribute, back to an earlier instant
// than that of its last charge, µs: the clock was ahead then. Whatever the limits count goes on
// counting, in the windows of that instant, so that no unit that was charged is given away. What the
// running hour booked stays in its hour. The holds are left as they are: each ends when its
// reservation was told. What is kept apart stays as it is: Settle comes before this, and a bucket that comes
// back is brought back then.
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
