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
// All numbers are one array: taking fifteen apart, and joining them to rows, took an eighth of
// what the statement does. $1 begins with where the last row of numbers does, then come these
// rows of swapWidth, as swapValues.fill has them, and then their states. The attribute, which is
// empty, is said of each row: with a constant a scan of the counters could come first.
const swapSQL = `
UPDATE counters c
SET state = ($1::bigint[])[i.state_from:i.state_to], at = i.at, change = i.change, version = c.version + i.run,
    units = CASE WHEN c.units > 9223372036854775807 - i.cost THEN 9223372036854775807 ELSE c.units + i.cost END,
    total = CASE WHEN c.total > 9223372036854775807 - i.cost THEN 9223372036854775807 ELSE c.total + i.cost END
FROM generate_series(2, (($1::bigint[])[1])::integer, 13) AS g(n),
LATERAL (SELECT (($1::bigint[])[n])::smallint AS shard, ($1::bigint[])[n + 1] AS customer, (($1::bigint[])[n + 2])::integer AS meter,
                ($1::bigint[])[n + 3] AS version, ($1::bigint[])[n + 4] AS since, ($1::bigint[])[n + 5] AS judged, ($1::bigint[])[n + 6] AS hour,
                ($1::bigint[])[n + 7] AS at, ($1::bigint[])[n + 8] AS change, ($1::bigint[])[n + 9] AS cost, ($1::bigint[])[n + 10] AS run,
                ($1::bigint[])[n + 11] AS state_from, ($1::bigint[])[n + 12] AS state_to, left('', n) AS attribute) i
WHERE c.shard = ANY (ARRAY[i.shard]) AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = i.attribute
  AND c.version = i.version AND c.at = i.since AND c.change = i.judged AND c.hour = i.hour
RETURNING (g.n + 11) / 13, c.ctid`

// swap is what is to become of a group's row.
type swap struct {
	*group
	run    int
	spared uint32
	placed bool // the row is reached at its place
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
		first := g.hits[0]
		if len(g.target.Counters) > 1 || g.insert || g.book || first.locked || first.alone {
			others = append(others, g)
			continue
		}
		if g.knows = g.target.base().known.get(&g.known); g.known.large {
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
	case !g.knows:
		g.insert = true
		return s, false
	}
	old, t := &g.known, g.target
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
	run, spared, state := chargeRun(g.after.state[:0], t.Counters[0].Limits, old.state, old.at, g.sums, t.moment(instant))
	if run == 0 {
		return s, false
	}
	g.after = knownRow{hour: g.hour, counted: true, place: old.place}
	g.after.row = row{state: state, at: instant, version: old.version + int64(run), change: t.Change}
	return swap{group: g, run: run, spared: spared}, true
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
	name := swapRows
	if l.engine.places {
		name = swapPlaced
		l.engine.room.choose(l.swaps)
	}
	l.writes.fill(l.swaps)
	l.params.reset()
	l.params.int8(l.writes)
	if l.engine.places {
		l.params.places(l.swaps)
	}
	read := func(r *pgconn.ResultReader) error {
		return eachRow(r, len(l.swaps), func(n int, cols [][]byte) error {
			l.swaps[n].done = true
			return l.swaps[n].after.place.read(cols[0])
		})
	}
	return step{name: name, params: l.params.values(), read: read}
}

// countLost counts the swaps that were in vain, and those of rows from memory.
func (l *lane) countLost() {
	lost, stale, remembered, placed := 0, 0, 0, 0
	for i := range l.swaps {
		s := &l.swaps[i]
		if !s.done {
			lost++
		} else if s.placed {
			placed++
		}
		if !s.read {
			remembered++
			if !s.done {
				stale++
			}
		}
	}
	l.tell(stale, remembered)
	l.engine.stats.placed.Add(int64(placed))
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
	s.target.keep(&s.after)
	l.swapped[0] = s.after.row
	at, rows := s.after.at, l.swapped[:]
	if len(s.after.state) > bucketLen*len(s.target.Counters[0].Limits) { // decisions keep what is in logs
		rows[0].state = slices.Clone(s.after.state)
	}
	// Before a caller hears of it: its next hit may come at once.
	l.engine.memory.remember(s.target, rows, now, s.run < len(s.hits))
	l.handBack(s.settle(int64(s.run), at, s.spared, rows))
	l.engine.watchAhead(s.group, now, at)
}

// swapValues are the parameter of swapSQL.
type swapValues []int64

// swapWidth is how many numbers of a row are not its state, in swapSQL too.
const swapWidth = 13

// fill has the values of swaps, which are in the lock order: no row is locked before one of a
// lower key.
func (v *swapValues) fill(swaps []swap) {
	b := *v
	if 8*cap(b) > mostKept {
		b = nil
	}
	b = append(b[:0], int64(2+swapWidth*(len(swaps)-1)))
	from := 2 + swapWidth*len(swaps)
	for i := range swaps {
		s := &swaps[i]
		own, old, after := s.own(), &s.known, &s.after
		until := from + len(after.state)
		shard := int64(Shard(own.Customer))
		if s.placed {
			shard = -1
		}
		b = append(b, shard, own.Customer, int64(own.Meter), old.version, old.at, old.change, s.hour,
			after.at, after.change, s.sums[s.run-1], int64(s.run), int64(from), int64(until-1))
		from = until
	}
	for i := range swaps {
		b = append(b, swaps[i].after.state...)
	}
	*v = b
}
