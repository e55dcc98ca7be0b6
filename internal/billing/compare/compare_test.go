package compare

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
)

const from = int64(1_775_001_600e6) // 2026-04-01T00:00:00Z, a month of 30 days

func periods(t testing.TB, zone string) calendar.Periods {
	t.Helper()
	loc, err := calendar.Location(zone)
	check(t, err)
	anchor, err := calendar.ParseAnchor("2026-01-01T00:00:00")
	check(t, err)
	return calendar.Periods{Zone: loc, Anchor: anchor, Interval: calendar.Interval{Unit: calendar.Months, Count: 1}}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func planOf(t testing.TB, limits []model.Spec, prices ...plans.Price) *Plan {
	t.Helper()
	in := plans.PlanInput{Name: "P", Currency: "USD", Interval: "month", IntervalCount: 1, Prices: prices}
	for _, l := range limits {
		in.Limits = append(in.Limits, plans.Limit{Meter: "m", Spec: l})
	}
	in, err := in.Normalize("p", map[string]string{"m": plans.KindFlow})
	check(t, err)
	p, err := Compile(&plans.Plan{PlanVersion: plans.PlanVersion{Key: "p", Version: 1}, PlanInput: in})
	check(t, err)
	return p
}

// hit is one unit at an instant.
func randomHits(random *rand.Rand, hours, most int) (hits []int64) {
	for h := range hours {
		start := from + int64(h)*hour
		n := random.IntN(most)
		for range n {
			switch random.IntN(3) {
			case 0: // all at once
				hits = append(hits, start+hour/2)
			case 1: // near the edges
				hits = append(hits, start+hour-1-random.Int64N(1000), start+random.Int64N(1000))
			default:
				hits = append(hits, start+random.Int64N(hour))
			}
		}
	}
	slices.Sort(hits)
	return hits
}

// hoursOf are hits as usage stores them.
func hoursOf(hits []int64) (hours []Hour) {
	for _, at := range hits {
		start := at - at%hour
		if len(hours) == 0 || hours[len(hours)-1].Start != start {
			hours = append(hours, Hour{Start: start})
		}
		hours[len(hours)-1].Admitted++
	}
	return hours
}

// refusedBy is what the Go model refuses of the hits themselves.
func refusedBy(t testing.TB, limits []*model.Limit, p calendar.Periods, hits []int64) (refused int64) {
	t.Helper()
	target := model.NewTarget(1, 1, 1, limits, p, nil).For(nil)
	rows := make([]model.Row, len(target.Counters))
	var series model.Series
	for _, at := range hits {
		series.Costs = append(series.Costs[:0], 1)
		series.Decide(target, rows, at, nil, func(_ int, d model.Decision) {
			if !d.Allowed {
				refused++
			}
		})
	}
	return refused
}

// What is said of one limit holds for the hits themselves, wherever in their hours they came: a
// window that hours fill is exact, and others lie between the least and the most.
func TestSaidOfOneLimitHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	seen := map[How]int{}
	for round := range 400 {
		spec := randomLimit(random)
		p := planOf(t, []model.Spec{spec})
		hits := randomHits(random, 30, 1+random.IntN(40))
		sheet := New(p, from, from+30*day)
		c := &Customer{Periods: periods(t, "UTC"), InForce: planOf(t, nil)}
		sheet.Add(c, []Used{{Meter: "m", Hours: hoursOf(hits)}})
		got, want := sheet.Limits[0].Draft, refusedBy(t, limitsOf(p.plan, "m", nil), c.Periods, hits)
		seen[got.How]++
		switch got.How {
		case ByHour:
			if got.Refused != (Range{want, want}) {
				t.Errorf("round %d, %+v: refused %d, told is %+v", round, spec, want, got.Refused)
			}
		case Bounds:
			if want < got.Refused.Least || want > got.Refused.Most {
				t.Errorf("round %d, %+v: refused %d, told is %+v", round, spec, want, got.Refused)
			}
		}
		if got.Refused != sheet.Draft.Refused || sheet.InForce.Refused.Most != 0 || sheet.Asked != int64(len(hits)) {
			t.Errorf("round %d: %+v beside %+v", round, sheet.Draft, sheet.InForce)
		}
	}
	if seen[ByHour] < 50 || seen[Bounds] < 50 || seen[Spread] < 20 {
		t.Errorf("the rounds had %v", seen)
	}
}

