package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// Most hits are decided by a swap: the Go model charges a group's run to its counter's row as
// the lane knows it, and one UPDATE writes what that leaves wherever the row is that one
// still. It returns which those were: they are charged. A row that somebody else has written
// meanwhile is left alone, and its hits are judged again by the statement that locks. So
// nothing is charged but to the newest row, no row is locked before it is written, and the
// database steps no state.

// swapSQL writes rows that nobody has written since. The version and the instant tell, and the
// change number, which is raised without a charge too; the row's hour must be the running
// one. A row that somebody holds is waited for, in the lock order, and looked at again then.
//
// Parameters, one element a counter: $1–$4 key, $5–$8 version, instant, change number and hour
// to be found, $9–$10 instant and change number to be left, $11–$12 the run's units and its
// length, $13–$14 the slices of $15, the states.
const swapSQL = `
UPDATE counters c
SET state = ($15::bigint[])[i.state_from:i.state_to], at = i.at, change = i.change, version = c.version + i.run,
    units = CASE WHEN c.units > 9223372036854775807 - i.cost THEN 9223372036854775807 ELSE c.units + i.cost END,
    total = CASE WHEN c.total > 9223372036854775807 - i.cost THEN 9223372036854775807 ELSE c.total + i.cost END
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::bigint[], $12::integer[], $13::integer[], $14::integer[]) WITH ORDINALITY
     AS i(shard, customer, meter, attribute, version, since, judged, hour, at, change, cost, run, state_from, state_to, n)
WHERE c.shard = ANY (ARRAY[i.shard]) AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = i.attribute
  AND c.version = i.version AND c.at = i.since AND c.change = i.judged AND c.hour = i.hour
RETURNING i.n`

// swap is what is to become of a group's row.
type swap struct {
	*group
	after  *knownRow // the charge
	run    int
	spared uint32
	done   bool // it did
}

// swap decides by swaps what it can of a batch, and returns the other groups. ok is false
// when that has cost the session.
func (l *lane) swap(ctx context.Context, groups []*group, now int64) (others []*group, ok bool) {
	groups, others = l.swappable(groups)
	if len(groups) == 0 {
		return others, true
	}
	slices.SortFunc(groups, func(a, b *group) int { return compareKeys(a.own(), b.own()) })
	reading, known := l.know(groups)
	l.swaps = l.swaps[:0]
	if len(reading) > len(known) { // else a few do not keep the others waiting
		if err := l.sendSwaps(ctx, reading); err != nil {
			l.lostSwaps(groups, nil, err)
			return others, l.session.store != nil
		}
		reading, known = nil, groups
	}
	for _, g := range known {
		s, ok := g.plan()
		switch {
		case ok:
			l.swaps = append(l.swaps, s)
		case g.held:
			l.hold(g)
		default:
			others = append(others, g)
		}
	}
	if len(l.swaps) == 0 && len(reading) == 0 {
		return others, true
	}
	if err := l.sendSwaps(ctx, reading); err != nil {
		l.lostSwaps(reading, l.swaps, err)
		return others, l.session.store != nil
	}
	l.countLost()
	for i := range l.swaps {
		l.settleSwap(&l.swaps[i], now)
	}
	return append(others, l.settleReading(reading)...), true
}

// lostSwaps ends what a round trip failed for: groups whose rows it was to read, which has
// charged nothing, and swaps.
func (l *lane) lostSwaps(reading []*group, swaps []swap, err error) {
	var hits []*hit
	for i := range swaps {
		hits = append(hits, swaps[i].hits...)
	}
	read := hitsOf(reading)
	if rolledBack(err) || errors.Is(err, errNotSent) {
		l.lost(append(hits, read...), err)
		return
	}
	l.lost(hits, err)
	fail(read, fmt.Errorf("%w: %w", ErrUnavailable, err))
}

// swappable splits a batch into the groups that a swap may decide and the others: those that
// charge several rows, which it could not charge all or none, those of long logs, which would
// go over the wire twice more, and those that were tried.
func (l *lane) swappable(groups []*group) (these, others []*group) {
	if !l.engine.swapping || l.engine.options.Stopwatch() < l.cautious {
		return nil, groups
	}
	l.these = l.these[:0]
	for _, g := range groups {
		first, last := g.hits[0], l.recollect(g.target)
		if len(g.target.Counters) > 1 || g.insert || g.book || first.locked || first.alone || last != nil && last.large {
			others = append(others, g)
		} else {
			l.these = append(l.these, g)
		}
	}
	return l.these, others
}

