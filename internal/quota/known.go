package quota

import (
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// knownRow is the row of a customer's own counter as a lane last wrote or read it. It may be
// old at any time: a swap makes sure.
type knownRow struct {
	row
	hour    int64 // start of the hour that its units are of, µs
	counted bool  // it has units
	large   bool  // it is too large to be kept, and nothing else is said of it
	place   place
}

// copy makes r another row in r's own memory: one that came with each hit was most of what
// hits left to the garbage collector.
func (r *knownRow) copy(of *knownRow) {
	state := append(r.state[:0], of.state...)
	*r = *of
	r.state = state
}

// empty is r's memory without a row, unless that is more than is worth keeping.
func (r *knownRow) empty() knownRow {
	if cap(r.state) > largeState {
		return knownRow{}
	}
	return knownRow{row: row{state: r.state[:0]}}
}

// recollection is what a target knows of its own counter's row. Its lane writes it; who packs
// the customer reads it.
type recollection struct {
	mu    sync.Mutex
	there bool
	row   knownRow

	space [2 * bucketLen]int64 // what the row's state is of, where two limits have room
}

// set keeps a copy of a row.
func (k *recollection) set(r *knownRow) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.row.state == nil {
		k.row.state = k.space[:0]
	}
	k.row.copy(r)
	k.there = true
}

// get copies the row, if there is one.
func (k *recollection) get(r *knownRow) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.there {
		r.copy(&k.row)
	}
	return k.there
}

func (k *recollection) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.there = false
}

// mostStale is the share, in 1024ths, of known rows that turned out to have been written by
// somebody else, from which on rows are read before each swap: that costs half of what a swap
// in vain does.
const mostStale = 256

// keep keeps a copy of a row, but for one with holds, which the ledger writes. Of one with long
// logs it keeps that it is such a one: few would take all of the memory.
func (t *Target) keep(r *knownRow) {
	switch {
	case r.held():
		t.forget()
	case len(r.state) > largeState:
		t.base().known.set(&knownRow{large: true})
	default:
		t.base().known.set(r)
	}
}

// held reports whether reservations hold units of the counter.
func (r *knownRow) held() bool {
	_, due := unmarked(r.state)
	return due != 0
}

func (t *Target) forget() { t.base().known.forget() }

// tell notes how many of some rows that were known had been written by somebody else.
func (l *lane) tell(stale, of int) {
	if of > 0 {
		l.stale += (1024*stale/of - l.stale) / 8
	}
}

// recallSQL reads rows without a lock. $1–$4 key.
const recallSQL = `
SELECT i.n, c.at, c.version, c.change, c.hour, c.units, c.state, c.ctid
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) WITH ORDINALITY AS i(shard, customer, meter, attribute, n),
LATERAL (SELECT at, version, change, hour, units, state, ctid FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute OFFSET 0) c`

// know returns the groups whose rows are to be read, and the others.
func (l *lane) know(groups []*group) (reading, known []*group) {
	for _, g := range groups {
		if !g.knows || l.stale >= mostStale {
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
		there := make([]bool, len(reading))
		same, of := 0, 0
		err := eachRow(r, len(reading), func(n int, cols [][]byte) error {
			there[n] = true
			g := reading[n]
			version, at := g.known.version, g.known.at
			// What cannot be read is its own group's fault: the statement that locks says so.
			g.unread = g.known.read(cols) != nil
			if g.knows && g.known.version == version && g.known.at == at {
				same++
			}
			return nil
		})
		for i, g := range reading {
			if g.knows {
				of++
			}
			g.knows = there[i]
		}
		l.tell(of-same, of)
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
		case !g.knows:
			g.insert = true
			others = append(others, g)
		case g.known.held():
			l.hold(g)
		default:
			g.target.keep(&g.known)
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
	if r.state, err = appendInts(r.state[:0], cols[5]); err != nil {
		return err
	}
	return r.place.read(cols[6])
}