func randomLimit(random *rand.Rand) model.Spec {
	windows := []string{"1s", "7s", "1m", "7m", "20m", "30m", "45m", "90m", "1h", "2h", "1d", "24h"}
	s := model.Spec{
		Name: "x", Algorithm: []string{"fixed_window", "fixed_window", "sliding_window", "sliding_log", "token_bucket"}[random.IntN(5)],
		Limit: 1 + random.Int64N(40), Window: windows[random.IntN(len(windows))],
	}
	switch {
	case s.Algorithm == "token_bucket" && random.IntN(2) == 0:
		burst := 1 + random.Int64N(80)
		s.Burst = &burst
	case s.Algorithm == "fixed_window" && random.IntN(3) == 0:
		s.Window = []string{"calendar_day", "calendar_week", "calendar_month", "billing_period"}[random.IntN(4)]
	case s.Algorithm == "fixed_window" && random.IntN(3) == 0:
		s.Align = "first_hit"
	case random.IntN(6) == 0:
		s.Per = "ip"
	}
	return s
}

// Several limits whose windows hours fill are exact together.
func TestLimitsTogetherAreExact(t *testing.T) {
	random := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for range 100 {
		specs := []model.Spec{
			{Name: "a", Algorithm: "fixed_window", Limit: 1 + random.Int64N(20), Window: "1h"},
			{Name: "b", Algorithm: "fixed_window", Limit: 1 + random.Int64N(200), Window: "1d"},
			{Name: "c", Algorithm: "fixed_window", Limit: 1 + random.Int64N(300), Window: "calendar_month"},
		}
		p := planOf(t, specs)
		hits := randomHits(random, 60, 1+random.IntN(30))
		sheet := New(p, from, from+30*day)
		c := &Customer{Periods: periods(t, "UTC"), InForce: p}
		sheet.Add(c, []Used{{Meter: "m", Hours: hoursOf(hits)}})
		want := refusedBy(t, limitsOf(p.plan, "m", nil), c.Periods, hits)
		if sheet.Draft.Refused != (Range{want, want}) || sheet.InForce != sheet.Draft {
			t.Fatalf("refused %d, told is %+v beside %+v of %+v", want, sheet.Draft, sheet.InForce, specs)
		}
	}
}

// Where hours do not start with the clock's, a clock's window cannot be played; the calendar's can.
func TestZonesOfBrokenHours(t *testing.T) {
	for zone, want := range map[string]How{"UTC": ByHour, "Europe/Berlin": ByHour, "Asia/Kathmandu": Bounds, "Australia/Adelaide": Bounds} {
		p := planOf(t, []model.Spec{
			{Name: "x", Algorithm: "fixed_window", Limit: 5, Window: "1h"},
			{Name: "y", Algorithm: "fixed_window", Limit: 5, Window: "calendar_day"},
		})
		sheet := New(p, from, from+30*day)
		sheet.Add(&Customer{Periods: periods(t, zone), InForce: p}, []Used{{Meter: "m"}})
		if got := sheet.Limits; got[0].Draft.How != want || got[1].Draft.How != ByHour {
			t.Errorf("%s: %s and %s", zone, got[0].Draft.How, got[1].Draft.How)
		}
	}
}

// Usage before the span fills windows that reach into it, and counts nowhere.
func TestUsageBeforeTheSpan(t *testing.T) {
	p := planOf(t, []model.Spec{{Name: "x", Algorithm: "fixed_window", Limit: 100, Window: "calendar_month"}})
	middle := from + 10*day
	sheet := New(p, middle, middle+day)
	sheet.Add(&Customer{Periods: periods(t, "UTC"), InForce: p}, []Used{{Meter: "m", Hours: []Hour{{from, 90, 0}, {middle, 30, 5}, {middle + day, 50, 0}}}})
	if sheet.Asked != 35 || sheet.Recorded != 5 || sheet.Draft.Refused != (Range{25, 25}) {
		t.Errorf("%+v", sheet)
	}
	if got := Warmup(p.plan); got != 31*day {
		t.Errorf("the hours of %s before are asked for", time.Duration(got)*time.Microsecond)
	}
	if got := Warmup(planOf(t, []model.Spec{{Name: "x", Algorithm: "fixed_window", Limit: 100, Window: "1m"}}).plan); got != 0 {
		t.Errorf("%d µs before are asked for", got)
	}
}

