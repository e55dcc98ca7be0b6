package local

import (
	"testing"

	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

func unknown(int) (model.Row, bool) { return model.Row{}, false }

func hourly(t *testing.T, limit int64) *model.Limit {
	t.Helper()
	l, bad := model.Compile(model.Spec{Name: "hourly", Algorithm: "fixed_window", Window: "1h", Limit: limit})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return l
}

// A limit holds in memory, from what is known on, and a row that was charged since counts again.
func TestLimitsHoldInMemory(t *testing.T) {
	m, err := New(256)
	if err != nil {
		t.Fatal(err)
	}
	target := model.NewTarget(1, 7, 1, []*model.Limit{hourly(t, 5)}, calendar.Periods{}, nil)
	const now = int64(1_800_000_000e6)
	admitted := func(known func(int) (model.Row, bool)) (n int) {
		for range 10 {
			d := m.Decide(target, now, 1, false, known)
			if !d.Degraded {
				t.Fatal("a decision of an outage does not say so")
			}
			if d.Allowed {
				n++
			}
		}
		return n
	}
	if n := admitted(unknown); n != 5 {
		t.Errorf("%d of 10 hits were let in on a limit of 5", n)
	}
	if d := m.Decide(target, now, 5, true, func(int) (model.Row, bool) { return model.Row{}, false }); d.Allowed {
		t.Error("a look sees an empty counter after five hits")
	}
	charged := []model.Row{{Version: 3}}
	target.Charge(charged, 3, now, nil)
	known := func(int) (model.Row, bool) { return charged[0], true }
	if n := admitted(known); n != 2 {
		t.Errorf("%d hits were let in where 3 of 5 are known to be used", n)
	}
	if n := admitted(known); n != 0 {
		t.Errorf("%d more hits were let in by the same row", n)
	}
	for c := range int64(10_000) { // memory is bounded
		m.Decide(model.NewTarget(1, 100+c, 1, []*model.Limit{hourly(t, 5)}, calendar.Periods{}, nil), now, 1, false, unknown)
	}
	if n := m.rows.Len(); n > 256*2 {
		t.Errorf("%d counters are kept", n)
	}
}
