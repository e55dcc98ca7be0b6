package model

// WindowStart is when the running window of the plan's i-th limit began, µs, 0 ≤ i < NumViews().
// runs is false of a limit that has no window with a start, and of a window that begins with a
// first hit when none was charged.
func (d *Decision) WindowStart(i int) (start int64, runs bool) {
	i = d.Target.place(i)
	l := d.Target.LimitAt(i)
	return l.rules.began(l, d.stands()[i], d.moment(i))
}

func (f fixedWindow) began(l *Limit, _ bucket, m moment) (int64, bool) {
	start, _ := f.window(l, m)
	return start, true
}

func (firstHitWindow) began(_ *Limit, b bucket, _ moment) (int64, bool) { return b.aux, b.level > 0 }

func (slidingWindow) began(l *Limit, _ bucket, m moment) (int64, bool) {
	return windowStart(m.at, l.Window), true
}

func (slidingLog) began(*Limit, bucket, moment) (int64, bool)  { return 0, false }
func (tokenBucket) began(*Limit, bucket, moment) (int64, bool) { return 0, false }
func (allocation) began(*Limit, bucket, moment) (int64, bool)  { return 0, false }
func (concurrency) began(*Limit, bucket, moment) (int64, bool) { return 0, false }
