package lane

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// Most hits are charged by a swap. The Go model charges a group's hits to the node's copy of the counter's row.
// One UPDATE writes the charged rows, each only if the stored row still equals the copy. The UPDATE returns the
// keys of the rows that it wrote, and only these rows are charged. Other rows stay unchanged, and the worker
// decides their hits. Therefore only the newest row is ever charged, and no row is locked before it is written.

// All arrays are in the lock order: ascending by shard, customer, meter, attribute. Each array element is one
// lookup of a counter's key, so that no statistics can change the plan. The statements contain no clock and no
// volatile function.
//
// An UPDATE compares the shard with = ANY instead of =. With a plain equality of the index's first column,
// PostgreSQL considers a merge join with a scan of the whole index. It chooses the scan if the table had a row or
// two when it was analyzed, and keeps the plan while the table grows.

// rowValues reads all numbers of a swap from one array. Fifteen arrays that were joined to rows took an eighth of
// the statement's time.
//
// The array's first number is the index at which the last row of numbers begins. It is followed by rows of
// swapWidth numbers, as swapValues.fill writes them, and then by the states of these rows.
//
// The attribute is always empty, but is computed for each row, because with a constant PostgreSQL could scan the
// counters first.
const rowValues = `
FROM generate_series(2, (($1::bigint[])[1])::integer, 13) AS g(n),
LATERAL (SELECT (($1::bigint[])[n])::smallint AS shard, ($1::bigint[])[n + 1] AS customer, (($1::bigint[])[n + 2])::integer AS meter,
                ($1::bigint[])[n + 3] AS version, ($1::bigint[])[n + 4] AS since, ($1::bigint[])[n + 5] AS judged, ($1::bigint[])[n + 6] AS hour,
                ($1::bigint[])[n + 7] AS at, ($1::bigint[])[n + 8] AS change, ($1::bigint[])[n + 9] AS cost, ($1::bigint[])[n + 10] AS run,
                ($1::bigint[])[n + 11] AS state_from, ($1::bigint[])[n + 12] AS state_to, left('', n) AS attribute) i`

// swapSQL writes rows that have not been written since the node read them. A charge changes the version and the
// instant. The change number is compared, too, because it may also rise without a charge. The row's hour must be
// the running hour, or the row must have no units.
//
// If another transaction holds the lock of a row, the UPDATE waits for the row, in the lock order, and then
// compares again.
//
// A plain slice in a SET crashes a server with Citus; a slice within coalesce does not.
const swapSQL = `
UPDATE counters c
SET state = coalesce(($1::bigint[])[i.state_from:i.state_to], '{}'), at = i.at, change = i.change, version = c.version + i.run, hour = i.hour,
    units = CASE WHEN c.units > 9223372036854775807 - i.cost THEN 9223372036854775807 ELSE c.units + i.cost END,
    total = CASE WHEN c.total > 9223372036854775807 - i.cost THEN 9223372036854775807 ELSE c.total + i.cost END` + rowValues + `
WHERE c.shard = ANY (ARRAY[i.shard]) AND c.customer = i.customer AND c.meter = i.meter AND c.attribute = i.attribute
  AND c.version = i.version AND c.at = i.since AND c.change = i.judged AND (c.hour = i.hour OR c.units = 0)
RETURNING c.customer, c.meter`

// makeSQL creates rows in the state after their first charges. It leaves existing rows unchanged. It precedes all
// locks, and its rows are in the lock order.
const makeSQL = `
INSERT INTO counters (shard, customer, meter, attribute, at, hour, units, total, version, change, state)
SELECT i.shard, i.customer, i.meter, i.attribute, i.at, i.hour, i.cost, i.cost, i.run, i.change,
       coalesce(($1::bigint[])[i.state_from:i.state_to], '{}')` + rowValues + `
ON CONFLICT DO NOTHING
RETURNING customer, meter`

// recallSQL reads rows without a lock. The parameters $1–$4 are the key.
const recallSQL = `
SELECT i.n, c.at, c.version, c.change, c.hour, c.units, c.state
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[]) WITH ORDINALITY AS i(shard, customer, meter, attribute, n),
LATERAL (SELECT at, version, change, hour, units, state FROM counters
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND attribute = i.attribute OFFSET 0) c`

// The names of a lane's statements.
const (
	SwapRows   session.StatementName = "quotad_swap"
	MakeRows   session.StatementName = "quotad_make"
	recallRows session.StatementName = "quotad_recall"
)

