package ledger

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// read locks and reads what the operations of a batch need: the counters, what is there of
// their receipts, and where a counter says that it has them, its holds.
func (l *Ledger) read(f *session.Flight, batch []*Operation, now int64) (*books, error) {
	b := &books{
		node: l.node, now: now, accounts: make(map[model.CounterKey]*account), receipts: make(map[receiptKey]*receipt),
		usage: make(map[model.HourKey]int64), made: make(map[int64]int),
	}
	var owns, values, missing []model.CounterKey
	var ids []receiptKey
	var asked []*hours
	for _, o := range batch {
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
		if o.hours != nil {
			asked = append(asked, o.hours)
		}
	}
	if missing = sorted(missing, model.CompareKeys); len(missing) > 0 {
		f.Do(InsertRows, l.encode(session.ColumnsOf(missing).Encode))
	}
	due := make(map[model.CounterKey]bool)
	b.cautious = l.Cautious()
	l.lock(f, b, sorted(owns, model.CompareKeys), due)
	l.lock(f, b, sorted(values, model.CompareKeys), due) // who holds the own row writes them
	if ids = sorted(ids, compareIDs); len(ids) > 0 {
		f.Ask(ReadTurn, nil, b.readTurn)
		f.Ask(FindReceipts, l.encode(idColumns(ids).encode), func(r *pgconn.ResultReader) error { return b.readReceipts(r, ids) })
	}
	if err := f.Answers(); err != nil || len(due)+len(asked) == 0 {
		return b, err
	}
	if len(due) > 0 {
		held := slices.SortedFunc(maps.Keys(due), model.CompareKeys)
		f.Ask(ledgerHolds, l.encode(session.ColumnsOf(held).Encode), func(r *pgconn.ResultReader) error { return b.readHolds(r, held) })
	}
	if len(asked) > 0 {
		l.askHours(f, b, asked)
	}
	return b, f.Answers()
}

// lock locks and reads rows. When cautious, it waits for none: a row that is there and that it
// could not lock is held.
func (l *Ledger) lock(f *session.Flight, b *books, keys []model.CounterKey, due map[model.CounterKey]bool) {
	if len(keys) == 0 {
		return
	}
	for _, key := range keys {
		b.accounts[key] = &account{key: key}
	}
	name := LockRows
	if b.cautious {
		name = LockFree
	}
	f.Ask(name, l.encode(session.ColumnsOf(keys).Encode), func(r *pgconn.ResultReader) error { return b.readAccounts(r, keys, due) })
	if !b.cautious {
		return
	}
	f.Ask(ledgerThere, l.encode(session.ColumnsOf(keys).Encode), func(r *pgconn.ResultReader) error {
		return session.EachRow(r, len(keys), func(n int, _ [][]byte) error {
			a := b.accounts[keys[n]]
			a.held = !a.there
			return nil
		})
	})
}

// askHours asks for finished hours. For each counter it asks for one span that has all hours that
// operations need.
func (l *Ledger) askHours(f *session.Flight, b *books, asked []*hours) {
	b.hours = make(map[model.CounterKey]*hours)
	for _, h := range asked {
		all := b.hours[h.counter]
		if all == nil {
			all = &hours{h.counter, h.from, h.to, make(map[int64]int64), make(map[int64]int64)}
			b.hours[h.counter] = all
		}
		all.from, all.to = min(all.from, h.from), max(all.to, h.to)
	}
	keys := slices.SortedFunc(maps.Keys(b.hours), model.CompareKeys)
	var from, to []int64
	for _, key := range keys {
		from, to = append(from, b.hours[key].from), append(to, b.hours[key].to)
	}
	columns := session.ColumnsOf(keys)
	encode := func(p *session.Params) { columns.Encode(p); p.Int8(from); p.Int8(to) }
	f.Ask(ledgerHours, l.encode(encode), func(r *pgconn.ResultReader) error {
		return session.EachRow(r, len(keys), func(n int, cols [][]byte) error {
			var hour, units, adjusted int64
			err := session.ReadAll(cols, &hour, &units, &adjusted)
			if h := b.hours[keys[n]]; adjusted != 0 {
				h.adjusted[hour] += adjusted
			} else {
				h.units[hour] = units
			}
			return err
		})
	})
}

