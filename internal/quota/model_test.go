package quota

import (
	"fmt"
	"maps"
	"slices"

	"quotad/internal/quota/model"
	"quotad/internal/testkit/quotatest"
)

// reference keeps counters as the database is meant to: one hit after the other, judged by
// the Go twin. It also keeps every version's row, so that a refusal which was decided on
// an earlier one can be held against it.
type reference struct {
	counters map[model.CounterKey]*modelCounter
}

type modelCounter struct {
	model.Row
	hour, units, total int64
	usage              map[int64]int64 // finished hours
	versions           []model.Row     // versions[v] is the row of version v
}

func newModel() *reference { return &reference{counters: make(map[model.CounterKey]*modelCounter)} }

func (m *reference) counter(key model.CounterKey) *modelCounter {
	c := m.counters[key]
	if c == nil {
		c = &modelCounter{usage: make(map[int64]int64), versions: []model.Row{{}}}
		m.counters[key] = c
	}
	return c
}

// rows are those of a target as who reads them at now finds them.
func (m *reference) rows(t *model.Target, now int64) []model.Row {
	rows, _ := m.settled(t, now)
	return rows
}

// settled are the rows of a target with the buckets of its limits, and which of them these were exchanged
// in. Who decides hits writes these rows first, each as another version.
func (m *reference) settled(t *model.Target, now int64) (rows []model.Row, moved []bool) {
	instant := t.Instant(now)
	for i := range t.Counters {
		r := m.counter(t.Counters[i].Key).Row
		rows, instant = append(rows, r), max(instant, r.At)
	}
	for i := range rows {
		exchanged, _ := t.Settle(i, &rows[i], instant)
		moved = append(moved, exchanged)
	}
	return rows, moved
}

// version is that of the row of a target's i-th counter when a hit is decided at now.
func (m *reference) version(t *model.Target, i int, now int64) int64 {
	rows, moved := m.settled(t, now)
	if moved[i] {
		return rows[i].Version + 1
	}
	return rows[i].Version
}

// stale returns the error of a target that is older than one of its counters.
func (m *reference) stale(t *model.Target) *model.StaleError {
	var newest int64
	for i := range t.Counters {
		newest = max(newest, m.counter(t.Counters[i].Key).Change)
	}
	if newest > t.Change {
		return &model.StaleError{Change: newest}
	}
	return nil
}

// decide judges one hit at now, and charges it when it is admitted.
func (m *reference) decide(t *model.Target, now, cost int64) (model.Decision, *model.StaleError) {
	if err := m.stale(t); err != nil {
		return model.Decision{}, err
	}
	rows, moved := m.settled(t, now)
	for i := range rows {
		c := m.counter(t.Counters[i].Key)
		if moved[i] {
			rows[i].Version++
			c.versions = append(c.versions, rows[i])
		}
		c.Row = rows[i]
	}
	d, after := quotatest.Decide(t, rows, now, cost)
	hour, _ := t.RunningHour(d.At)
	for i := range t.Counters {
		c := m.counter(t.Counters[i].Key)
		c.Change = max(c.Change, t.Change)
		if own := t.Counters[i].Key.Attribute == ""; own {
			c.bookHour(hour, d.Allowed)
		}
		if !d.Allowed {
			continue
		}
		c.Row = after[i]
		c.total += cost
		if t.Counters[i].Key.Attribute == "" {
			c.units += cost
		}
		c.versions = append(c.versions, c.Row)
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
func (m *reference) past(t *model.Target, versions []int64, now, cost int64) (model.Decision, error) {
	rows := make([]model.Row, len(t.Counters))
	for i, v := range versions {
		c := m.counter(t.Counters[i].Key)
		if v < 0 || v >= int64(len(c.versions)) {
			return model.Decision{}, fmt.Errorf("%v: version %d was never written", t.Counters[i].Key, v)
		}
		rows[i] = c.versions[v]
	}
	return model.Judge(t, rows, now, cost), nil
}

// sameRows compares the rows of a customer with the stored ones. A row that was never
// charged may be missing. The running hour is sameUsage's: when a timezone changes there
// and back, a hit that was refused in between has moved its units to the usage table.
func (m *reference) sameRows(customer int64, stored map[model.CounterKey]quotatest.CounterRow) error {
	for key := range stored {
		if m.counters[key] == nil {
			return fmt.Errorf("%v is stored and nobody hit it: %+v", key, stored[key])
		}
	}
	for key, c := range m.counters {
		if key.Customer != customer {
			continue
		}
		want := quotatest.CounterRow{Row: c.Row, Hour: c.hour, Units: c.units, Total: c.total}
		got := stored[key]
		if len(got.State) == 0 {
			got.State = want.State[:0:0]
		}
		if want.Version == 0 && key.Attribute != "" {
			got.Change = want.Change // only the customer's own must remember it
		}
		if !slices.Equal(got.State, want.State) || got.At != want.At || got.Version != want.Version ||
			got.Change != want.Change || got.Total != want.Total {
			return fmt.Errorf("%v: stored %+v, the model has %+v", key, got, want)
		}
	}
	return nil
}

// sameUsage compares the units of each hour of a customer, in the usage table and in the
// running hours of the rows together.
func (m *reference) sameUsage(customer int64, finished map[quotatest.UsageKey]int64, rows map[model.CounterKey]quotatest.CounterRow) error {
	want, got := make(map[quotatest.UsageKey]int64), maps.Clone(finished)
	for key, c := range m.counters {
		if key.Customer == customer && key.Attribute == "" {
			for hour, units := range c.usage {
				want[quotatest.UsageKey{Meter: key.Meter, Hour: hour}] += units
			}
			if c.units > 0 {
				want[quotatest.UsageKey{Meter: key.Meter, Hour: c.hour}] += c.units
			}
		}
	}
	for key, c := range rows {
		switch {
		case key.Attribute != "" && c.Units != 0:
			return fmt.Errorf("%v books usage: %+v", key, c)
		case c.Units > 0:
			got[quotatest.UsageKey{Meter: key.Meter, Hour: c.Hour}] += c.Units
		}
	}
	if !maps.Equal(want, got) {
		return fmt.Errorf("customer %d: usage %v, the model has %v", customer, got, want)
	}
	return nil
}

// sameDecision compares all that a decision says.
func sameDecision(got, want *model.Decision) error {
	if !got.SameAs(want) {
		return fmt.Errorf("decided %s, the model says %s", got.String(), want.String())
	}
	return nil
}