// Statements returns the text of each statement. Tests damage a text to verify that the damage is noticed.
func Statements() map[session.StatementName]string {
	return map[session.StatementName]string{SwapRows: swapSQL, MakeRows: makeSQL, recallRows: recallSQL}
}

// readKnown reads the columns of recallSQL.
func readKnown(r *model.Known, cols [][]byte) (err error) {
	var units int64
	if err = session.ReadAll(cols, &r.At, &r.Version, &r.Change, &r.Hour, &units); err != nil {
		return err
	}
	r.Counted, r.Missing = units > 0, false
	if r.State, err = session.AppendInts(r.State[:0], cols[5]); err == nil {
		err = model.CheckHour(r.Hour, units)
	}
	return err
}

// way specifies how a group is decided.
type way int

const (
	bySwap     way = iota // the lane writes the row
	byMaking              // the lane creates the row
	byReading             // the lane must read the row first
	byWorker              // the worker must lock the row
	asItStands            // all hits of the group are refused; nothing is written
	asStale               // the group's target is stale or barred
)

// plan decides the group's hits on the known row, and returns the next step for the group.
func (g *Group) plan() way {
	old, t := &g.known, g.Target
	switch {
	case !g.knows && g.read: // the model cannot have written the row that was read; the worker reports the error
		return byWorker
	case !g.knows:
		return byReading
	case g.locks():
		return byWorker
	case old.Change > t.AsOf(): // the worker checks whether there is such a change
		return byWorker
	}
	instant := max(g.now, old.At)
	if g.stale = t.Over(instant); g.stale == nil {
		g.stale = t.Barred(instant)
	}
	if g.stale != nil {
		return asStale
	}
	hour, _ := t.RunningHour(instant)
	rows, space := [1]model.Row{old.Row}, g.space
	if t.Logs() { // decisions keep references to logs, and the group's memory is reused
		rows[0].State, space = slices.Clone(old.State), nil
	}
	g.Decide(rows[:], g.now, space)
	if space != nil && g.Admitted > 0 {
		g.space = rows[0].State
	}
	switch {
	case g.Admitted == 0 && !g.read:
		return byReading
	case g.raises(rows[0], instant): // the raised threshold must be written with the charge
		return byWorker
	case g.Admitted == 0 && old.Change == t.Change && !old.Missing:
		return asItStands
	case g.Admitted == 0, old.Counted && old.Hour != hour: // the change must be stored, or the hour booked
		return byWorker
	}
	g.after = model.Known{Row: rows[0], Hour: hour, Counted: true}
	if g.after.Change = t.Change; old.Missing {
		return byMaking
	}
	return bySwap
}

// raises reports whether the group reaches a threshold. r is the row after the group's hits.
func (g *Group) raises(r model.Row, instant int64) bool {
	if !g.Target.Notifies() {
		return false
	}
	refused := uint32(0)
	for _, h := range g.Hits {
		if g.Refused && !h.Result.Decision.Allowed {
			refused |= h.Result.Decision.RefusedOwn()
		}
	}
	all, _ := g.Target.Raise(&r, instant, refused)
	return len(all) > 0
}

// locks reports whether the known row is too incomplete for a swap. Either the contents of its logs, holds or cap
// are not known, or the bucket of a limit that may have returned is missing.
func (g *Group) locks() bool {
	k := &g.known
	return k.Large || k.Held() || g.Target.Uncounted(k.State) || !k.Missing && !g.Target.Fits(0, k.State, max(g.now, k.At))
}

// swapValues is the parameter of swapSQL and makeSQL.
type swapValues []int64

// swapWidth is the number of values of a row beside its state. rowValues contains the same number.
const swapWidth = 13

// fill sets the values of groups, which are in the lock order, so that rows are locked in ascending order of their
// keys.
func (v *swapValues) fill(groups []*Group) {
	b := *v
	if 8*cap(b) > session.MostKept {
		b = nil
	}
	b = append(b[:0], int64(2+swapWidth*(len(groups)-1)))
	from := 2 + swapWidth*len(groups)
	for _, g := range groups {
		own, old, after := g.Own(), &g.known, &g.after
		until := from + len(after.State)
		b = append(b, int64(model.Shard(own.Customer)), own.Customer, int64(own.Meter), old.Version, old.At, old.Change, after.Hour,
			after.At, after.Change, g.Cost, int64(g.Admitted), int64(from), int64(until-1))
		from = until
	}
	for _, g := range groups {
		b = append(b, g.after.State...)
	}
	*v = b
}

