package quota

import (
	"fmt"
	"slices"
	"testing"

	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// history is what the model makes of all charges of one counter: its row after each.
type history struct {
	limits []*model.Limit
	rows   []model.Row // rows[v] is version v
	total  int64
}

// charge is one admitted hit on one counter.
type charge struct {
	version, at, cost int64
	target            *model.Target
	limits            []*model.Limit
}

// histories plays each counter's charges in the order of their versions. Every version
// must be there once, and time must never run backwards.
func histories(shots []shot) (map[model.CounterKey]*history, error) {
	charges := make(map[model.CounterKey][]charge)
	for _, s := range shots {
		if s.Allowed {
			for i, c := range s.Target.Counters {
				charges[c.Key] = append(charges[c.Key], charge{s.Versions()[i], s.At, s.Cost, s.Target, c.Limits})
			}
		}
	}
	all := make(map[model.CounterKey]*history)
	for key, cs := range charges {
		slices.SortFunc(cs, func(a, b charge) int { return int(a.version - b.version) })
		h := &history{limits: cs[0].limits, rows: []model.Row{{}}}
		for i, c := range cs {
			if c.version != int64(i+1) {
				return nil, fmt.Errorf("%v: version %d comes after %d", key, c.version, i)
			}
			before := h.rows[i]
			if c.at < before.At {
				return nil, fmt.Errorf("%v: version %d at %d, before %d", key, c.version, c.at, before.At)
			}
			one := &model.Target{Counters: []model.Counter{{Key: key, Limits: h.limits}}, Periods: c.target.Periods}
			after := []model.Row{before}
			one.Charge(after, c.cost, c.at, nil)
			after[0].Version = c.version
			h.rows = append(h.rows, after[0])
			h.total += c.cost
		}
		all[key] = h
	}
	return all, nil
}

// replay judges every shot on the very rows it was decided on. It returns how many
// refusals came from memory.
func replay(shots []shot, all map[model.CounterKey]*history) (fromMemory int, err error) {
	for _, s := range shots {
		rows := make([]model.Row, len(s.Versions()))
		for i, v := range s.Versions() {
			if s.Allowed {
				v-- // the row before the charge
			}
			h := all[s.Target.Counters[i].Key]
			switch {
			case h == nil && v == 0:
			case h == nil || int(v) >= len(h.rows):
				return 0, fmt.Errorf("%v was judged on version %d, which nobody wrote", s.Target.Counters[i].Key, v)
			default:
				rows[i] = h.rows[v]
			}
		}
		d, _ := quotatest.Decide(s.Target, rows, s.At, s.Cost)
		if !d.SameAs(&s.Decision) {
			return 0, fmt.Errorf("%v: decided %s, the model says %s", s.Target.Counters[0].Key, s.String(), d.String())
		}
		if s.AsOf > 0 {
			fromMemory++
		}
	}
	return fromMemory, nil
}

// agreeWithStored compares the model's last rows, and the usage booked, with the database.
func agreeWithStored(t testing.TB, url string, all map[model.CounterKey]*history) error {
	t.Helper()
	ctx := testkit.Context(t)
	conn, err := postgres.Connect(ctx, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for key, h := range all {
		last := h.rows[len(h.rows)-1]
		var got model.Row
		var total, booked int64
		err := conn.QueryRow(ctx, `
			SELECT state, at, version, total, units + coalesce((SELECT sum(admitted) FROM usage u
				WHERE u.shard = c.shard AND u.customer = c.customer AND u.meter = c.meter AND c.attribute = ''), 0)
			FROM counters c WHERE shard = $1 AND customer = $2 AND meter = $3 AND attribute = $4`,
			model.Shard(key.Customer), key.Customer, key.Meter, key.Attribute).Scan(&got.State, &got.At, &got.Version, &total, &booked)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.State, last.State) || got.At != last.At || got.Version != last.Version || total != h.total {
			return fmt.Errorf("%v: stored %+v, total %d; the model has %+v, total %d", key, got, total, last, h.total)
		}
		if key.Attribute == "" && booked != h.total {
			return fmt.Errorf("%v: %d units booked as usage, %d admitted", key, booked, h.total)
		}
	}
	return nil
}
