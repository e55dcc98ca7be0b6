package quota

// keyColumns are the key columns of counters, one element a row.
type keyColumns struct {
	shard     []int16
	customer  []int64
	meter     []int32
	attribute []string
}

func columnsOf(keys []CounterKey) (columns keyColumns) {
	for _, k := range keys {
		columns.add(k)
	}
	return columns
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

func (c keyColumns) encode(p *params) {
	p.int2(c.shard)
	p.int8(c.customer)
	p.int4(c.meter)
	p.text(c.attribute)
}
