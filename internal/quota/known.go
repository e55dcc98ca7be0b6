package quota

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// knownRow is the row of a customer's own counter as a lane last wrote or read it. Its target
// keeps it. It may be old at any time: a swap makes sure.
type knownRow struct {
	row
	hour    int64 // start of the hour that its units are of, µs
	counted bool  // it has units
	large   bool  // it is too large to be kept, and nothing else is said of it
	lane    *lane // whose knowledge it is: engines may share targets

	space [2 * bucketLen]int64 // what state is of, where two limits have room
}

// mostStale is the share, in 1024ths, of known rows that turned out to have been written by
// somebody else, from which on rows are read before each swap: that costs half of what a swap
// in vain does.
const mostStale = 256

// recollect is the row of a target's own counter, or nil.
func (l *lane) recollect(t *Target) *knownRow {
	if r := t.base().known.Load(); r != nil && r.lane == l {
		return r
	}
	return nil
}

// keep keeps a row, but for one with holds, which the ledger writes. Of one with long logs it
// keeps that it is such a one: few would take all of the memory.
func (l *lane) keep(t *Target, r *knownRow) {
	if _, due := unmarked(r.state); due != 0 {
		t.forget()
		return
	}
	if len(r.state) > largeState {
		r = &knownRow{large: true}
	}
	r.lane = l
	t.base().known.Store(r)
}

func (t *Target) forget() { t.base().known.Store(nil) }

// tell notes how many of some rows that were known had been written by somebody else.
func (l *lane) tell(stale, of int) {
	if of > 0 {
		l.stale += (1024*stale/of - l.stale) / 8
	}
}

// recallSQL reads rows without a lock. $1–$4 key.
const recallSQL = `
SELECT i.n, c.at, c.version, c.change, c.hour, c.units, c.state
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) WITH ORDINALITY AS i(shard, customer, meter, attribute, n),
LATERAL (SELECT at, version, change, hour, units, state FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute OFFSET 0) c`

// recall sets the known rows of groups, which are in the lock order; nil where there is no
// row yet. What it does not know it reads.
func (l *lane) recall(ctx context.Context, groups []*group) error {
	var reading []*group
	l.keys.reset()
	for _, g := range groups {
		if g.known = l.recollect(g.target); g.known == nil || l.stale >= mostStale {
			g.read = true
			reading = append(reading, g)
			l.keys.add(g.own())
		}
	}
	if len(reading) == 0 {
		return nil
	}
	l.params.reset()
	l.keys.encode(&l.params)
	// They are known until the batch has its answer, and not kept: what is charged is.
	l.read = slices.Grow(l.read[:0], len(reading))[:len(reading)]
	there := make([]bool, len(reading))
	read := func(r *pgconn.ResultReader) error {
		return eachRow(r, len(reading), func(n int, cols [][]byte) error {
			there[n] = true
			return l.read[n].read(cols)
		})
	}
	l.engine.stats.batch(0, 1)
	if err := l.session.store.run(ctx, []step{{name: recallRows, params: l.params.values(), read: read, commit: true}}); err != nil {
		return err
	}
	stale, of := 0, 0
	for i, g := range reading {
		if old := g.known; old != nil {
			of++
			if !there[i] || old.version != l.read[i].version || old.at != l.read[i].at {
				stale++
			}
		}
		if g.known = nil; there[i] {
			g.known = &l.read[i]
		}
	}
	l.tell(stale, of)
	return nil
}

// read reads the columns of recallSQL.
func (r *knownRow) read(cols [][]byte) (err error) {
	var units int64
	if err = readAll(cols, &r.at, &r.version, &r.change, &r.hour, &units); err != nil {
		return err
	}
	r.counted = units > 0
	r.state, err = appendInts(r.space[:0], cols[5])
	return err
}
