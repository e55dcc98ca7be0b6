package quota

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// read locks and reads what the operations of a batch need: the counters, what is there of
// their receipts, and where a counter says that it has them, its holds.
func (l *ledger) read(f *flight, batch []*operation, now int64) (*books, error) {
	b := &books{now: now, accounts: make(map[CounterKey]*account), receipts: make(map[receiptKey]*receipt), usage: make(map[hourKey]int64)}
	var owns, values, missing []CounterKey
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
	if missing = sorted(missing, compareKeys); len(missing) > 0 {
		f.do(insertRows, l.encode(columnsOf(missing).encode))
	}
	due := make(map[CounterKey]bool)
	b.cautious = l.cautious()
	l.lock(f, b, sorted(owns, compareKeys), due)
	l.lock(f, b, sorted(values, compareKeys), due) // who holds the own row writes them
	if ids = sorted(ids, compareIDs); len(ids) > 0 {
		f.ask(ledgerTurn, nil, b.readTurn)
		f.ask(ledgerFind, l.encode(idColumns(ids).encode), func(r *pgconn.ResultReader) error { return b.readReceipts(r, ids) })
	}
	if err := f.answers(); err != nil || len(due)+len(asked) == 0 {
		return b, err
	}
	if len(due) > 0 {
		held := slices.SortedFunc(maps.Keys(due), compareKeys)
		f.ask(ledgerHolds, l.encode(columnsOf(held).encode), func(r *pgconn.ResultReader) error { return b.readHolds(r, held) })
	}
	if len(asked) > 0 {
		l.askHours(f, b, asked)
	}
	err := f.answers()
	for _, a := range b.accounts {
		slices.SortFunc(a.holds, compareHolds)
	}
	return b, err
}

// lock locks and reads rows. When cautious, it waits for none: a row that is there and that it
// could not lock is held.
func (l *ledger) lock(f *flight, b *books, keys []CounterKey, due map[CounterKey]bool) {
	if len(keys) == 0 {
		return
	}
	for _, key := range keys {
		b.accounts[key] = &account{key: key}
	}
	name := ledgerLock
	if b.cautious {
		name = ledgerLockFree
	}
	f.ask(name, l.encode(columnsOf(keys).encode), func(r *pgconn.ResultReader) error { return b.readAccounts(r, keys, due) })
	if !b.cautious {
		return
	}
	f.ask(ledgerThere, l.encode(columnsOf(keys).encode), func(r *pgconn.ResultReader) error {
		return eachRow(r, len(keys), func(n int, _ [][]byte) error {
			a := b.accounts[keys[n]]
			a.held = !a.there
			return nil
		})
	})
}

// askHours asks for finished hours: of a counter all that lie between those asked for.
func (l *ledger) askHours(f *flight, b *books, asked []*hours) {
	b.hours = make(map[CounterKey]*hours)
	for _, h := range asked {
		all := b.hours[h.counter]
		if all == nil {
			all = &hours{h.counter, h.from, h.to, make(map[int64]int64), make(map[int64]int64)}
			b.hours[h.counter] = all
		}
		all.from, all.to = min(all.from, h.from), max(all.to, h.to)
	}
	keys := slices.SortedFunc(maps.Keys(b.hours), compareKeys)
	var from, to []int64
	for _, key := range keys {
		from, to = append(from, b.hours[key].from), append(to, b.hours[key].to)
	}
	columns := columnsOf(keys)
	encode := func(p *params) { columns.encode(p); p.int8(from); p.int8(to) }
	f.ask(ledgerHours, l.encode(encode), func(r *pgconn.ResultReader) error {
		return eachRow(r, len(keys), func(n int, cols [][]byte) error {
			var hour, units, adjusted int64
			err := readAll(cols, &hour, &units, &adjusted)
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
func (l *ledger) encode(fill func(*params)) [][]byte {
	l.params.reset()
	fill(&l.params)
	return l.params.values()
}

func (b *books) readAccounts(r *pgconn.ResultReader, keys []CounterKey, due map[CounterKey]bool) error {
	return eachRow(r, len(keys), func(n int, cols [][]byte) (err error) {
		a := b.accounts[keys[n]]
		a.there = true
		if err = readAll(cols, &a.at, &a.hour, &a.units, &a.total, &a.version, &a.change); err != nil {
			return err
		}
		a.read.version, a.read.at = a.version, a.at
		stored, err := readInts(cols[6])
		first := int64(0)
		if a.state, first = unmarked(stored); first != 0 {
			due[a.key] = true
		}
		return err
	})
}

func (b *books) readTurn(r *pgconn.ResultReader) (err error) {
	slot := int64(-1)
	for r.NextRow() {
		slot, err = readInt(r.Values()[0])
	}
	if err == nil && (slot < 0 || int(slot) >= len(slots)) {
		err = fmt.Errorf("receipts are written to table %d", slot)
	}
	b.slot = int16(slot)
	return err
}

func (b *books) readReceipts(r *pgconn.ResultReader, ids []receiptKey) error {
	return eachRow(r, len(ids), func(n int, cols [][]byte) (err error) {
		found := &receipt{receiptKey: ids[n]}
		var slot, meter, state int64
		if err = readAll(cols, &slot, &found.payload, &found.at, &found.cost, &found.returned, &meter, &state); err != nil {
			return err
		}
		found.slot, found.meter, found.state = int16(slot), int32(meter), int16(state)
		// One that cannot be read is the fault of its own operations only.
		found.receiptBody, found.bad = decodeBody(cols[7])
		b.receipts[ids[n]] = found
		return nil
	})
}

func (b *books) readHolds(r *pgconn.ResultReader, held []CounterKey) error {
	return eachRow(r, len(held), func(n int, cols [][]byte) (err error) {
		var h hold
		if err = readAll(cols, &h.expires, &h.at, &h.cost); err != nil {
			return err
		}
		if h.key, err = readKey(cols[3]); err == nil {
			h.limits, err = readInts(cols[4])
		}
		a := b.accounts[held[n]]
		a.holds = append(a.holds, h)
		return err
	})
}

// idColumns are receipts' keys as the statements take them.
type idColumns []receiptKey

func (c idColumns) encode(p *params) {
	shard, customer, key := make([]int16, len(c)), make([]int64, len(c)), make([][16]byte, len(c))
	for i, id := range c {
		shard[i], customer[i], key[i] = Shard(id.customer), id.customer, id.key
	}
	p.int2(shard)
	p.int8(customer)
	p.uuid(key)
}

func compareIDs(a, b receiptKey) int {
	return cmp.Or(cmp.Compare(Shard(a.customer), Shard(b.customer)), cmp.Compare(a.customer, b.customer), bytes.Compare(a.key[:], b.key[:]))
}
