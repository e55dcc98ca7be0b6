package quota

import (
	"cmp"
	"math"
	"slices"
)

// group is the hits on the same counters, in order of arrival, and their parameters.
type group struct {
	target *Target
	hits   []*hit
	sums   []int64 // running sums of the costs
	now    int64
	insert bool
	book   bool
	held   bool // holds are on a counter: the ledger decides

	known  knownRow // of a swap: the row as it was last seen, if knows
	knows  bool
	read   bool     // a moment ago
	unread bool     // it cannot be read
	after  knownRow // of a swap: the charge

	until int64 // the first instant that the parameters do not hold for
	hour  int64 // start of the running hour
}

// own is the key of the customer's own counter.
func (g *group) own() CounterKey { return g.target.Counters[0].Key }

// hitsOf are the hits of groups.
func hitsOf(groups []*group) (hits []*hit) {
	for _, g := range groups {
		hits = append(hits, g.hits...)
	}
	return hits
}

// gathering makes groups of hits. What it makes is used again for the next batch.
type gathering struct {
	groups []*group
	spare  []*group // all that were ever made
	byKey  map[groupKey]*group
}

// mostSpare is how many hits a group may have room for that is used again, but the first.
const mostSpare = 64

// group is a new one.
func (a *gathering) group(t *Target, now int64) *group {
	n := len(a.groups)
	if n == len(a.spare) {
		a.spare = append(a.spare, new(group))
	}
	g := a.spare[n]
	if n > 0 && cap(g.hits) > mostSpare { // one customer's hits may be all of a batch, but not of each place's
		g.hits, g.sums = nil, nil
	}
	g.target, g.now = t, now
	a.groups = append(a.groups, g)
	return g
}

// renew makes a group a new one in the memory that it has.
func (g *group) renew() {
	*g = group{hits: g.hits[:0], sums: g.sums[:0], known: g.known.empty(), after: g.after.empty()}
}

// drop lets go of the hits of the last batch: a place that is not needed again would keep one
// alive, and with it all that was sent together with it.
func (a *gathering) drop() {
	for _, g := range a.groups {
		clear(g.hits)
		g.renew()
	}
	a.groups = a.groups[:0]
}

// gather makes groups of hits, in order of arrival, to be judged at now, or at what their
// customers' test clocks show. They are valid until it is called again.
func (a *gathering) gather(hits []*hit, now int64) []*group {
	if a.byKey == nil {
		a.byKey = make(map[groupKey]*group, len(hits))
	}
	clear(a.byKey)
	a.drop()
	for _, h := range hits {
		key := h.target.groupKey()
		g := a.byKey[key]
		if g == nil {
			g = a.group(h.target, h.target.Instant(now))
			a.byKey[key] = g
		}
		sum := h.cost
		if n := len(g.sums); n > 0 {
			sum += g.sums[n-1]
		}
		g.hits, g.sums = append(g.hits, h), append(g.sums, sum)
		g.now = max(g.now, h.notBefore)
		g.insert, g.book = g.insert || h.insert, g.book || h.book
	}
	return a.groups
}

// waves splits groups into the fewest statements such that no counter appears twice in
// one: an UPDATE … FROM applies one source row per target and would charge too little.
// The order of groups on one counter is kept.
func waves(groups []*group) [][]*group {
	var out [][]*group
	next := make(map[CounterKey]int, len(groups)) // the first wave that is free of a counter
	for _, g := range groups {
		wave := 0
		for i := range g.target.Counters {
			wave = max(wave, next[g.target.Counters[i].Key])
		}
		for i := range g.target.Counters {
			next[g.target.Counters[i].Key] = wave + 1
		}
		if wave == len(out) {
			out = append(out, nil)
		}
		out[wave] = append(out[wave], g)
	}
	return out
}

// keyColumns are the key columns of counters, one element a row.
type keyColumns struct {
	shard     []int16
	customer  []int64
	meter     []int32
	attribute []string
}

func (c *keyColumns) reset() {
	c.shard, c.customer, c.meter, c.attribute = c.shard[:0], c.customer[:0], c.meter[:0], c.attribute[:0]
}

func (c *keyColumns) add(k CounterKey) {
	c.shard = append(c.shard, Shard(k.Customer))
	c.customer = append(c.customer, k.Customer)
	c.meter = append(c.meter, k.Meter)
	c.attribute = append(c.attribute, k.Attribute)
}

func (c *keyColumns) key(i int) CounterKey {
	return CounterKey{c.customer[i], c.meter[i], c.attribute[i]}
}

func (c keyColumns) encode(p *params) {
	p.int2(c.shard)
	p.int8(c.customer)
	p.int4(c.meter)
	p.text(c.attribute)
}

// compareKeys is the lock order of counters, the order of their primary key.
func compareKeys(a, b CounterKey) int {
	if c := cmp.Compare(Shard(a.Customer), Shard(b.Customer)); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Customer, b.Customer); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Meter, b.Meter); c != 0 {
		return c
	}
	return cmp.Compare(a.Attribute, b.Attribute)
}

// slot is one counter of one group of a wave.
type slot struct {
	group   int32 // index in the wave
	counter int32 // index in the target
}

// order lists the counters of a wave in their lock order.
func order(wave []*group, slots []slot) []slot {
	for g := range wave {
		for c := range wave[g].target.Counters {
			slots = append(slots, slot{int32(g), int32(c)})
		}
	}
	key := func(s slot) CounterKey { return wave[s.group].target.Counters[s.counter].Key }
	slices.SortFunc(slots, func(a, b slot) int { return compareKeys(key(a), key(b)) })
	return slots
}

