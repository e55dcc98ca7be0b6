package quota

// Never is the wait of a refusal that no wait will lift.
const Never int64 = -1

// Decision is the outcome of a hit. What it says of each limit of its target is viewed
// by View.
type Decision struct {
	Target   *Target
	Allowed  bool
	Cost     int64
	At       int64 // the hit's one instant, µs
	AsOf     int64 // a refusal from memory: the instant its view was read, µs; else 0
	Degraded bool  // let in while the database was out of reach and not charged; no views

	// Versions are the counters' versions, one a counter of the target: after the charge
	// when admitted, else of the state the hit was refused on.
	Versions []int64
	// levels are the buckets' levels at At, one a limit: after the charge, or of the
	// state the hit was refused on.
	levels []int64
}

// View is what a decision says of one limit; see the contract's "Per limit".
type View struct {
	Limit      *Limit
	Used       int64 // units
	Remaining  int64 // units
	RetryAfter int64 // µs, 0 when admitted or when this limit alone would admit, or Never
	ResetAt    int64 // µs since the epoch
}

// View is the decision's view of the target's i-th limit, 0 ≤ i < Target.NumLimits().
func (d *Decision) View(i int) View {
	l, level := d.Target.Limit(i), d.levels[i]
	v := View{Limit: l, Used: l.used(level), Remaining: l.room(level), ResetAt: l.resetAt(level, d.At)}
	if !d.Allowed {
		v.RetryAfter = l.wait(level, d.At, d.Cost)
	}
	return v
}

// RetryAfter is the largest wait of all limits in µs: 0 when admitted, Never when one is.
func (d *Decision) RetryAfter() int64 {
	if d.Allowed {
		return 0
	}
	var longest int64
	for i := range d.levels {
		w := d.Target.Limit(i).wait(d.levels[i], d.At, d.Cost)
		if w == Never {
			return Never
		}
		longest = max(longest, w)
	}
	return longest
}

// room is the largest cost that all limits would admit on these levels.
func (d *Decision) room() int64 {
	room := MaxNumber
	for i, level := range d.levels {
		room = min(room, d.Target.Limit(i).room(level))
	}
	return room
}

// row is a counter's stored state as a statement returned it.
type row struct {
	state   []int64
	at      int64 // instant of the last charge
	version int64
	change  int64
}

// judge says what the rows (one a counter of the target, in its order) decide for a hit
// at now: the Go model. It charges nothing; levels are those before the hit.
func judge(t *Target, rows []row, now, cost int64) Decision {
	d := Decision{Target: t, Cost: cost, At: now}
	for i := range rows {
		d.At = max(d.At, rows[i].at)
	}
	n := t.NumLimits()
	numbers := make([]int64, n+len(rows)) // one allocation for both
	d.levels, d.Versions = numbers[:0:n], numbers[n:]
	for i := range rows {
		d.Versions[i] = rows[i].version
		for _, l := range t.Counters[i].Limits {
			d.levels = append(d.levels, l.level(rows[i].state, rows[i].at, d.At))
		}
	}
	d.Allowed = cost <= d.room()
	return d
}

// shift moves the levels by units: the view of a hit that was followed (negative) by
// others in its run.
func (d *Decision) shift(units int64) {
	for i := range d.levels {
		d.levels[i] += units * d.Target.Limit(i).weight()
	}
}