// What is billed is what an invoice would have: base, included units, the minimum, overrides and
// own prices.
func TestBilled(t *testing.T) {
	unit, dear := "0.10", "1"
	price := plans.Price{Meter: "m", Model: "per_unit", UnitPrice: &unit, Included: 100}
	p := planOf(t, []model.Spec{{Name: "x", Algorithm: "fixed_window", Limit: 300, Window: "billing_period"}}, price)
	p.plan.BasePriceMinor, p.plan.MinimumMinor = 1000, 1500
	used := []Used{{Meter: "m", Hours: []Hour{{from + day, 250, 0}, {from + 2*day, 200, 0}}}}
	for _, c := range []struct {
		name     string
		customer Customer
		want     int64
	}{
		{"the limit cuts it", Customer{Billed: true}, 1000 + 200*10},
		{"an override does", Customer{Billed: true, Overrides: map[string]plans.StoredOverride{"x": {Limit: 130}}}, 1500},
		{"a price of its own", Customer{Billed: true, Prices: map[string]plans.Price{"m": {Meter: "m", Model: "per_unit", UnitPrice: &dear}}}, 1000 + 300*100},
		{"nobody to bill", Customer{}, 0},
	} {
		c.customer.Periods, c.customer.InForce = periods(t, "UTC"), p
		sheet := New(p, from, from+30*day)
		sheet.Add(&c.customer, used)
		if sheet.Draft.Billed != (Range{c.want, c.want}) || sheet.InForce.Billed != sheet.Draft.Billed {
			t.Errorf("%s: %+v beside %+v, want %d", c.name, sheet.Draft.Billed, sheet.InForce.Billed, c.want)
		}
	}
	// Half of the month is billed half of the base and includes half of the units.
	sheet := New(p, from, from+15*day)
	sheet.Add(&Customer{Billed: true, Periods: periods(t, "UTC"), InForce: p}, used)
	if want := int64(500 + 250*10); sheet.Draft.Billed != (Range{want, want}) {
		t.Errorf("%+v, want %d", sheet.Draft.Billed, want)
	}
}

// Amounts that no invoice may have are told as such, and sums stop where 64 bits do.
func TestNumbersStop(t *testing.T) {
	unit := "999999999999999"
	p := planOf(t, nil, plans.Price{Meter: "m", Model: "per_unit", UnitPrice: &unit})
	sheet := New(p, from, from+30*day)
	sheet.Add(&Customer{Billed: true, Periods: periods(t, "UTC"), InForce: p}, []Used{{Meter: "m", Hours: []Hour{{from, 1<<63 - 1, 1<<63 - 1}}}})
	if !sheet.Draft.TooLarge || sheet.Asked != 1<<63-1 {
		t.Errorf("%+v", sheet)
	}
}

func BenchmarkAdd(b *testing.B) {
	var hours []Hour
	for h := range 720 {
		hours = append(hours, Hour{from + int64(h)*hour, 150, 0})
	}
	for _, algorithm := range []string{"fixed_window", "sliding_window", "token_bucket"} {
		p := planOf(b, []model.Spec{{Name: "x", Algorithm: algorithm, Limit: 100, Window: "1h"}, {Name: "y", Algorithm: algorithm, Limit: 100, Window: "1m"}})
		b.Run(fmt.Sprint(algorithm), func(b *testing.B) {
			c := &Customer{Periods: periods(b, "UTC"), InForce: p}
			for b.Loop() {
				New(p, from, from+30*day).Add(c, []Used{{Meter: "m", Hours: hours}})
			}
		})
	}
}

// What is held is priced by its level. By hand: 4 seats from noon of the first day on, over two days of a
// month of 30 days.
func TestHeldIsBilled(t *testing.T) {
	changes := []Change{{from - day, 9}, {from, 0}, {from + day/2, 4}, {from + 3*day, 100}}
	held := heldIn(changes, from, from+2*day)
	if want := big.NewInt(4 * (day + day/2)); held.Integral.Cmp(want) != 0 || held.Peak != 4 || held.Last != 4 {
		t.Errorf("held %v", held)
	}
	if held := heldIn(changes, from+1, from+2); held.Peak != 0 || held.Last != 0 {
		t.Errorf("nothing is held just after the start: %v", held)
	}
	if held := heldIn(changes[:1], from, from+1); held.Peak != 9 || held.Last != 9 {
		t.Errorf("what was held before goes on: %v", held)
	}
}
