package quota

import (
	"context"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

func refusalPeriodsOf(t *testing.T, e *Engine, f RefusalFilter) []RefusalPeriod {
	t.Helper()
	if f.To == 0 {
		f.To = math.MaxInt64
	}
	if f.Most == 0 {
		f.Most = 100
	}
	f.Customer = 1
	all, err := e.RefusalPeriods(testkit.Context(t), f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// written is a refusal period without its pointer.
func written(s RefusalPeriod) [6]any {
	admits := any(nil)
	if s.Admits != nil {
		admits = *s.Admits
	}
	return [6]any{s.Limit, s.Meter, s.From, s.To, s.Units, admits}
}

// What hits of an engine are refused by is there once it is closed, refusals from memory, of
// batches and of reservations included; looks, and what a shadow would have refused, is not.
func TestRefusalPeriodsOfAnEngine(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e, err := NewEngine(db.options(clock))
	if err != nil {
		t.Fatal(err)
	}
	shadow := quotatest.Compile(t, model.Spec{Name: "shadow", Algorithm: "fixed_window", Limit: 1, Window: "1h", Mode: "shadow"})
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "small", 10, "1h"), quotatest.Window(t, "large", 100, "1d"), shadow)
	refuse := func(after, cost int64) {
		t.Helper()
		clock.Set(quotatest.Epoch + after*1e6)
		if d, err := e.Decide(ctx, target, cost); err != nil || d.Allowed {
			t.Fatalf("%s, %v", d.String(), err)
		}
	}
	if d, err := e.Decide(ctx, target, 10); err != nil || !d.Allowed {
		t.Fatalf("%s, %v", d.String(), err)
	}
	refuse(5, 1)
	refuse(6, 1)
	refuse(59, 91)  // both
	refuse(60, 2)   // the next minute, the same refusal period
	refuse(185, 11) // a minute later: another refusal period, and never
	if _, err := e.Look(ctx, target, 5); err != nil {
		t.Fatal(err)
	}
	clock.Set(quotatest.Epoch + 3600e6)
	if r := e.DecideAll(ctx, []model.Hit{{Target: target, Cost: 11}, {Target: target, Cost: 12}}); r[0].Decision.Allowed || r[1].Decision.Allowed {
		t.Fatal("let in")
	}
	seats := quotatest.Compile(t, model.Spec{Name: "flight", Algorithm: "concurrency", Limit: 1, TTL: "1m"})
	flights := model.NewTarget(1, 1, 2, []*model.Limit{seats}, target.Periods, nil).ForReservations()
	if d, err := e.Reserve(ctx, flights, 2, 60e6, model.ID{}); err != nil || d.Allowed {
		t.Fatalf("%s, %v", d.String(), err)
	}
	if err := e.Close(ctx); err != nil {
		t.Fatal(err)
	}
	e = db.startEngine(t, clock)
	at := func(s int64) int64 { return quotatest.Epoch + s*1e6 }
	want := [][6]any{
		{"small", int32(1), at(3600), at(3600), int64(23), nil},
		{"flight", int32(2), at(3600), at(3600), int64(2), nil},
		{"small", int32(1), at(185), at(185), int64(11), nil},
		{"large", int32(1), at(59), at(59), int64(91), at(86400)},
		{"small", int32(1), at(5), at(60), int64(1 + 1 + 91 + 2), at(3600)},
	}
	check := func(what string, f RefusalFilter, want [][6]any) {
		t.Helper()
		var got [][6]any
		for _, s := range refusalPeriodsOf(t, e, f) {
			got = append(got, written(s))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("all", RefusalFilter{}, want)
	check("of a meter", RefusalFilter{Meter: 2}, want[1:2])
	check("from", RefusalFilter{From: at(185)}, want[:3])
	check("to", RefusalFilter{To: at(185)}, want[3:])
	first := refusalPeriodsOf(t, e, RefusalFilter{Most: 2})
	check("a page", RefusalFilter{Most: 2}, want[:2])
	check("the next", RefusalFilter{After: &first[1], Most: 2}, want[2:4])
}

// The short way of a hit that is as the last one counts what the long way counts.
func TestRefusalPeriodsCountTheSameEitherWay(t *testing.T) {
	own := []*model.Limit{
		quotatest.Window(t, "w", 10, "10s"), quotatest.Bucket(t, "b", 30, "1m", 12),
		quotatest.Limit(t, "s", "sliding_window", "20s", 15), quotatest.Compile(t, model.Spec{Name: "a", Algorithm: "allocation", Limit: 20}),
	}
	targets := []*model.Target{
		quotatest.Target(1, 1, 1, own...), quotatest.Target(1, 1, 2, own[1:]...),
		quotatest.WithCounter(quotatest.Target(1, 1, 3, own[:2]...), "ip=1", own[2:]...),
	}
	rapid.Check(t, func(rt *rapid.T) {
		short, long := new(refusedMinute), new(refusedMinute)
		rows := [][]model.Row{{{}}, {{}}, {{}, {}}}
		now := quotatest.Epoch
		for range rapid.IntRange(1, 60).Draw(rt, "hits") {
			now += rapid.SampledFrom([]int64{0, 0, 1, 1000, 500_000, 3_000_000}).Draw(rt, "later")
			n := rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(rt, "target")
			d, after := quotatest.Decide(targets[n], rows[n], now, rapid.SampledFrom([]int64{1, 1, 3, 11, 16}).Draw(rt, "cost"))
			rows[n] = after
			if d.Allowed {
				continue
			}
			short.count(&d, maxRefusals)
			long.target = nil // so that it never goes the short way
			long.count(&d, maxRefusals)
		}
		if !slices.Equal(short.limits, long.limits) {
			rt.Fatalf("%+v, want %+v", short.limits, long.limits)
		}
	})
}

// Beyond a number of rows what limits refused is lost, and what was denied is not. So is what
// cannot be written.
func TestRefusalPeriodsAreBounded(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	d := newDenials(db.Pool, quotatest.NewClock(quotatest.Epoch).Now, testkit.Patience)
	closed := quotatest.Window(t, "closed", 0, "1h")
	refused := func(customer, cost int64) *model.Decision {
		d := model.Judge(quotatest.Target(customer, 1, 1, closed), []model.Row{{}}, quotatest.Epoch, cost)
		return &d
	}
	for i := range int64(maxRefusals) {
		d.add(refused(i, 1), quotatest.Epoch)
	}
	d.add(refused(maxRefusals, 5), quotatest.Epoch)
	d.add(refused(0, 5), quotatest.Epoch) // a row that is there already
	if d.rows != maxRefusals || d.lostRefusals.Load() != 5 || d.lost.Load() != 0 || len(d.minutes) != maxRefusals+1 {
		t.Errorf("%d rows, %d and %d lost", d.rows, d.lostRefusals.Load(), d.lost.Load())
	}
	if err := d.write(ctx); err != nil {
		t.Fatal(err)
	}
	var units int64
	if err := db.Pool.QueryRow(ctx, "SELECT sum(units)::bigint FROM refusals").Scan(&units); err != nil || units != maxRefusals+5 {
		t.Errorf("%d units, %v", units, err)
	}
	d.add(refused(1, 7), quotatest.Epoch)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := d.write(ended); err == nil || d.lostRefusals.Load() != 5+7 {
		t.Errorf("%v: %d lost", err, d.lostRefusals.Load())
	}
}

// Two nodes, and two hours that share a minute, add up in one row.
func TestRefusalPeriodsAddUp(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	clock := quotatest.NewClock(quotatest.Epoch)
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "w", 0, "1h"))
	for node := range int64(2) {
		d := newDenials(db.Pool, clock.Now, testkit.Patience)
		for i := range int64(3) {
			refused := model.Judge(target, []model.Row{{}}, quotatest.Epoch+10*i+node, math.MaxInt64/4)
			d.add(&refused, quotatest.Epoch+i%2)
		}
		if err := d.write(ctx); err != nil {
			t.Fatal(err)
		}
	}
	e := db.startEngine(t, clock)
	all := refusalPeriodsOf(t, e, RefusalFilter{})
	if len(all) != 1 || all[0].From != quotatest.Epoch || all[0].To != quotatest.Epoch+21 || all[0].Units != math.MaxInt64 || all[0].Admits != nil {
		t.Errorf("%+v", all)
	}
}