// plan charges the longest run of the group that it can to the row that is known. ok is
// false when that takes another way.
func (g *group) plan() (s swap, ok bool) {
	// A row that was spoiled by hand may be more than the model can read: the statement
	// that locks says so of its group alone.
	defer func() {
		if recover() != nil {
			s, ok = swap{}, false
		}
	}()
	switch {
	case g.unread:
		return s, false
	case g.known == nil:
		g.insert = true
		return s, false
	}
	old, t := g.known, g.target
	if old.held() {
		g.held = true
		return s, false
	}
	instant := max(g.now, old.at)
	g.hour, _ = t.runningHour(instant)
	g.book = old.hour != g.hour && old.counted
	if old.hour != g.hour || old.change > t.Change {
		return s, false
	}
	after := &knownRow{hour: g.hour, counted: true}
	run, spared, state := chargeRun(after.space[:0], t.Counters[0].Limits, old.state, old.at, g.sums, t.moment(instant))
	after.row = row{state: state, at: instant, version: old.version + int64(run), change: t.Change}
	return swap{group: g, after: after, run: run, spared: spared}, run > 0
}

// sendSwaps writes the rows of l.swaps, which are in the lock order, in one round trip and
// transaction with reading those of other groups.
func (l *lane) sendSwaps(ctx context.Context, reading []*group) error {
	var steps []step
	if len(reading) > 0 {
		steps = append(steps, l.recallStep(reading))
	}
	hits := 0
	if len(l.swaps) > 0 {
		for i := range l.swaps {
			hits += l.swaps[i].run
		}
		steps = append(steps, l.swapStep())
	}
	steps[len(steps)-1].commit = true
	l.engine.stats.batch(hits, len(steps))
	return l.session.store.run(ctx, steps)
}

func (l *lane) swapStep() step {
	l.params.reset()
	l.writes.reset()
	for i := range l.swaps {
		l.writes.add(&l.swaps[i])
	}
	l.writes.encode(&l.params)
	read := func(r *pgconn.ResultReader) error {
		return eachRow(r, len(l.swaps), func(n int, _ [][]byte) error {
			l.swaps[n].done = true
			return nil
		})
	}
	return step{name: swapRows, params: l.params.values(), read: read}
}

// countLost counts the swaps that were in vain, and those of rows from memory.
func (l *lane) countLost() {
	lost, stale, remembered := 0, 0, 0
	for i := range l.swaps {
		s := &l.swaps[i]
		if !s.done {
			lost++
		}
		if !s.read {
			remembered++
			if !s.done {
				stale++
			}
		}
	}
	l.tell(stale, remembered)
	l.engine.stats.swapped.Add(int64(len(l.swaps) - lost))
	l.engine.stats.swapsLost.Add(int64(lost))
}

// settleSwap hands out what became of a group.
func (l *lane) settleSwap(s *swap, now int64) {
	if !s.done {
		s.target.forget()
		for _, h := range s.hits {
			h.tries++
			h.locked = true
		}
		l.handBack(s.hits)
		return
	}
	l.keep(s.target, s.after)
	l.swapped[0] = s.after.row
	at, rows := s.after.at, l.swapped[:]
	// Before a caller hears of it: its next hit may come at once.
	l.engine.memory.remember(s.target, rows, now, s.run < len(s.hits))
	l.handBack(s.settle(int64(s.run), at, s.spared, rows))
	l.engine.watchAhead(s.group, now, at)
}

// swapColumns are the parameters of swapSQL.
type swapColumns struct {
	keys                       keyColumns
	version, since, judged     []int64
	hour, at, change, cost     []int64
	run, stateFrom, stateUntil []int32
	states                     []int64
}

func (c *swapColumns) reset() {
	if 8*cap(c.states) > mostKept {
		c.states = nil
	}
	c.keys.reset()
	for _, column := range []*[]int64{&c.version, &c.since, &c.judged, &c.hour, &c.at, &c.change, &c.cost, &c.states} {
		*column = (*column)[:0]
	}
	c.run, c.stateFrom, c.stateUntil = c.run[:0], c.stateFrom[:0], c.stateUntil[:0]
}

func (c *swapColumns) add(s *swap) {
	c.keys.add(s.own())
	c.version, c.since = append(c.version, s.known.version), append(c.since, s.known.at)
	c.judged, c.hour = append(c.judged, s.known.change), append(c.hour, s.hour)
	c.at, c.change = append(c.at, s.after.at), append(c.change, s.after.change)
	c.cost, c.run = append(c.cost, s.sums[s.run-1]), append(c.run, int32(s.run))
	c.stateFrom = append(c.stateFrom, int32(len(c.states)+1))
	c.states = append(c.states, s.after.state...)
	c.stateUntil = append(c.stateUntil, int32(len(c.states)))
}

func (c *swapColumns) encode(p *params) {
	c.keys.encode(p)
	for _, column := range [][]int64{c.version, c.since, c.judged, c.hour, c.at, c.change, c.cost} {
		p.int8(column)
	}
	for _, column := range [][]int32{c.run, c.stateFrom, c.stateUntil} {
		p.int4(column)
	}
	p.int8(c.states)
}
