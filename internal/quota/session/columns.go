package session

import "quotad/internal/quota/model"

// Columns contains the key columns of counters, with one element for each row.
type Columns struct {
	Shard     []int16
	Customer  []int64
	Meter     []int32
	Attribute []string
}

// ColumnsOf returns the columns of keys.
func ColumnsOf(keys []model.CounterKey) (columns Columns) {
	for _, k := range keys {
		columns.Add(k)
	}
	return columns
}

// Reset removes all elements.
func (c *Columns) Reset() {
	c.Shard, c.Customer, c.Meter, c.Attribute = c.Shard[:0], c.Customer[:0], c.Meter[:0], c.Attribute[:0]
}

// Add appends a key.
func (c *Columns) Add(k model.CounterKey) {
	c.Shard = append(c.Shard, model.Shard(k.Customer))
	c.Customer = append(c.Customer, k.Customer)
	c.Meter = append(c.Meter, k.Meter)
	c.Attribute = append(c.Attribute, k.Attribute)
}

// Encode appends the columns as four parameters.
func (c Columns) Encode(p *Params) {
	p.Int2(c.Shard)
	p.Int8(c.Customer)
	p.Int4(c.Meter)
	p.Text(c.Attribute)
}
