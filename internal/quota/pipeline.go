package quota

import (
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// pipeline writes a batch's statements and holds their answers. Its buffers are a lane's
// own and are used again for the next batch.
type pipeline struct {
	columns []columns
	answers [][]answer // a wave's, one a counter in the order of its columns
	params  []params
	used    int // params in use
	keys    keyColumns
	steps   []step
}

// write makes the pipeline of a batch: what must be in place first, then one charging
// statement a wave, all in one transaction (commitAt cuts it, in a mutant). When first, the
// first wave is of counters whose rows are not there yet; they are made before any row is
// locked. When cautious, no row is waited for: one that somebody holds counts as missing.
func (p *pipeline) write(waves [][]*group, first, cautious bool, commitAt statementName) []step {
	p.steps, p.used = p.steps[:0], 0
	for len(p.columns) < len(waves) {
		p.columns = append(p.columns, columns{})
		p.answers = append(p.answers, nil)
	}
	var missing, over, all []*group
	for w, wave := range waves {
		p.columns[w].fill(wave)
		for _, g := range wave {
			if g.insert && (!first || w > 0) {
				missing = append(missing, g)
			}
			if g.book {
				over = append(over, g)
			}
		}
	}
	locked := waves
	if first {
		locked = waves[1:]
		p.charge(chargeFirst, 0, p.columns[0].encodeFirst)
	}
	if len(missing) > 0 {
		p.setKeys(missing, false)
		p.add(insertRows, p.keys.encode)
	}
	charge := chargeHits
	if cautious {
		charge = chargeMore
	}
	if len(locked) > 1 && !cautious || len(over) > 0 {
		charge = chargeMore
		for _, wave := range locked {
			all = append(all, wave...)
		}
		p.setKeys(all, false)
		p.add(lockRows, p.keys.encode)
	}
	if len(over) > 0 {
		hours := p.setKeys(over, true)
		encode := func(b *params) { p.keys.encode(b); b.int8(hours) }
		p.add(bookUsage, encode)
		p.add(clearHours, encode)
	}
	for w := len(waves) - len(locked); w < len(waves); w++ {
		p.charge(charge, w, p.columns[w].encode)
	}
	for i := range p.steps {
		p.steps[i].commit = i == len(p.steps)-1 || p.steps[i].name == commitAt
	}
	return p.steps
}

// charge appends the statement that charges a wave, with a place for each of its counters.
func (p *pipeline) charge(name statementName, w int, encode func(*params)) {
	wave := &p.columns[w]
	answers := slices.Grow(p.answers[w][:0], len(wave.slots))[:len(wave.slots)]
	p.answers[w] = answers
	p.add(name, encode)
	p.steps[len(p.steps)-1].read = func(r *pgconn.ResultReader) error {
		if name == chargeFirst {
			return readFirst(r, wave, answers)
		}
		return readAnswers(r, answers)
	}
}

// add appends a statement with the parameters that encode writes.
func (p *pipeline) add(name statementName, encode func(*params)) {
	if p.used == len(p.params) {
		p.params = append(p.params, params{})
	}
	b := &p.params[p.used]
	p.used++
	b.reset()
	encode(b)
	p.steps = append(p.steps, step{name: name, params: b.values()})
}

// setKeys fills keys with the groups' counters in lock order, each once: all of them, or
// only those that book usage, whose running hours are returned.
func (p *pipeline) setKeys(groups []*group, booking bool) (hours []int64) {
	type keyed struct {
		key  CounterKey
		hour int64
	}
	var rows []keyed
	for _, g := range groups {
		for i := range g.target.Counters {
			if key := g.target.Counters[i].Key; !booking || key.Attribute == "" {
				rows = append(rows, keyed{key, g.hour})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b keyed) int { return compareKeys(a.key, b.key) })
	rows = slices.CompactFunc(rows, func(a, b keyed) bool { return a.key == b.key })
	p.keys.reset()
	for _, r := range rows {
		p.keys.add(r.key)
		hours = append(hours, r.hour)
	}
	return hours
}
