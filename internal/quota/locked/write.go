package locked

import (
	"cmp"
	"maps"
	"slices"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// write sends the changes that the operations made in the transaction, together with the commit.
func (tx *transaction) write(pipe *session.Pipeline, p *session.Params) {
	send := func(name session.StatementName, rows int, fill func()) {
		if rows == 0 {
			return
		}
		p.Reset()
		fill()
		pipe.Do(name, p.Values())
	}
	hours := tx.finishedHours()
	send(AddUsage, len(hours), func() { tx.encodeHours(p, hours) })
	levels := tx.changedLevels()
	send(SetLevels, len(levels), func() { tx.encodeLevels(p, levels) })
	changed, made := tx.changed()
	send(saveRows, len(changed), func() { encodeCounters(p, changed) })
	send(MakeValues, len(made), func() { encodeCounters(p, made) })
	fresh, later := tx.receiptsToWrite()
	send(IssueReceipts+session.StatementName(ReceiptTables[tx.slot]), len(fresh), func() { encodeFresh(p, fresh) })
	for slot := range ReceiptTables {
		these := later[slot]
		send(changeReceipts+session.StatementName(ReceiptTables[slot]), len(these), func() { encodeChanged(p, these) })
	}
	compare := func(a, b heldBy) int {
		return cmp.Or(model.CompareKeys(a.CounterKey, b.CounterKey), model.CompareHolds(a.Hold, b.Hold))
	}
	slices.SortFunc(tx.opened, compare)
	slices.SortFunc(tx.closed, compare)
	send(OpenHolds, len(tx.opened), func() { encodeOpened(p, tx.opened) })
	send(CloseHolds, len(tx.closed), func() { encodeClosed(p, tx.closed) })
	send(AddAdjustments, len(tx.adjusted), func() { encodeAdjusted(p, tx.adjusted) })
	if tx.node.AlsoAdjusted != "" {
		send(alsoAdjusted, len(tx.adjusted), func() { encodeAdjusted(p, tx.adjusted) })
	}
	send(AddReached, len(tx.reached), func() { encodeReached(p, tx.reached) })
	send(AddAudit, len(tx.audits), func() { encodeAudits(p, tx.audits) })
}

// changed returns, in lock order, the counters whose rows must be updated, and in made the counters whose rows
// must be created.
func (tx *transaction) changed() (changed, made []*lockedRow) {
	for _, c := range tx.counters {
		switch {
		case c.dirty && c.there:
			changed = append(changed, c)
		case c.dirty:
			made = append(made, c)
		}
	}
	byKey := func(c, b *lockedRow) int { return model.CompareKeys(c.key, b.key) }
	slices.SortFunc(changed, byKey)
	slices.SortFunc(made, byKey)
	return changed, made
}

func encodeCounters(p *session.Params, counters []*lockedRow) {
	var keys session.Columns
	var columns [6][]int64
	var states, generations []int64
	var from, to, departedFrom, departedTo []int32
	for _, c := range counters {
		keys.Add(c.key)
		for i, v := range [...]int64{c.At, c.hour, c.units, c.total, c.Version, c.Change} {
			columns[i] = append(columns[i], v)
		}
		generations = append(generations, c.generation)
		from = append(from, int32(len(states)+1))
		states = append(states, model.Marked(c.State, c.Holds)...)
		to = append(to, int32(len(states)))
		if first := int32(len(states) + 1); !slices.Equal(c.Departed, c.read.departed) {
			states = append(states, c.Departed...)
			departedFrom, departedTo = append(departedFrom, first), append(departedTo, int32(len(states)))
		} else {
			departedFrom, departedTo = append(departedFrom, 0), append(departedTo, 0)
		}
	}
	keys.Encode(p)
	for _, column := range columns {
		p.Int8(column)
	}
	p.Int4(from)
	p.Int4(to)
	p.Int8(states)
	p.Int4(departedFrom)
	p.Int4(departedTo)
	p.Int8(generations)
}

// finishedHours returns the hours whose usage changes, in the order of their rows.
func (tx *transaction) finishedHours() []model.HourKey {
	maps.DeleteFunc(tx.usage, func(_ model.HourKey, units int64) bool { return units == 0 })
	return slices.SortedFunc(maps.Keys(tx.usage), model.CompareHours)
}

func (tx *transaction) encodeHours(p *session.Params, hours []model.HourKey) {
	columns, units := hourColumns(hours), make([]int64, len(hours))
	for i, h := range hours {
		units[i] = tx.usage[h]
	}
	columns.encode(p)
	p.Int8(units)
}

// changedLevels returns the own counters whose levels changed, in the order of their rows.
func (tx *transaction) changedLevels() []model.CounterKey {
	return slices.SortedFunc(maps.Keys(tx.levels), model.CompareKeys)
}

func (tx *transaction) encodeLevels(p *session.Params, keys []model.CounterKey) {
	hours, units := make(hourColumns, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		hours[i], units[i] = model.HourKey{Customer: k.Customer, Meter: k.Meter, Hour: tx.levels[k].at}, tx.levels[k].units
	}
	hours.encode(p)
	p.Int8(units)
}

// hourColumns contains keys of usage or of adjustments, which encode writes as arrays for a statement.
type hourColumns []model.HourKey

func (c hourColumns) encode(p *session.Params) {
	shard, customer, meter, hour := make([]int16, len(c)), make([]int64, len(c)), make([]int32, len(c)), make([]int64, len(c))
	for i, k := range c {
		shard[i], customer[i], meter[i], hour[i] = model.Shard(k.Customer), k.Customer, k.Meter, k.Hour
	}
	p.Int2(shard)
	p.Int8(customer)
	p.Int4(meter)
	p.Int8(hour)
}

// receiptsToWrite returns the new receipts, and for each table the changed receipts.
func (tx *transaction) receiptsToWrite() (fresh []*receipt, changed [len(ReceiptTables)][]*receipt) {
	for _, r := range tx.receipts {
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

// usualBody is the approximate size of a receipt's body for a hit with two limits, in bytes.
const usualBody = 192

// receiptColumns contains the columns that new and changed receipts share.
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

func encodeFresh(p *session.Params, receipts []*receipt) {
	c := columnsOfReceipts(receipts)
	payload, at, meter := make([]int64, len(receipts)), make([]int64, len(receipts)), make([]int32, len(receipts))
	for i, r := range receipts {
		payload[i], at[i], meter[i] = r.payload, r.at, r.meter
	}
	c.ids.encode(p)
	p.Int8(payload)
	p.Int8(at)
	p.Int8(c.cost)
	p.Int8(c.returned)
	p.Int4(meter)
	p.Int2(c.state)
	p.Bytes(c.body)
}

func encodeChanged(p *session.Params, receipts []*receipt) {
	c := columnsOfReceipts(receipts)
	c.ids.encode(p)
	p.Int8(c.cost)
	p.Int8(c.returned)
	p.Int2(c.state)
	p.Bytes(c.body)
}

func encodeOpened(p *session.Params, opened []heldBy) {
	var keys session.Columns
	var expires, at, cost, limits []int64
	var from, to []int32
	var key [][16]byte
	for _, h := range opened {
		keys.Add(h.CounterKey)
		expires, at, cost, key = append(expires, h.Expires), append(at, h.At), append(cost, h.Cost), append(key, h.Key)
		from = append(from, int32(len(limits)+1))
		limits = append(limits, h.Limits...)
		to = append(to, int32(len(limits)))
	}
	keys.Encode(p)
	p.Int8(expires)
	p.Int8(at)
	p.Int8(cost)
	p.UUID(key)
	p.Int4(from)
	p.Int4(to)
	p.Int8(limits)
}

func encodeClosed(p *session.Params, closed []heldBy) {
	var keys session.Columns
	var expires []int64
	var key [][16]byte
	for _, h := range closed {
		keys.Add(h.CounterKey)
		expires, key = append(expires, h.Expires), append(key, h.Key)
	}
	keys.Encode(p)
	p.Int8(expires)
	p.UUID(key)
}

func encodeAdjusted(p *session.Params, adjusted []adjustment) {
	hours, reason := make(hourColumns, len(adjusted)), make([]string, len(adjusted))
	key, cost, at := make([][16]byte, len(adjusted)), make([]int64, len(adjusted)), make([]int64, len(adjusted))
	for i, a := range adjusted {
		hours[i], key[i], cost[i], at[i], reason[i] = a.HourKey, a.key, a.cost, a.at, a.reason
	}
	hours.encode(p)
	p.UUID(key)
	p.Int8(cost)
	p.Int8(at)
	p.Text(reason)
}

func encodeAudits(p *session.Params, audits []audited) {
	var texts [6][]string
	customer := make([]int64, len(audits))
	for i, a := range audits {
		for n, text := range [...]string{a.Actor, a.Request, a.Action, a.Subject, a.Target, string(a.After)} {
			texts[n] = append(texts[n], text)
		}
		customer[i] = a.customer
	}
	for _, column := range texts {
		p.Text(column)
	}
	p.Int8(customer)
}
