package quota

import (
	"github.com/jackc/pgx/v5/pgconn"
)

// knownRow is the row of a customer's own counter as a lane last wrote or read it. Its target
// keeps it. It may be old at any time: a swap makes sure.
type knownRow struct {
	row
	hour    int64 // start of the hour that its units are of, µs
	counted bool  // it has units
	large   bool  // it is too large to be kept, and nothing else is said of it
	lane    *lane // whose knowledge it is: engines may share targets; nil: anybody's

	space [2 * bucketLen]int64 // what state is of, where two limits have room
}

// mostStale is the share, in 1024ths, of known rows that turned out to have been written by
// somebody else, from which on rows are read before each swap: that costs half of what a swap
// in vain does.
const mostStale = 256

// recollect is the row of a target's own counter, or nil.
func (l *lane) recollect(t *Target) *knownRow {
	if r := t.base().known.Load(); r != nil && (r.lane == l || r.lane == nil) {
		return r
	}
	return nil
}

// keep keeps a row, but for one with holds, which the ledger writes. Of one with long logs it
// keeps that it is such a one: few would take all of the memory.
func (l *lane) keep(t *Target, r *knownRow) {
	if r.held() {
		t.forget()
		return
	}
	if len(r.state) > largeState {
		r = &knownRow{large: true}
	}
	r.lane = l
	t.base().known.Store(r)
}

// held reports whether reservations hold units of the counter.
func (r *knownRow) held() bool {
	_, due := unmarked(r.state)
	return due != 0
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

// know sets the known rows of groups, and returns those whose rows are to be read, and the
// others.
func (l *lane) know(groups []*group) (reading, known []*group) {
	for _, g := range groups {
		if g.known = l.recollect(g.target); g.known == nil || l.stale >= mostStale {
			g.read = true
			reading = append(reading, g)
		} else {
			known = append(known, g)
		}
	}
	return reading, known
}

// recallStep reads the rows of groups, which are in the lock order: nil where there is none.
func (l *lane) recallStep(reading []*group) step {
	l.keys.reset()
	for _, g := range reading {
		l.keys.add(g.own())
	}
	l.asked.reset()
	l.keys.encode(&l.asked)
	read := func(r *pgconn.ResultReader) error {
		there := make([]*knownRow, len(reading))
		err := eachRow(r, len(reading), func(n int, cols [][]byte) error {
			there[n] = new(knownRow)
			// What cannot be read is its own group's fault: the statement that locks says so.
			reading[n].unread = there[n].read(cols) != nil
			return nil
		})
		stale, of := 0, 0
		for i, g := range reading {
			if old, is := g.known, there[i]; old != nil {
				of++
				if is == nil || old.version != is.version || old.at != is.at {
					stale++
				}
			}
			g.known = there[i]
		}
		l.tell(stale, of)
		return err
	}
	return step{name: recallRows, params: l.asked.values(), read: read}
}

// settleReading hands back the hits of groups whose rows were read while others were swapped:
// the next batch knows them. It returns those for which there is nothing to know.
func (l *lane) settleReading(reading []*group) (others []*group) {
	for _, g := range reading {
		switch {
		case g.unread:
			others = append(others, g)
		case g.known == nil:
			g.insert = true
			others = append(others, g)
		case g.known.held():
			l.hold(g)
		default:
			l.keep(g.target, g.known)
			for _, h := range g.hits {
				h.tries++
			}
			l.handBack(g.hits)
		}
	}
	return others
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
