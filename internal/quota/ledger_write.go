package quota

import (
	"cmp"
	"maps"
	"slices"
)

// write sends what the operations left in the books. It goes out with the commit.
func (b *books) write(f *flight, p *params) {
	send := func(name statementName, rows int, fill func()) {
		if rows == 0 {
			return
		}
		p.reset()
		fill()
		f.do(name, p.values())
	}
	hours := b.finishedHours()
	send(ledgerUsage, len(hours), func() { b.encodeHours(p, hours) })
	changed, made := b.changed()
	send(ledgerSave, len(changed), func() { encodeAccounts(p, changed) })
	send(ledgerMake, len(made), func() { encodeAccounts(p, made) })
	fresh, later := b.receiptsToWrite()
	send(ledgerIssue+statementName(slots[b.slot]), len(fresh), func() { encodeFresh(p, fresh) })
	for slot := range slots {
		these := later[slot]
		send(ledgerChange+statementName(slots[slot]), len(these), func() { encodeChanged(p, these) })
	}
	compare := func(a, b heldBy) int {
		return cmp.Or(compareKeys(a.CounterKey, b.CounterKey), compareHolds(a.hold, b.hold))
	}
	slices.SortFunc(b.opened, compare)
	slices.SortFunc(b.closed, compare)
	send(ledgerOpen, len(b.opened), func() { encodeOpened(p, b.opened) })
	send(ledgerClose, len(b.closed), func() { encodeClosed(p, b.closed) })
	send(ledgerAdjust, len(b.adjusted), func() { encodeAdjusted(p, b.adjusted) })
}

// changed are the accounts whose rows are to be written, and made those that have none, in
// lock order.
func (b *books) changed() (changed, made []*account) {
	for _, a := range b.accounts {
		switch {
		case a.dirty && a.there:
			changed = append(changed, a)
		case a.dirty:
			made = append(made, a)
		}
	}
	byKey := func(a, b *account) int { return compareKeys(a.key, b.key) }
	slices.SortFunc(changed, byKey)
	slices.SortFunc(made, byKey)
	return changed, made
}

func encodeAccounts(p *params, accounts []*account) {
	var keys keyColumns
	var columns [6][]int64
	var states []int64
	var from, to []int32
	for _, a := range accounts {
		keys.add(a.key)
		for i, v := range [...]int64{a.at, a.hour, a.units, a.total, a.version, a.change} {
			columns[i] = append(columns[i], v)
		}
		from = append(from, int32(len(states)+1))
		states = append(states, marked(a.state, a.holds)...)
		to = append(to, int32(len(states)))
	}
	keys.encode(p)
	for _, column := range columns {
		p.int8(column)
	}
	p.int4(from)
	p.int4(to)
	p.int8(states)
}

// finishedHours are the hours whose usage changes, in the order of their rows.
func (b *books) finishedHours() []hourKey {
	maps.DeleteFunc(b.usage, func(_ hourKey, units int64) bool { return units == 0 })
	return slices.SortedFunc(maps.Keys(b.usage), func(a, b hourKey) int {
		return cmp.Or(compareKeys(CounterKey{Customer: a.customer, Meter: a.meter}, CounterKey{Customer: b.customer, Meter: b.meter}), cmp.Compare(a.hour, b.hour))
	})
}

func (b *books) encodeHours(p *params, hours []hourKey) {
	columns, units := hourColumns(hours), make([]int64, len(hours))
	for i, h := range hours {
		units[i] = b.usage[h]
	}
	columns.encode(p)
	p.int8(units)
}

// hourColumns are keys of usage, or of adjustments.
type hourColumns []hourKey

func (c hourColumns) encode(p *params) {
	shard, customer, meter, hour := make([]int16, len(c)), make([]int64, len(c)), make([]int32, len(c)), make([]int64, len(c))
	for i, k := range c {
		shard[i], customer[i], meter[i], hour[i] = Shard(k.customer), k.customer, k.meter, k.hour
	}
	p.int2(shard)
	p.int8(customer)
	p.int4(meter)
	p.int8(hour)
}