// Writing is a statement that writes the rows of groups.
type Writing struct {
	Groups []*Group
	values swapValues
	params session.Params
}

// takeRepeated sorts the groups, and removes groups on the counter of an earlier group. An UPDATE … FROM applies
// only one source row to each target row and would therefore charge too little.
func (w *Writing) takeRepeated(faults session.Faults) (others []*Group) {
	slices.SortStableFunc(w.Groups, func(a, b *Group) int { return model.CompareKeys(a.Own(), b.Own()) })
	var last model.CounterKey
	w.Groups = slices.DeleteFunc(w.Groups, func(g *Group) bool {
		same := g.Own() == last && !faults.KeepTogether
		if last = g.Own(); same {
			others = append(others, g)
		}
		return same
	})
	return others
}

// hits returns the number of hits to be charged.
func (w *Writing) hits() (n int) {
	for _, g := range w.Groups {
		n += g.Admitted
	}
	return n
}

// step returns a step that writes the groups, which are in the lock order.
func (w *Writing) step(name session.StatementName) session.Step {
	w.values.fill(w.Groups)
	w.params.Reset()
	w.params.Int8(w.values)
	return session.Step{Name: name, Params: w.params.Values(), Read: w.read}
}

// read records which rows were written.
func (w *Writing) read(r *pgconn.ResultReader) (bad error) {
	for r.NextRow() {
		var customer, meter int64
		err := session.ReadAll(r.Values(), &customer, &meter)
		at, ok := slices.BinarySearchFunc(w.Groups, model.CounterKey{Customer: customer, Meter: int32(meter)},
			func(g *Group, key model.CounterKey) int { return model.CompareKeys(g.Own(), key) })
		switch {
		case err != nil:
			bad = err
		case !ok:
			bad = fmt.Errorf("an answer about counter %d/%d, which is not in the batch", customer, meter)
		default:
			w.Groups[at].done = true
		}
	}
	return bad
}

func (w *Writing) reset() { w.Groups = w.Groups[:0] }

// Group contains hits that a lane decides together.
type Group struct {
	queue.Group
	now int64 // the instant of the judgment, by the customer's clock, µs; a later instant of a row has precedence

	known model.Known // the row as this node last saw it; only valid if knows is true
	knows bool
	read  bool        // the row was read in this batch
	stale error       // the reason why the target is stale or barred
	after model.Known // the row after the charge
	done  bool        // the database has written after
	space []int64     // the memory for the state of after
}

// gathering makes groups of hits, and reuses their memory for the next batch.
type gathering struct {
	groups []*Group
	spare  []*Group // all groups that were ever made
	byKey  map[model.GroupKey]*Group
}

// mostSpare is the maximum capacity for hits that a group keeps for reuse. It does not apply to the first group.
const mostSpare = 64

// group returns a new group.
func (a *gathering) group(t *model.Target, now int64) *Group {
	n := len(a.groups)
	if n == len(a.spare) {
		a.spare = append(a.spare, new(Group))
	}
	g := a.spare[n]
	if n > 0 && cap(g.Hits) > mostSpare { // a batch may consist of one customer's hits, but then it has only one group
		g.Hits, g.Series = nil, model.Series{}
	}
	g.Target, g.now = t, now
	a.groups = append(a.groups, g)
	return g
}

// renew resets a group and keeps its memory.
func (g *Group) renew() {
	*g = Group{Group: queue.Group{Hits: g.Hits[:0], Series: g.Empty()}, known: g.known.Empty(), space: g.space[:0]}
}

// drop releases the last batch's hits. Otherwise a group that the next batch does not need would keep its hits in
// memory, and with them all hits that one caller sent together.
func (a *gathering) drop() {
	for _, g := range a.groups {
		clear(g.Hits)
		g.renew()
	}
	a.groups = a.groups[:0]
}

// gather makes groups of hits, in order of arrival. A group is judged at now, or at the instant of its customer's
// test clock. The groups are valid until the next call of gather.
func (a *gathering) gather(hits []*queue.Hit, now int64) []*Group {
	if a.byKey == nil {
		a.byKey = make(map[model.GroupKey]*Group, len(hits))
	}
	clear(a.byKey)
	a.drop()
	for _, h := range hits {
		key := h.Target.Group()
		g := a.byKey[key]
		if g == nil {
			g = a.group(h.Target, h.Target.Instant(now))
			a.byKey[key] = g
		}
		g.Hits = append(g.Hits, h)
	}
	return a.groups
}