// sorted sorts and takes out what is there twice.
func sorted[T comparable](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

// encode fills the parameters of a statement, which are sent before the next one's are.
func (l *Ledger) encode(fill func(*session.Params)) [][]byte {
	l.params.Reset()
	fill(&l.params)
	return l.params.Values()
}

func (b *books) readAccounts(r *pgconn.ResultReader, keys []model.CounterKey, due map[model.CounterKey]bool) error {
	return session.EachRow(r, len(keys), func(n int, cols [][]byte) (err error) {
		a := b.accounts[keys[n]]
		a.there = true
		if err = session.ReadAll(cols, &a.At, &a.hour, &a.units, &a.total, &a.Version, &a.Change); err != nil {
			return err
		}
		a.read.version, a.read.at = a.Version, a.At
		stored, bad := session.ReadInts(cols[6])
		if bad != nil {
			a.bad = fmt.Errorf("%w: state: %w", model.ErrMalformed, bad)
		}
		first := int64(0)
		if a.State, first = model.Unmarked(stored); first != 0 {
			due[a.key] = true
		}
		return nil
	})
}

func (b *books) readTurn(r *pgconn.ResultReader) (err error) {
	slot := int64(-1)
	for r.NextRow() {
		slot, err = session.ReadInt(r.Values()[0])
	}
	if err == nil && (slot < 0 || int(slot) >= len(ReceiptTables)) {
		err = fmt.Errorf("receipts are written to table %d", slot)
	}
	b.slot = int16(slot)
	return err
}

func (b *books) readReceipts(r *pgconn.ResultReader, ids []receiptKey) error {
	return session.EachRow(r, len(ids), func(n int, cols [][]byte) (err error) {
		found := &receipt{receiptKey: ids[n]}
		var slot, meter, state int64
		if err = session.ReadAll(cols, &slot, &found.payload, &found.at, &found.cost, &found.returned, &meter, &state); err != nil {
			return err
		}
		found.slot, found.meter, found.state = int16(slot), int32(meter), int16(state)
		// One that cannot be read is the fault of its own operations only.
		found.receiptBody, found.bad = decodeBody(cols[7])
		b.receipts[ids[n]] = found
		return nil
	})
}

func (b *books) readHolds(r *pgconn.ResultReader, held []model.CounterKey) error {
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
			b.accounts[held[n]].bad = fmt.Errorf("%w: %w", model.ErrMalformed, err)
			return nil
		}
		lists[n] = slices.Grow(lists[n], len(keys))
		for i := range keys {
			lists[n] = append(lists[n], model.Hold{Key: keys[i], Expires: expires[i], At: at[i], Cost: cost[i], Limits: limits})
		}
		return nil
	})
	for i, list := range lists {
		b.accounts[held[i]].Holds = model.NewHolds(list)
	}
	return err
}

// idColumns are receipts' keys as the statements take them.
type idColumns []receiptKey

func (c idColumns) encode(p *session.Params) {
	shard, customer, key := make([]int16, len(c)), make([]int64, len(c)), make([][16]byte, len(c))
	for i, id := range c {
		shard[i], customer[i], key[i] = model.Shard(id.customer), id.customer, id.key
	}
	p.Int2(shard)
	p.Int8(customer)
	p.UUID(key)
}

func compareIDs(a, b receiptKey) int {
	return cmp.Or(cmp.Compare(model.Shard(a.customer), model.Shard(b.customer)), cmp.Compare(a.customer, b.customer), bytes.Compare(a.key[:], b.key[:]))
}