// receiptsToWrite are the new receipts, and of each table those that have changed.
func (b *books) receiptsToWrite() (fresh []*receipt, changed [len(slots)][]*receipt) {
	for _, r := range b.receipts {
		switch {
		case r.fresh:
			fresh = append(fresh, r)
		case r.changed:
			changed[r.slot] = append(changed[r.slot], r)
		}
	}
	byKey := func(a, b *receipt) int { return compareIDs(a.receiptKey, b.receiptKey) }
	slices.SortFunc(fresh, byKey)
	for slot := range changed {
		slices.SortFunc(changed[slot], byKey)
	}
	return fresh, changed
}

// usualBody is about the size of the body of a hit with two limits, bytes.
const usualBody = 192

// receiptColumns are what receipts have in common when they are new and when they change.
type receiptColumns struct {
	ids            idColumns
	cost, returned []int64
	state          []int16
	body           [][]byte
}

func columnsOfReceipts(receipts []*receipt) (c receiptColumns) {
	for _, r := range receipts {
		c.ids = append(c.ids, r.receiptKey)
		c.cost, c.returned = append(c.cost, r.cost), append(c.returned, r.returned)
		c.state, c.body = append(c.state, r.state), append(c.body, r.encode(make([]byte, 0, usualBody)))
	}
	return c
}

func encodeFresh(p *params, receipts []*receipt) {
	c := columnsOfReceipts(receipts)
	payload, at, meter := make([]int64, len(receipts)), make([]int64, len(receipts)), make([]int32, len(receipts))
	for i, r := range receipts {
		payload[i], at[i], meter[i] = r.payload, r.at, r.meter
	}
	c.ids.encode(p)
	p.int8(payload)
	p.int8(at)
	p.int8(c.cost)
	p.int8(c.returned)
	p.int4(meter)
	p.int2(c.state)
	p.bytes(c.body)
}

func encodeChanged(p *params, receipts []*receipt) {
	c := columnsOfReceipts(receipts)
	c.ids.encode(p)
	p.int8(c.cost)
	p.int8(c.returned)
	p.int2(c.state)
	p.bytes(c.body)
}

func encodeOpened(p *params, opened []heldBy) {
	var keys keyColumns
	var expires, at, cost, limits []int64
	var from, to []int32
	var key [][16]byte
	for _, h := range opened {
		keys.add(h.CounterKey)
		expires, at, cost, key = append(expires, h.expires), append(at, h.at), append(cost, h.cost), append(key, h.key)
		from = append(from, int32(len(limits)+1))
		limits = append(limits, h.limits...)
		to = append(to, int32(len(limits)))
	}
	keys.encode(p)
	p.int8(expires)
	p.int8(at)
	p.int8(cost)
	p.uuid(key)
	p.int4(from)
	p.int4(to)
	p.int8(limits)
}

func encodeClosed(p *params, closed []heldBy) {
	var keys keyColumns
	var expires []int64
	var key [][16]byte
	for _, h := range closed {
		keys.add(h.CounterKey)
		expires, key = append(expires, h.expires), append(key, h.key)
	}
	keys.encode(p)
	p.int8(expires)
	p.uuid(key)
}

func encodeAdjusted(p *params, adjusted []adjustment) {
	hours, reason := make(hourColumns, len(adjusted)), make([]string, len(adjusted))
	key, cost, at := make([][16]byte, len(adjusted)), make([]int64, len(adjusted)), make([]int64, len(adjusted))
	for i, a := range adjusted {
		hours[i], key[i], cost[i], at[i], reason[i] = a.hourKey, a.key, a.cost, a.at, a.reason
	}
	hours.encode(p)
	p.uuid(key)
	p.int8(cost)
	p.int8(at)
	p.text(reason)
}
