package quota

import "math"

// Never is the wait of a refusal that no wait will lift.
const Never int64 = -1

// NoReset is the reset of a limit whose whole quota comes back at no time that 64 bits of
// µs can name: never, of an allocation in use, or too late, of a very slow token bucket.
const NoReset int64 = math.MaxInt64

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
	// buckets stand at At, one a limit: after the charge, or of the state the hit was
	// refused on.
	buckets []bucket
}

// View is what a decision says of one limit; see the contract's "Per limit".
type View struct {
	Limit      *Limit
	Used       int64 // units
	Remaining  int64 // units
	RetryAfter int64 // µs, 0 when admitted or when this limit alone would admit, or Never
	ResetAt    int64 // µs since the epoch, or NoReset
}

// View is the decision's view of the plan's i-th limit, 0 ≤ i < Target.NumLimits().
func (d *Decision) View(i int) View {
	i = d.Target.place(i)
	l, b, m := d.Target.limit(i), d.buckets[i], d.moment()
	v := View{Limit: l, Used: l.rules.used(l, b, m), Remaining: l.rules.room(l, b, m), ResetAt: l.rules.resetAt(l, b, m)}
	if !d.Allowed {
		v.RetryAfter = l.wait(b, d.Cost, m)
	}
	return v
}

func (d *Decision) moment() moment { return moment{d.At, &d.Target.Periods} }

// RetryAfter is the largest wait of all limits in µs: 0 when admitted, Never when one is.
func (d *Decision) RetryAfter() int64 {
	if d.Allowed {
		return 0
	}
	var longest int64
	for i, b := range d.buckets {
		w := d.Target.limit(i).wait(b, d.Cost, d.moment())
		if w == Never {
			return Never
		}
		longest = max(longest, w)
	}
	return longest
}

// room is the largest cost that all limits would admit on these buckets.
func (d *Decision) room() int64 {
	room := MaxNumber
	for i, b := range d.buckets {
		l := d.Target.limit(i)
		room = min(room, l.rules.room(l, b, d.moment()))
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
// at now: the Go model. It charges nothing; the buckets are those before the hit.
func judge(t *Target, rows []row, now, cost int64) Decision {
	d := Decision{Target: t, Cost: cost, At: now, Versions: make([]int64, len(rows)), buckets: make([]bucket, 0, t.NumLimits())}
	for i := range rows {
		d.At = max(d.At, rows[i].at)
		d.Versions[i] = rows[i].version
	}
	for i := range rows {
		for _, l := range t.Counters[i].Limits {
			d.buckets = append(d.buckets, l.stand(rows[i].state, rows[i].at, d.moment()))
		}
	}
	d.Allowed = cost <= d.room()
	return d
}

// charge adds units to all buckets, or takes them back (below 0): the view of a hit that
// was followed by others in its run.
func (d *Decision) charge(units int64) {
	for i := range d.buckets {
		l := d.Target.limit(i)
		d.buckets[i] = l.rules.charge(l, d.buckets[i], units, d.moment())
	}
}
