package quota

import (
	"fmt"
	"maps"
	"slices"
)

// model keeps counters as the database is meant to: one hit after the other, judged by
// the Go twin. It also keeps every version's row, so that a refusal which was decided on
// an earlier one can be held against it.
type model struct {
	counters map[CounterKey]*modelCounter
}

type modelCounter struct {
	row
	hour, units, total int64
	usage              map[int64]int64 // finished hours
	versions           []row           // versions[v] is the row of version v
}

func newModel() *model { return &model{counters: make(map[CounterKey]*modelCounter)} }

func (m *model) counter(key CounterKey) *modelCounter {
	c := m.counters[key]
	if c == nil {
		c = &modelCounter{usage: make(map[int64]int64), versions: []row{{}}}
		m.counters[key] = c
	}
	return c
}

func (m *model) rows(t *Target) []row {
	rows := make([]row, len(t.Counters))
	for i := range t.Counters {
		rows[i] = m.counter(t.Counters[i].Key).row
	}
	return rows
}

// stale returns the error of a target that is older than one of its counters.
func (m *model) stale(t *Target) *StaleError {
	var newest int64
	for _, r := range m.rows(t) {
		newest = max(newest, r.change)
	}
	if newest > t.Change {
		return &StaleError{newest}
	}
	return nil
}

// decide judges one hit at now, and charges it when it is admitted.
func (m *model) decide(t *Target, now, cost int64) (Decision, *StaleError) {
	if err := m.stale(t); err != nil {
		return Decision{}, err
	}
	d, after := decideOn(t, m.rows(t), now, cost)
	hour, _ := t.runningHour(d.At)
	for i := range t.Counters {
		c := m.counter(t.Counters[i].Key)
		c.change = max(c.change, t.Change)
		if own := t.Counters[i].Key.Attribute == ""; own {
			c.bookHour(hour, d.Allowed)
		}
		if !d.Allowed {
			continue
		}
		c.row = after[i]
		c.total += cost
		if t.Counters[i].Key.Attribute == "" {
			c.units += cost
		}
		c.versions = append(c.versions, c.row)
	}
	return d, nil
}

// bookHour ends another hour than the running one.
func (c *modelCounter) bookHour(hour int64, charging bool) {
	if hour == c.hour {
		return
	}
	if c.units > 0 {
		c.usage[c.hour] += c.units
		c.hour, c.units = hour, 0
	}
	if charging {
		c.hour = hour
	}
}

// past judges a hit on the rows of the versions that a refusal says it was decided on.
func (m *model) past(t *Target, versions []int64, now, cost int64) (Decision, error) {
	rows := make([]row, len(t.Counters))
	for i, v := range versions {
		c := m.counter(t.Counters[i].Key)
		if v < 0 || v >= int64(len(c.versions)) {
			return Decision{}, fmt.Errorf("%v: version %d was never written", t.Counters[i].Key, v)
		}
		rows[i] = c.versions[v]
	}
	return judge(t, rows, now, cost), nil
}

// sameRows compares the rows of a customer with the stored ones. A row that was never
// charged may be missing. The running hour is sameUsage's: when a timezone changes there
// and back, a hit that was refused in between has moved its units to the usage table.
func (m *model) sameRows(customer int64, stored map[CounterKey]counterRow) error {
	for key := range stored {
		if m.counters[key] == nil {
			return fmt.Errorf("%v is stored and nobody hit it: %+v", key, stored[key])
		}
	}
	for key, c := range m.counters {
		if key.Customer != customer {
			continue
		}
		want := counterRow{c.row, c.hour, c.units, c.total}
		got := stored[key]
		if len(got.state) == 0 {
			got.state = want.state[:0:0]
		}
		if want.version == 0 && key.Attribute != "" {
			got.change = want.change // only the customer's own must remember it
		}
		if !slices.Equal(got.state, want.state) || got.at != want.at || got.version != want.version ||
			got.change != want.change || got.Total != want.Total {
			return fmt.Errorf("%v: stored %+v, the model has %+v", key, got, want)
		}
	}
	return nil
}

// sameUsage compares the units of each hour of a customer, in the usage table and in the
// running hours of the rows together.
func (m *model) sameUsage(customer int64, finished map[usageKey]int64, rows map[CounterKey]counterRow) error {
	want, got := make(map[usageKey]int64), maps.Clone(finished)
	for key, c := range m.counters {
		if key.Customer == customer && key.Attribute == "" {
			for hour, units := range c.usage {
				want[usageKey{key.Meter, hour}] += units
			}
			if c.units > 0 {
				want[usageKey{key.Meter, c.hour}] += c.units
			}
		}
	}
	for key, c := range rows {
		switch {
		case key.Attribute != "" && c.Units != 0:
			return fmt.Errorf("%v books usage: %+v", key, c)
		case c.Units > 0:
			got[usageKey{key.Meter, c.Hour}] += c.Units
		}
	}
	if !maps.Equal(want, got) {
		return fmt.Errorf("customer %d: usage %v, the model has %v", customer, got, want)
	}
	return nil
}

// sameDecision compares all that a decision says.
func sameDecision(got, want *Decision) error {
	if !got.SameAs(want) {
		return fmt.Errorf("decided %s, the model says %s", got.String(), want.String())
	}
	return nil
}
