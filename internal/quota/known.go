package quota

import (
	"context"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/jackc/pgx/v5/pgconn"
)

// known are the rows of customers' own counters as a lane last wrote or read them, the most
// recently used ones. They may be old at any time: a swap makes sure.
type known struct {
	rows *simplelru.LRU[ownKey, *knownRow]
	// stale is the share of rows, in 1024ths, that somebody else had written since, as it was
	// lately. Where it is high, rows are read before each swap, which costs half of what a
	// swap in vain does.
	stale int
}

// ownKey is the key of a customer's own counter of a meter.
type ownKey struct {
	customer int64
	meter    int32
}

// knownRow is a counter's row: what is decided by, and its hour.
type knownRow struct {
	row
	hour    int64 // start of the hour that its units are of, µs
	counted bool  // it has units
}

// mostStale is the share, in 1024ths, from which on rows are read before each swap.
const mostStale = 256

func newKnown(size int) (*known, error) {
	rows, err := simplelru.NewLRU[ownKey, *knownRow](size, nil)
	return &known{rows: rows}, err
}

func (k *known) get(key CounterKey) *knownRow {
	r, _ := k.rows.Get(ownKey{key.Customer, key.Meter})
	return r
}

// keep keeps a row, but for one with holds, which the ledger writes, and for one with long
// logs, of which few would take all of the memory.
func (k *known) keep(key CounterKey, r knownRow) {
	own := ownKey{key.Customer, key.Meter}
	if _, due := unmarked(r.state); due != 0 || len(r.state) > largeState {
		k.rows.Remove(own)
		return
	}
	if old, ok := k.rows.Get(own); ok {
		*old = r
		return
	}
	fresh := r
	k.rows.Add(own, &fresh)
}

func (k *known) forget(key CounterKey) { k.rows.Remove(ownKey{key.Customer, key.Meter}) }

// tell notes how many of some rows that were known had been written by somebody else.
func (k *known) tell(stale, of int) {
	if of > 0 {
		k.stale += (1024*stale/of - k.stale) / 8
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
	var keys keyColumns
	for _, g := range groups {
		if g.known = l.known.get(g.own()); g.known == nil || l.known.stale >= mostStale {
			g.read = true
			reading = append(reading, g)
			keys.add(g.own())
		}
	}
	if len(reading) == 0 {
		return nil
	}
	l.params.reset()
	keys.encode(&l.params)
	rows := make([]knownRow, len(reading))
	there := make([]bool, len(reading))
	read := func(r *pgconn.ResultReader) error {
		return eachRow(r, len(reading), func(n int, cols [][]byte) error {
			there[n] = true
			return rows[n].read(cols)
		})
	}
	if err := l.session.store.run(ctx, []step{{name: recallRows, params: l.params.values(), read: read, commit: true}}); err != nil {
		return err
	}
	stale, of := 0, 0
	for i, g := range reading {
		if old := g.known; old != nil {
			of++
			if old.version != rows[i].version || old.at != rows[i].at {
				stale++
			}
		}
		if g.known = nil; there[i] {
			g.known = &rows[i]
			l.known.keep(g.own(), rows[i])
		}
	}
	l.known.tell(stale, of)
	return nil
}

// read reads the columns of recallSQL.
func (r *knownRow) read(cols [][]byte) (err error) {
	var units int64
	if err = readAll(cols, &r.at, &r.version, &r.change, &r.hour, &units); err != nil {
		return err
	}
	r.counted = units > 0
	r.state, err = readInts(cols[5])
	return err
}
