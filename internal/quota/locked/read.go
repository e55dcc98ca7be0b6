package locked

import (
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// read locks and reads the data that the operations of a batch need: the counters, the existing receipts, and the
// holds of counters that have holds.
func (w *Worker) read(pipe *session.Pipeline, batch []*Operation, now int64) (*transaction, error) {
	tx := &transaction{
		node: w.node, now: now, counters: make(map[model.CounterKey]*lockedRow), receipts: make(map[receiptKey]*receipt),
		usage: make(map[model.HourKey]int64), made: make(map[int64]int), levels: make(map[model.CounterKey]level), newest: -1,
	}
	var owns, values, missing []model.CounterKey
	var ids []receiptKey
	var asked []*hours
	numbered := false
	for _, o := range batch {
		numbered = numbered || o.numbered
		for _, key := range o.keys {
			if key.Attribute != "" {
				values = append(values, key)
				continue
			}
			owns = append(owns, key)
			if o.insert {
				missing = append(missing, key)
			}
		}
		ids = append(append(ids, o.own...), o.others...)
		asked = append(asked, o.hours...)
	}
	if missing = sorted(missing, model.CompareKeys); len(missing) > 0 {
		pipe.Do(InsertRows, w.encode(session.ColumnsOf(missing).Encode))
	}
	due := make(map[model.CounterKey]bool)
	tx.skipsLocked = w.SkipsLocked()
	w.lock(pipe, tx, sorted(owns, model.CompareKeys), due)
	w.lock(pipe, tx, sorted(values, model.CompareKeys), due) // the rows of values are written under the lock of the own row
	if numbered {
		pipe.Ask(ReadNewest, nil, func(r *pgconn.ResultReader) (err error) {
			for r.NextRow() {
				tx.newest, err = session.ReadInt(r.Values()[0])
			}
			return err
		})
	}
	if ids = sorted(ids, compareIDs); len(ids) > 0 {
		pipe.Ask(ReadTurn, nil, tx.readTurn)
		pipe.Ask(FindReceipts, w.encode(idColumns(ids).encode), func(r *pgconn.ResultReader) error { return tx.readReceipts(r, ids) })
	}
	if err := pipe.Answers(); err != nil || len(due)+len(asked) == 0 {
		return tx, err
	}
	if len(due) > 0 {
		held := slices.SortedFunc(maps.Keys(due), model.CompareKeys)
		pipe.Ask(askHolds, w.encode(session.ColumnsOf(held).Encode), func(r *pgconn.ResultReader) error { return tx.readHolds(r, held) })
	}
	if len(asked) > 0 {
		w.askHours(pipe, tx, asked)
	}
	return tx, pipe.Answers()
}

// lock locks and reads rows. With SKIP LOCKED it waits for no row, and marks each existing row that it could not
// lock as held.
func (w *Worker) lock(pipe *session.Pipeline, tx *transaction, keys []model.CounterKey, due map[model.CounterKey]bool) {
	if len(keys) == 0 {
		return
	}
	for _, key := range keys {
		tx.counters[key] = &lockedRow{key: key}
	}
	name := LockRows
	if tx.skipsLocked {
		name = LockFree
	}
	pipe.Ask(name, w.encode(session.ColumnsOf(keys).Encode), func(r *pgconn.ResultReader) error { return tx.readCounters(r, keys, due) })
	if !tx.skipsLocked {
		return
	}
	pipe.Ask(askThere, w.encode(session.ColumnsOf(keys).Encode), func(r *pgconn.ResultReader) error {
		return session.EachRow(r, len(keys), func(n int, _ [][]byte) error {
			c := tx.counters[keys[n]]
			c.held = !c.there
			return nil
		})
	})
}

// askHours requests finished hours. For each counter, it requests one span that contains all hours that operations
// need.
func (w *Worker) askHours(pipe *session.Pipeline, tx *transaction, asked []*hours) {
	tx.hours = make(map[model.CounterKey]*hours)
	for _, h := range asked {
		all := tx.hours[h.counter]
		if all == nil {
			all = &hours{h.counter, h.from, h.to, make(map[int64]int64), make(map[int64]int64)}
			tx.hours[h.counter] = all
		}
		all.from, all.to = min(all.from, h.from), max(all.to, h.to)
	}
	keys := slices.SortedFunc(maps.Keys(tx.hours), model.CompareKeys)
	var from, to []int64
	for _, key := range keys {
		from, to = append(from, tx.hours[key].from), append(to, tx.hours[key].to)
	}
	columns := session.ColumnsOf(keys)
	first, last := model.Enclose(from, to)
	encode := func(p *session.Params) { columns.Encode(p); p.Int8(from); p.Int8(to); p.Int8([]int64{first, last}) }
	pipe.Ask(askHours, w.encode(encode), func(r *pgconn.ResultReader) error {
		return session.EachRow(r, len(keys), func(n int, cols [][]byte) error {
			var hour, units, adjusted int64
			err := session.ReadAll(cols, &hour, &units, &adjusted)
			if h := tx.hours[keys[n]]; adjusted != 0 {
				h.adjusted[hour] += adjusted
			} else {
				h.units[hour] = units
			}
			return err
		})
	})
}

// sorted sorts a list and removes duplicates.
func sorted[T comparable](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

// encode encodes the parameters of a statement. They must be sent before the parameters of the next statement
// are encoded.
func (w *Worker) encode(fill func(*session.Params)) [][]byte {
	w.params.Reset()
	fill(&w.params)
	return w.params.Values()
}

func (tx *transaction) readCounters(r *pgconn.ResultReader, keys []model.CounterKey, due map[model.CounterKey]bool) error {
	return session.EachRow(r, len(keys), func(n int, cols [][]byte) (err error) {
		c := tx.counters[keys[n]]
		c.there = true
		if err = session.ReadAll(cols, &c.At, &c.hour, &c.units, &c.total, &c.Version, &c.Change, &c.generation); err != nil {
			return err
		}
		c.read.version, c.read.at = c.Version, c.At
		stored, bad := session.ReadInts(cols[7])
		if bad != nil {
			c.bad = fmt.Errorf("%w: state: %w", model.ErrMalformed, bad)
		}
		if c.Departed, err = session.ReadIntsOrNone(cols[8]); err != nil && bad == nil {
			c.bad = fmt.Errorf("%w: departed: %w", model.ErrMalformed, err)
		}
		c.read.departed = c.Departed
		first := int64(0)
		if c.State, first = model.Unmarked(stored); first != 0 {
			due[c.key] = true
		}
		return nil
	})
}

func (tx *transaction) readTurn(r *pgconn.ResultReader) (err error) {
	slot := int64(-1)
	for r.NextRow() {
		slot, err = session.ReadInt(r.Values()[0])
	}
	if err == nil && (slot < 0 || int(slot) >= len(ReceiptTables)) {
		err = fmt.Errorf("receipts are written to table %d", slot)
	}
	tx.slot = int16(slot)
	return err
}

func (tx *transaction) readReceipts(r *pgconn.ResultReader, ids []receiptKey) error {
	return session.EachRow(r, len(ids), func(n int, cols [][]byte) (err error) {
		found := &receipt{receiptKey: ids[n]}
		var slot, meter, state int64
		if err = session.ReadAll(cols, &slot, &found.payload, &found.at, &found.cost, &found.returned, &meter, &state); err != nil {
			return err
		}
		found.slot, found.meter, found.state = int16(slot), int32(meter), int16(state)
		// A receipt that cannot be read affects only its own operations.
		found.receiptBody, found.bad = decodeBody(cols[7])
		tx.receipts[ids[n]] = found
		return nil
	})
}

func (tx *transaction) readHolds(r *pgconn.ResultReader, held []model.CounterKey) error {
	lists := make([][]model.Hold, len(held))
	err := session.EachRow(r, len(held), func(n int, cols [][]byte) error {
		keys, err := session.ReadKeys(cols[4])
		var ints [4][]int64
		for i := 0; i < len(ints) && err == nil; i++ {
			ints[i], err = session.ReadInts(cols[i])
		}
		limits, expires, at, cost := ints[0], ints[1], ints[2], ints[3]
		if err == nil && (len(expires) != len(keys) || len(at) != len(keys) || len(cost) != len(keys)) {
			err = fmt.Errorf("holds of %d keys have %d expiries, %d instants and %d costs", len(keys), len(expires), len(at), len(cost))
		}
		if err != nil {
			tx.counters[held[n]].bad = fmt.Errorf("%w: %w", model.ErrMalformed, err)
			return nil
		}
		lists[n] = slices.Grow(lists[n], len(keys))
		for i := range keys {
			lists[n] = append(lists[n], model.Hold{Key: keys[i], Expires: expires[i], At: at[i], Cost: cost[i], Limits: limits})
		}
		return nil
	})
	for i, list := range lists {
		tx.counters[held[i]].Holds = model.NewHolds(list)
	}
	return err
}