// columns are the parameters of chargeSQL for one wave.
type columns struct {
	keyColumns
	slots                              []slot
	group, rows                        []int32
	now, until, change, hour, edited   []int64
	limitFrom, limitTo, sumFrom, sumTo []int32
	limits, sums                       []int64
	groupSums                          []span32
	scratch                            []int64
}

type span32 struct{ from, to int32 }

func (c *columns) reset() {
	c.keyColumns.reset()
	c.slots, c.group, c.rows, c.groupSums = c.slots[:0], c.group[:0], c.rows[:0], c.groupSums[:0]
	c.now, c.until, c.change, c.hour, c.edited = c.now[:0], c.until[:0], c.change[:0], c.hour[:0], c.edited[:0]
	c.limitFrom, c.limitTo = c.limitFrom[:0], c.limitTo[:0]
	c.sumFrom, c.sumTo = c.sumFrom[:0], c.sumTo[:0]
	c.limits, c.sums = c.limits[:0], c.sums[:0]
}

// fill computes the parameters of a wave: for each counter its limits' integers, for each
// group the instant until which they hold and its running hour.
func (c *columns) fill(wave []*group) {
	c.reset()
	c.slots = order(wave, c.slots)
	for _, g := range wave {
		from := len(c.sums)
		c.sums = append(c.sums, g.sums...)
		c.groupSums = append(c.groupSums, span32{int32(from + 1), int32(len(c.sums))})
		g.hour, g.until = g.target.runningHour(g.now)
	}
	for _, s := range c.slots {
		g := wave[s.group]
		counter := &g.target.Counters[s.counter]
		c.add(counter.Key)
		c.group = append(c.group, s.group)
		c.rows = append(c.rows, int32(len(g.target.Counters)))
		c.now = append(c.now, g.now)
		c.change = append(c.change, g.target.Change)
		c.hour = append(c.hour, g.hour)
		c.edited = append(c.edited, g.target.Edited)
		from, to, until := c.addLimits(counter.Limits, g.target.moment(g.now))
		c.limitFrom, c.limitTo = append(c.limitFrom, from), append(c.limitTo, to)
		g.until = min(g.until, until)
		c.sumFrom = append(c.sumFrom, c.groupSums[s.group].from)
		c.sumTo = append(c.sumTo, c.groupSums[s.group].to)
	}
	for _, s := range c.slots { // the group's, now that all of its counters are known
		c.until = append(c.until, wave[s.group].until)
	}
}

// addLimits appends the limits' integers unless the last ones added are the same, as
// they are for all customers of one plan at one instant; it returns their slice, and the
// first instant they do not hold for.
func (c *columns) addLimits(limits []*Limit, m moment) (from, to int32, until int64) {
	c.scratch, until = encodeLimits(c.scratch[:0], limits, m)
	if last := len(c.limits) - len(c.scratch); last < 0 || !slices.Equal(c.limits[last:], c.scratch) {
		c.limits = append(c.limits, c.scratch...)
	}
	return int32(len(c.limits) - len(c.scratch) + 1), int32(len(c.limits)), until
}

func encodeLimits(dst []int64, limits []*Limit, m moment) ([]int64, int64) {
	until := int64(math.MaxInt64)
	for _, l := range limits {
		var end int64
		dst, end = l.rules.encode(l, dst, m)
		until = min(until, end)
	}
	return dst, until
}

func (c *columns) encode(p *params) {
	c.keyColumns.encode(p)
	p.int4(c.group)
	p.int4(c.rows)
	p.int8(c.now)
	p.int8(c.until)
	p.int8(c.change)
	p.int8(c.hour)
	p.int4(c.limitFrom)
	p.int4(c.limitTo)
	p.int4(c.sumFrom)
	p.int4(c.sumTo)
	p.int8(c.limits)
	p.int8(c.sums)
	p.int8(c.edited)
}

// encodeFirst are the parameters of chargeFirstSQL.
func (c *columns) encodeFirst(p *params) {
	c.keyColumns.encode(p)
	p.int8(c.now)
	p.int8(c.change)
	p.int8(c.hour)
	p.int4(c.limitFrom)
	p.int4(c.limitTo)
	p.int4(c.sumFrom)
	p.int4(c.sumTo)
	p.int8(c.limits)
	p.int8(c.sums)
}

// first reports whether the group is to make its counter's row as it charges it.
func (g *group) first() bool { return g.insert && len(g.target.Counters) == 1 }

// firstApart puts what charges counters whose rows are not there yet into a wave of its
// own, before all others; first says whether there is one. Such a counter has no other
// group that could have come before it: then its row would be there.
func firstApart(waves [][]*group) (apart [][]*group, first bool) {
	var these []*group
	seen := make(map[CounterKey]bool)
	for w := range waves {
		waves[w] = slices.DeleteFunc(waves[w], func(g *group) bool {
			own := g.target.Counters[0].Key
			if !g.first() || seen[own] {
				return false
			}
			seen[own] = true
			these = append(these, g)
			return true
		})
	}
	if len(these) == 0 {
		return waves, false
	}
	waves = slices.DeleteFunc(waves, func(wave []*group) bool { return len(wave) == 0 })
	return append([][]*group{these}, waves...), true
}
