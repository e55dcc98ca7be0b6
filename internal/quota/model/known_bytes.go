package model

import "encoding/binary"

// What a target knows of its counter's row, in some twenty bytes: so much is kept of a
// customer for whom there is no room otherwise, and spares its next hit a round trip.

// AppendRow appends what is known of the row of the target's own counter, for LearnRow.
// Nothing, where nothing is known, or more than the buckets of the target's limits: such as
// logs, and buckets of limits that the plan had before. Instants take the fewer bytes the
// nearer they are to since, µs.
func (t *Target) AppendRow(b []byte, since int64) []byte {
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	r, limits := &t.known.row, t.Counters[0].Limits
	if !t.known.there || r.Large || !r.Counted || r.Change != t.Change || len(r.State) != BucketLen*len(limits) {
		return b
	}
	if hour, _ := t.RunningHour(r.At); hour != r.Hour {
		return b
	}
	before, m := len(b), t.moment(r.At)
	b = binary.AppendVarint(b, r.Change)
	b = binary.AppendVarint(b, r.At-since)
	b = binary.AppendVarint(b, r.Version)
	for i, l := range limits {
		stored := r.State[BucketLen*i:][:BucketLen]
		if l.kept == inLog || stored[0] != l.BucketID(m) {
			return b[:before]
		}
		b = binary.AppendVarint(b, stored[1])
		b = binary.AppendVarint(b, stored[2]-l.usualAux())
	}
	return b
}

// LearnRow has the target know what AppendRow appended, with the same since, for a target of
// the same counter. What was appended under another change number, so for other limits
// perhaps, it does not take.
func (t *Target) LearnRow(b []byte, since int64) {
	next := func() (n int64) {
		n, size := binary.Varint(b)
		b = b[max(0, size):]
		return n
	}
	if len(b) == 0 || next() != t.Change {
		return
	}
	k := &t.known
	k.mu.Lock()
	defer k.mu.Unlock()
	r := Known{Row: Row{Change: t.Change, At: next() + since, Version: next(), State: k.space[:0]}, Counted: true}
	m := t.moment(r.At)
	for _, l := range t.Counters[0].Limits {
		r.State = append(r.State, l.BucketID(m), next(), next()+l.usualAux())
	}
	r.Hour, _ = t.RunningHour(r.At)
	k.there, k.row = true, r
}

// usualAux is what nearly all buckets of the limit have as aux, where that is a large number.
func (l *Limit) usualAux() int64 {
	if l.refills {
		return ratedBy(l.Limit)
	}
	return 0
}
